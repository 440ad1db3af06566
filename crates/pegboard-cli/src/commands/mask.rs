//! `pegboard mask`: copies stdin to stdout and masks the secrets and patterns that the config names.

use std::io::{self, Read as _};

use pegboard::{
    Config,
    mask::{BadMasking, Masker, Masking},
};
use serde_json::json;

use super::context::{Context, Ending, empty, interrupted, time_up};
use crate::{
    cli::Mask,
    exit::Exit,
    output::Report,
    settings::{Complaint, Settings},
};

/// Larger than any tool result, and a bound on the memory.
const MAX_BYTES: u64 = 256 << 20;

pub(super) async fn run(mut context: Context<'_>, mask: Mask) -> Exit {
    let settings = Settings::load(&context.global);
    let nothing = json!({"text": null, "masked": 0, "masked_by": {}});
    let output = context.output.clone();
    let failed = |problem: &str| empty(&output, Exit::Usage, &nothing).error(problem, None);
    let masker = match settings.checked().and_then(|config| masker(&config, mask, &settings)) {
        Ok(masker) => masker,
        Err(complaint) => return context.refuse(&complaint, &nothing).await,
    };
    let reading = tokio::task::spawn_blocking(read);
    let text = match context.work(reading).await {
        Ending::Done(Ok(Ok(text))) => text,
        Ending::Done(Ok(Err(problem))) => return context.print(failed(&problem)).await,
        Ending::Done(Err(error)) => {
            let problem = format!("stdin cannot be read: {error}");
            return context.print(failed(&problem)).await;
        }
        Ending::TimeUp => return context.print(time_up(&output, &nothing)).await,
        Ending::Interrupted => return context.print(interrupted(&output, &nothing)).await,
    };
    let masked = masker.text(&text);
    let report = if context.output.is_json() {
        let document = json!({"text": masked.text, "masked": masked.counts.total(), "masked_by": masked.counts});
        Report::json(Exit::Done, &document)
    } else {
        let mut report = Report::new(Exit::Done);
        // Not sanitized: the next program of a pipe gets the input with only secrets changed.
        report.data = masked.text.into_owned();
        report
    };
    context.print(report).await
}

/// The masker with the policy of the selected server, or of the config. It knows the secrets of all servers.
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
        exit: Exit::Usage,
    })
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.join(", ")
}

/// Reads stdin. Runs on a blocking thread, so that Ctrl-C works while a terminal is read.
fn read() -> Result<String, String> {
    let mut bytes = Vec::new();
    io::stdin()
        .take(MAX_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("stdin cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("stdin has more than {MAX_BYTES} bytes"));
    }
    // Input that is not valid UTF-8 can contain secrets too, so it is masked and not refused.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
