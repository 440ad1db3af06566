//! `pegboard prompts`: what prompts there are, and one of them with its arguments filled in.

use std::fmt::Write as _;

use pegboard::{Deadline, Failure, FilledPrompt, Kind, Prompt, PromptListing, Toolset};
use serde_json::{Map, Value, json};

use super::{
    Ending, Stage, TIMEOUT, call::ask::Terminal, cancelled, empty, interrupted, late, listing, time_up, waits::Waits,
};
use crate::{
    cli,
    exit::Exit,
    output::{self, Paint, Report, Table, as_data, one_line},
    settings::{self, Settings},
};

pub(super) async fn list(mut stage: Stage<'_>) -> Exit {
    let settings = Settings::load(&stage.global);
    let nothing = json!({"prompts": [], "unavailable": [], "warnings": settings.warnings().collect::<Vec<_>>()});
    let config = match settings.usable() {
        Ok(config) => config,
        Err(complaint) => {
            let report = empty(&stage.output, Exit::Usage, &nothing);
            return stage.print(complaint.report(report)).await;
        }
    };
    let enabled = config.servers.values().filter(|server| server.enabled).count();
    settings.announce(&stage.output);
    let waits = Waits::new(&config);
    let board = settings::board(config).open();
    let what = "asking the servers for their prompts";
    let (toolset, patience) = (board.toolset(), stage.deadline.remaining());
    let report = match stage.waiting(&waits, what, &board, toolset.prompts(patience)).await {
        Ending::Interrupted => interrupted(&stage.output, &nothing),
        Ending::TimeUp => time_up(&stage.output, &nothing),
        Ending::Done(mut found) => {
            let exit = listing::exit(&found.unavailable, enabled, stage.is_late());
            if stage.output.is_json() {
                found.warnings.splice(..0, settings.warnings());
                Report::json(exit, &found)
            } else {
                let mut report = Report::new(exit);
                report.data = text(&found);
                if report.data.is_empty() && found.unavailable.is_empty() {
                    report = report.warning("no server that is switched on offers a prompt");
                }
                listing::name_absent(report, &found.unavailable, stage.is_late())
            }
        }
    };
    stage.close(&board, report).await
}

pub(super) async fn get(mut stage: Stage<'_>, options: cli::PromptGet) -> Exit {
    let settings = Settings::load(&stage.global);
    let nothing = json!({"server": null, "name": options.name});
    let config = match settings.usable() {
        Ok(config) => config,
        Err(complaint) => {
            let report = listing::unconfigured(&stage.output, nothing, "prompt", &complaint);
            return stage.print(report).await;
        }
    };
    settings.announce(&stage.output);
    let waits = Waits::new(&config);
    let board = settings::board(config).host(Terminal::new(&stage.output, false)).open();
    let what = &format!("getting {}", options.name);
    let (toolset, deadline) = (board.toolset(), stage.deadline);
    let getting = async {
        let prompt = owner(&toolset, &options.name, deadline).await?;
        let arguments: Map<String, Value> = options
            .pairs
            .iter()
            .map(|(key, value)| (key.clone(), Value::from(value.as_str())))
            .collect();
        let filled = toolset.get_prompt(&prompt.server, &prompt.name, &arguments).await?;
        Ok((prompt, filled))
    };
    let report = match stage.waiting(&waits, what, &board, getting).await {
        Ending::Interrupted => listing::unread(&stage.output, nothing, "prompt", cancelled()),
        Ending::TimeUp => listing::unread(&stage.output, nothing, "prompt", late().hint(TIMEOUT)),
        Ending::Done(got) => {
            let (prompt, filled) = match got {
                Ok((prompt, filled)) => (Some(prompt), Ok(filled)),
                Err(failure) => (None, Err(failure)),
            };
            let server = prompt.as_ref().map(|prompt| &prompt.server);
            let name = prompt
                .as_ref()
                .map_or(options.name.as_str(), |prompt| prompt.name.as_str());
            let document = json!({"server": server, "name": name});
            listing::read(&stage.output, document, "prompt", &filled, shown)
        }
    };
    stage.close(&board, report).await
}

/// The prompt that is meant by `server.prompt`, or by its own name when only one server has it.
async fn owner(toolset: &Toolset, name: &str, deadline: Deadline) -> Result<Prompt, Failure> {
    let found = toolset.prompts(deadline.remaining()).await;
    let dotted = |prompt: &Prompt| format!("{}.{}", prompt.server, prompt.name);
    let mut fitting: Vec<Prompt> = found
        .prompts
        .iter()
        .filter(|prompt| dotted(prompt) == name)
        .cloned()
        .collect();
    if fitting.is_empty() {
        fitting = found
            .prompts
            .iter()
            .filter(|prompt| prompt.name == name)
            .cloned()
            .collect();
    }
    let wrong = |message: String| Failure::new(Kind::InvalidArguments, message);
    match (fitting.len(), found.unavailable.first()) {
        (1, _) => Ok(fitting.remove(0)),
        (0, Some(absent)) => Err(listing::absent(absent, deadline.has_passed())),
        (0, None) => Err(wrong(format!("there is no prompt `{name}`")).hint("`pegboard prompts` lists what there is")),
        _ => {
            let names: Vec<_> = fitting.iter().map(dotted).collect();
            Err(wrong(format!("`{name}` could mean {}", names.join(" or "))).hint("say which one with `server.prompt`"))
        }
    }
}

/// The messages, each under the name of the one who says it.
fn shown(filled: &FilledPrompt) -> String {
    let mut shown = String::new();
    for message in &filled.messages {
        let role = message.role.as_str();
        let _ = writeln!(shown, "{role}: {}", as_data(&message.content.to_text()));
    }
    shown
}

/// The prompts under the names of their servers, one line each.
fn text(found: &PromptListing) -> String {
    let (paint, width) = (Paint::of(&std::io::stdout()), output::width());
    let mut text = String::new();
    for group in found.prompts.chunk_by(|a, b| a.server == b.server) {
        if !text.is_empty() {
            text.push('\n');
        }
        let many = match group.len() {
            1 => "1 prompt".to_owned(),
            many => format!("{many} prompts"),
        };
        let _ = writeln!(text, "{} ({many})", paint.bold(group[0].server.as_str()));
        let mut table = Table::indented(2);
        for prompt in group {
            let words = prompt
                .description
                .as_deref()
                .or(prompt.title.as_deref())
                .unwrap_or_default();
            let first = words.trim_start().lines().next().unwrap_or_default();
            let name = format!("{}.{}", prompt.server, prompt.name);
            table.row([one_line(&name), arguments(prompt), one_line(first)]);
        }
        text.push_str(&table.render(width));
    }
    text
}

/// `city=… [state=…]`: what may be left out is in brackets.
fn arguments(prompt: &Prompt) -> String {
    let arguments = prompt.arguments.iter().filter_map(|argument| {
        let name = one_line(argument.get("name")?.as_str()?);
        let is_required = argument.get("required") == Some(&Value::Bool(true));
        Some(if is_required {
            format!("{name}=…")
        } else {
            format!("[{name}=…]")
        })
    });
    arguments.collect::<Vec<_>>().join(" ")
}
