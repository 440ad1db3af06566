//! `pegboard mask`: stdin to stdout through the masker, with the policy of the config and whatever it knows to be secret.

use std::io::{self, Read as _};

use pegboard::{BadMasking, Config, Masker, Masking};
use serde_json::json;

use super::stage::{Ending, Stage, empty, interrupted, time_up};
use crate::{
    cli::Mask,
    exit::Exit,
    output::Report,
    settings::{Complaint, Settings},
};

/// More than any answer, and less than would fill the memory.
const MAX_BYTES: u64 = 256 << 20;

pub(super) async fn run(mut stage: Stage<'_>, mask: Mask) -> Exit {
    let settings = Settings::load(&stage.global);
    let nothing = json!({"text": null, "masked": 0, "masked_by": {}});
    let output = stage.output.clone();
    let failed = |problem: &str| empty(&output, Exit::Usage, &nothing).error(problem, None);
    let masker = match settings.usable().and_then(|config| masker(&config, mask, &settings)) {
        Ok(masker) => masker,
        Err(complaint) => return stage.refuse(&complaint, &nothing).await,
    };
    let reading = tokio::task::spawn_blocking(read);
    let text = match stage.work(reading).await {
        Ending::Done(Ok(Ok(text))) => text,
        Ending::Done(Ok(Err(problem))) => return stage.print(failed(&problem)).await,
        Ending::Done(Err(error)) => {
            let problem = format!("stdin cannot be read: {error}");
            return stage.print(failed(&problem)).await;
        }
        Ending::TimeUp => return stage.print(time_up(&output, &nothing)).await,
        Ending::Interrupted => return stage.print(interrupted(&output, &nothing)).await,
    };
    let masked = masker.text(&text);
    let report = if stage.output.is_json() {
        let document = json!({"text": masked.text, "masked": masked.counts.total(), "masked_by": masked.counts});
        Report::json(Exit::Done, &document)
    } else {
        let mut report = Report::new(Exit::Done);
        // As it came, for the next program: only secrets are changed.
        report.data = masked.text.into_owned();
        report
    };
    stage.print(report).await
}

/// The masker for all servers, or for the one that was picked. It knows the secrets of all of them.
fn masker(config: &Config, mask: Mask, settings: &Settings) -> Result<Masker, Complaint> {
    let mut policy: Masking = match settings.picked() {
        Some(name) => {
            let server = config.servers.iter().find(|(known, _)| known.as_str() == name);
            server.map_or_else(|| config.masking.clone(), |(_, server)| server.policy.masking.clone())
        }
        None => config.masking.clone(),
    };
    policy.groups.extend(mask.groups);
    policy.patterns.extend(mask.patterns);
    Masker::new(&policy, settings.loaded.config.secrets()).map_err(|error| Complaint {
        message: error.to_string(),
        hint: match error {
            BadMasking::Group(_) => Some(format!("the groups are {}", listed(Masker::group_names()))),
            BadMasking::Pattern(_) => Some(format!("the patterns are {}", listed(Masker::pattern_names()))),
            _ => None,
        },
    })
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.join(", ")
}

/// Reads off the async threads, so that a terminal nobody types at can be left with Ctrl-C.
fn read() -> Result<String, String> {
    let mut bytes = Vec::new();
    io::stdin()
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("stdin cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("stdin has more than {MAX_BYTES} bytes"));
    }
    // A text that is cut or damaged can hold secrets as well as any other.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
