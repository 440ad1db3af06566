//! `pegboard pins`: the definitions of tools that were pinned, what changed since, and accepting it.

use pegboard::{FieldChange, PinChange, PinState, PinStore, PinnedServer, Unavailable};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    context::{Context, Ending, empty, interrupted, time_up, with_complaint},
    listing,
    starting::StartingServers,
};
use crate::{
    exit::Exit,
    output::{self, Report, Table, one_line},
    settings::{self, Complaint, Settings},
};

/// The name of a server's instructions among its definitions.
const INSTRUCTIONS: &str = "(instructions)";

/// Shows what is pinned, without starting a server.
pub(super) async fn show(mut context: Context<'_>, server: Option<String>) -> Exit {
    let report = match pinned(server.as_deref()) {
        Ok(pinned) if context.output.is_json() => Report::json(Exit::Done, &json!({"servers": documents(&pinned)})),
        Ok(pinned) if pinned.is_empty() => {
            Report::new(Exit::Done).hint("nothing is pinned yet; `pegboard tools` lists and pins")
        }
        Ok(pinned) => {
            let mut report = Report::new(Exit::Done);
            report.data = table(&pinned);
            report
        }
        Err(complaint) => with_complaint(empty(&context.output, Exit::Usage, &json!({"servers": []})), &complaint),
    };
    context.print(report).await
}

/// Shows how the definitions that the servers list now differ from their pins.
pub(super) async fn diff(context: Context<'_>, names: Vec<String>) -> Exit {
    compare(context, names, Work::Show).await
}

/// Pins the definitions that the servers list now.
pub(super) async fn accept(mut context: Context<'_>, names: Vec<String>, all: bool) -> Exit {
    if names.is_empty() && !all {
        let report = empty(&context.output, Exit::Usage, &Document::default());
        let report = report.error(
            "no definition was named",
            Some("name SERVER or SERVER.TOOL, or accept everything with `--all`"),
        );
        return context.print(report).await;
    }
    compare(context, names, Work::Accept).await
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Show,
    Accept,
}

async fn compare(mut context: Context<'_>, names: Vec<String>, work: Work) -> Exit {
    let settings = Settings::load(&context.global);
    let mut config = match settings.usable() {
        Ok(config) => config,
        Err(complaint) => return context.refuse(&complaint, &Document::default()).await,
    };
    let wanted: Vec<Wanted<'_>> = names.iter().map(|name| Wanted::new(name)).collect();
    let is_known = |one: &&Wanted<'_>| config.servers.keys().any(|server| server.as_str() == one.server);
    if let Some(unknown) = wanted.iter().find(|one| !is_known(one)) {
        return context
            .refuse(&settings.missing(unknown.server), &Document::default())
            .await;
    }
    // Only the servers that are asked about are started.
    if !wanted.is_empty() {
        config
            .servers
            .retain(|name, _| wanted.iter().any(|one| one.server == name.as_str()));
        config.misconfigured.clear();
    }
    settings.announce(&context.output);
    let enabled = listing::enabled(&config);
    let starting = StartingServers::new(&config);
    let board = settings::whole_board(config).tools_only().open();
    let (toolset, patience) = (board.toolset(), context.deadline.remaining());
    let asking = context.waiting(
        &starting,
        "asking the servers for their tools",
        &board,
        toolset.list(patience),
    );
    let report = match asking.await {
        Ending::Interrupted => interrupted(&context.output, &Document::default()),
        Ending::TimeUp => time_up(&context.output, &Document::default()),
        Ending::Done(listing) => {
            let mut changes = board.pin_changes();
            changes.retain(|change| wanted.is_empty() || wanted.iter().any(|one| one.means(change)));
            let exit = listing::exit(&listing.unavailable, enabled, context.is_late());
            let accepted = match work {
                Work::Show => Ok(0),
                Work::Accept => board.accept_pins(&changes),
            };
            match accepted {
                Err(error) => {
                    let report = empty(&context.output, Exit::Usage, &Document::default());
                    report.error(&format!("nothing was accepted: {error}"), None)
                }
                Ok(_) => {
                    let document = Document::new(&changes, &listing.unavailable, work);
                    shown(&context, exit, &document, &changes, work)
                }
            }
        }
    };
    context.close(&board, report).await
}

/// A definition or a whole server, as named on the command line. A server's name has no dot.
struct Wanted<'a> {
    server: &'a str,
    tool: Option<&'a str>,
}

impl<'a> Wanted<'a> {
    fn new(name: &'a str) -> Self {
        match name.split_once('.') {
            Some((server, tool)) => Self {
                server,
                tool: Some(tool),
            },
            None => Self {
                server: name,
                tool: None,
            },
        }
    }

    fn means(&self, change: &PinChange) -> bool {
        let tool = change.tool.as_deref().unwrap_or(INSTRUCTIONS);
        change.server.as_str() == self.server && self.tool.is_none_or(|wanted| wanted == tool)
    }
}

/// The document of `-o json`.
#[derive(Serialize, Default)]
struct Document<'a> {
    changes: Vec<Value>,
    accepted: usize,
    unavailable: &'a [Unavailable],
}

impl<'a> Document<'a> {
    fn new(changes: &[PinChange], unavailable: &'a [Unavailable], work: Work) -> Self {
        let one = |change: &PinChange| {
            json!({
                "name": change.name(),
                "server": change.server,
                "tool": change.tool,
                "state": change.state,
                "held": change.held,
                "hash": change.hash,
                "findings": change.findings,
                "fields": change.fields(),
            })
        };
        Self {
            changes: changes.iter().map(one).collect(),
            accepted: if work == Work::Accept { changes.len() } else { 0 },
            unavailable,
        }
    }
}

fn shown(context: &Context<'_>, exit: Exit, document: &Document<'_>, changes: &[PinChange], work: Work) -> Report {
    if context.output.is_json() {
        return Report::json(exit, document);
    }
    let mut report = Report::new(exit);
    let text: String = changes.iter().map(text).collect();
    report.data = output::clean(&text).into_owned();
    report = listing::add_unavailable(report, document.unavailable, context.is_late());
    match (work, changes.len()) {
        (Work::Show, 0) => report.hint("every definition is as it was pinned"),
        (Work::Show, _) => report.hint("`pegboard pins accept SERVER[.TOOL]` accepts what is shown"),
        (Work::Accept, 0) => report.hint("there was nothing to accept: every definition is as it was pinned"),
        (Work::Accept, 1) => report.hint("accepted 1 definition"),
        (Work::Accept, count) => report.hint(&format!("accepted {count} definitions")),
    }
}

/// One definition: its name and state, what the scanner found, and each field that differs.
fn text(change: &PinChange) -> String {
    let held = if change.held { ", held" } else { "" };
    let state = match change.state {
        PinState::Unchanged => "suspicious",
        PinState::NotAccepted => "never accepted",
        state => state.as_str(),
    };
    let mut text = format!("{} ({state}{held})\n", one_line(&change.name()));
    for finding in &change.findings {
        text.push_str(&format!(
            "  ! {}: {}\n",
            finding.severity.as_str(),
            one_line(&finding.to_string())
        ));
    }
    if change.old.is_none() && change.state == PinState::Changed {
        text.push_str("  the pinned definition was too long to keep; this is the current one\n");
    }
    change
        .fields()
        .iter()
        .filter(|field| field.field != "name")
        .for_each(|field| text.push_str(&lines(field)));
    text
}

/// The lines of a field that differ.
fn lines(field: &FieldChange) -> String {
    let (old, new) = (pretty(field.old.as_deref()), pretty(field.new.as_deref()));
    let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[start..], &new[start..]);
    let end = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(|(old, new)| old == new)
        .count();
    let removed = old[..old.len() - end]
        .iter()
        .map(|line| format!("    - {}\n", one_line_kept(line)));
    let added = new[..new.len() - end]
        .iter()
        .map(|line| format!("    + {}\n", one_line_kept(line)));
    let changed: String = removed.chain(added).collect();
    format!("  {}\n{changed}", one_line(&field.field))
}

/// The lines of a text; JSON is formatted.
fn pretty(text: Option<&str>) -> Vec<String> {
    let Some(text) = text else {
        return Vec::new();
    };
    let tree: Option<Value> = serde_json::from_str(text)
        .ok()
        .filter(|tree: &Value| tree.is_object() || tree.is_array());
    let formatted = tree.and_then(|tree| serde_json::to_string_pretty(&tree).ok());
    formatted
        .as_deref()
        .unwrap_or(text)
        .lines()
        .map(str::to_owned)
        .collect()
}

/// A line without control characters, with its indentation.
fn one_line_kept(line: &str) -> String {
    let indentation = line.len() - line.trim_start_matches(' ').len();
    format!("{}{}", " ".repeat(indentation), one_line(line.trim_start_matches(' ')))
}

fn pinned(server: Option<&str>) -> Result<Vec<PinnedServer>, Complaint> {
    let Some(folder) = settings::pins_folder() else {
        return Err(Complaint {
            message: "there is no folder for pins".to_owned(),
            hint: Some("set HOME or XDG_STATE_HOME to an absolute path".to_owned()),
            exit: Exit::Usage,
        });
    };
    let all = PinStore::new(folder).servers().map_err(|error| Complaint {
        message: error.to_string(),
        hint: None,
        exit: Exit::Usage,
    })?;
    let Some(wanted) = server else {
        return Ok(all);
    };
    let found: Vec<PinnedServer> = all.into_iter().filter(|pinned| pinned.server == wanted).collect();
    match found.is_empty() {
        false => Ok(found),
        true => Err(Complaint {
            message: format!("nothing is pinned for a server `{wanted}`"),
            hint: Some("`pegboard pins show` lists the servers with pins".to_owned()),
            exit: Exit::Usage,
        }),
    }
}

fn documents(pinned: &[PinnedServer]) -> Vec<Value> {
    let one = |server: &PinnedServer| {
        let tools = server.tools.iter();
        let tools =
            tools.map(|(name, pin)| json!({"name": name, "hash": pin.hash, "accepted": pin.accepted, "at": pin.at}));
        let instructions = server.instructions.as_ref();
        json!({
            "server": server.server,
            "identity": server.identity,
            "shown": server.shown,
            "tools": tools.collect::<Vec<Value>>(),
            "instructions": instructions.map(|pin| json!({"hash": pin.hash, "accepted": pin.accepted, "at": pin.at})),
        })
    };
    pinned.iter().map(one).collect()
}

fn table(pinned: &[PinnedServer]) -> String {
    let mut table = Table::indented(0);
    table.row(["DEFINITION", "PINNED", "BY", "HASH", "SERVER IS"].map(str::to_owned));
    for server in pinned {
        let tools = server.tools.iter().map(|(name, pin)| (name.as_str(), pin));
        let instructions = server.instructions.iter().map(|pin| (INSTRUCTIONS, pin));
        for (name, pin) in tools.chain(instructions) {
            let by = if pin.accepted { "a person" } else { "first listing" };
            let hash: String = pin.hash.to_string().chars().take(12).collect();
            let at = pin.at.strftime("%Y-%m-%d %H:%M").to_string();
            let name = format!("{}.{name}", server.server);
            table.row([one_line(&name), at, by.to_owned(), hash, one_line(&server.shown)]);
        }
    }
    table.render(output::width())
}
