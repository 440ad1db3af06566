//! `pegboard mask`: copies stdin to stdout and masks the secrets and patterns that the config names.

use clap::Args;
use pegboard::{
    Config,
    mask::{BadMasking, Masker, Masking},
};
use serde_json::json;

use super::{
    command::Run,
    context::{Context, empty},
    stdin::{self, Input},
};
use crate::{
    exit::Exit,
    output::Report,
    settings::{Complaint, Settings},
};

/// Larger than any tool result, and a bound on the memory.
const MAX_BYTES: u64 = 256 << 20;

/// Hide secrets in what comes in on stdin
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  kubectl get secret db -o yaml | pegboard mask\n  pegboard mask --group security -o json < answer.txt"
)]
pub(crate) struct Mask {
    /// Look for the patterns of this group too; may be repeated
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,
    /// Look for this pattern too; may be repeated
    #[arg(long = "pattern", value_name = "NAME")]
    patterns: Vec<String>,
}

impl Run for Mask {
    async fn run(self, mut context: Context<'_>) -> Exit {
        let settings = Settings::load(&context.global);
        let nothing = json!({"text": null, "masked": 0, "masked_by": {}});
        let masker = match settings
            .config_with_unapproved()
            .and_then(|config| masker(&config, self, &settings))
        {
            Ok(masker) => masker,
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
        };
        let bytes = match stdin::read(&mut context, MAX_BYTES, &nothing).await {
            Input::Read(bytes) => bytes,
            Input::Unreadable(problem) => {
                let report = empty(&context.output, Exit::Usage, &nothing).error(&problem, None);
                return context.print(report).await;
            }
            Input::Ended(report) => return context.print(report).await,
        };
        // Input that is not valid UTF-8 can contain secrets too, so it is masked and not refused.
        let text = String::from_utf8_lossy(&bytes);
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
}

/// The masker with the policy of the selected server, or of the config. It knows the secrets of all servers.
fn masker(config: &Config, mask: Mask, settings: &Settings) -> Result<Masker, Complaint> {
    let mut policy: Masking = match settings.picked_server() {
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
            BadMasking::Group(_) => Some(format!("the groups are {}", list(Masker::group_names()))),
            BadMasking::Pattern(_) => Some(format!("the patterns are {}", list(Masker::pattern_names()))),
            _ => None,
        },
        exit: Exit::Usage,
    })
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.join(", ")
}
