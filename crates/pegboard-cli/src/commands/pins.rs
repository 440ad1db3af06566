//! `pegboard pins`: the definitions of tools that were pinned, what changed since, and accepting it.

mod changes;

use clap::Args;
use pegboard::{
    Listing, Pegboard,
    pin::{PinChange, PinState, PinStore, PinnedServer},
    toolset::Unavailable,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    agreement,
    command::{Run, With, commands},
    context::{Context, Ending, empty, interruption_report, time_up, with_complaint},
    listing,
    starting::StartingServers,
};
use crate::{
    exit::Exit,
    output::{self, Report, Table, one_line},
    settings::{self, Complaint, Settings},
};
use changes::{find_flagged, texts};

/// The name of a server's instructions among its definitions.
const INSTRUCTIONS: &str = "(instructions)";

commands! {
    /// Show which tool definitions changed, and accept them
    #[command(
        after_help = "Examples:\n  pegboard pins diff\n  pegboard pins accept github.create_issue"
    )]
    pub(crate) enum PinsCommand {
        Show(With<Show>),
        Diff(With<Diff>),
        Accept(With<Accept>),
    }
}

/// Show what is pinned, without starting a server
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard pins show github")]
pub(crate) struct Show {
    /// Only this server
    server: Option<String>,
}

impl Run for Show {
    /// Shows what is pinned, without starting a server.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let report = match read_pins(self.server.as_deref()) {
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
}

/// Show how definitions differ from their pins
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard pins diff\n  pegboard pins diff github.create_issue")]
pub(crate) struct Diff {
    /// A server, or one tool of it; all when none is given
    #[arg(value_name = "SERVER[.TOOL]")]
    names: Vec<String>,
    /// End with exit code 1 if something differs or is held
    #[arg(long)]
    check: bool,
}

impl Run for Diff {
    /// Shows how the definitions that the servers list now differ from their pins.
    async fn run(self, context: Context<'_>) -> Exit {
        let work = Work::Show { check: self.check };
        compare(context, self.names, work).await
    }
}

/// Accept definitions as they are now
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard pins accept github.create_issue\n  pegboard pins accept --all")]
pub(crate) struct Accept {
    /// A server, or one tool of it
    #[arg(value_name = "SERVER[.TOOL]")]
    names: Vec<String>,
    /// Accept everything that differs
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Accept them without a question
    #[arg(short, long)]
    yes: bool,
}

impl Run for Accept {
    /// Pins the definitions that the servers list now. A person at the terminal sees them and is asked first.
    async fn run(self, mut context: Context<'_>) -> Exit {
        if self.names.is_empty() && !self.all {
            let report = empty(&context.output, Exit::Usage, &PinsDocument::default());
            let report = report.error(
                "no definition was named",
                Some("name SERVER or SERVER.TOOL, or accept everything with `--all`"),
            );
            return context.print(report).await;
        }
        let asks = !self.yes && agreement::can_ask();
        compare(context, self.names, Work::Accept { asks }).await
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Show { check: bool },
    Accept { asks: bool },
}

async fn compare(mut context: Context<'_>, names: Vec<String>, work: Work) -> Exit {
    let settings = Settings::load(&context.global);
    let mut config = match settings.usable_config() {
        Ok(config) => config,
        Err(complaint) => return context.refuse(&complaint, &PinsDocument::default()).await,
    };
    let wanted: Vec<PinTarget<'_>> = names.iter().map(|name| PinTarget::new(name)).collect();
    let is_known = |one: &&PinTarget<'_>| config.servers.keys().any(|server| server.as_str() == one.server);
    if let Some(unknown) = wanted.iter().find(|one| !is_known(one)) {
        return context
            .refuse(
                &settings.missing_server_complaint(unknown.server),
                &PinsDocument::default(),
            )
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
    let starting = StartingServers::new(&config);
    let board = settings::whole_board(config.clone()).tools_only().open();
    let (toolset, patience) = (board.toolset(), context.deadline.remaining());
    let asking = context.work_showing_starts(
        &starting,
        "asking the servers for their tools",
        &board,
        toolset.list(patience),
    );
    let report = match asking.await {
        Ending::Interrupted => interruption_report(&context.output, &PinsDocument::default()),
        Ending::TimeUp => time_up(&context.output, &PinsDocument::default()),
        Ending::Done(listing) => {
            let exit = listing::exit(&listing.unavailable, &config, context.is_late());
            match select_changes(&board.pin_changes(), &wanted, &listing) {
                Err(complaint) => {
                    let report = empty(&context.output, complaint.exit, &PinsDocument::default());
                    with_complaint(report, &complaint)
                }
                Ok(changes) => {
                    let compared = Compared { exit, changes, listing };
                    finish(&mut context, &board, compared, work).await
                }
            }
        }
    };
    context.close(&board, report).await
}

/// What differs, and the listing that it was found in.
struct Compared {
    exit: Exit,
    changes: Vec<PinChange>,
    listing: Listing,
}

/// Accepts the changes if that is the work, and reports them.
async fn finish(context: &mut Context<'_>, board: &Pegboard, compared: Compared, work: Work) -> Report {
    let Compared { exit, changes, listing } = compared;
    if let Work::Accept { asks } = work {
        if asks && !changes.is_empty() {
            context.output.say(&texts(&changes));
            let output = context.output.clone();
            match context.work(agreement::agrees(&output, "Pin this?")).await {
                Ending::Done(true) => {}
                Ending::Done(false) => {
                    let report = empty(&output, Exit::Refused, &PinsDocument::default());
                    return report.error("not confirmed, so nothing is pinned", None);
                }
                Ending::TimeUp => return time_up(&output, &PinsDocument::default()),
                Ending::Interrupted => return interruption_report(&output, &PinsDocument::default()),
            }
        }
        if let Err(error) = board.accept_pins(&changes) {
            let report = empty(&context.output, Exit::Usage, &PinsDocument::default());
            return report.error(&format!("nothing was accepted: {error}"), None);
        }
    }
    let differs = |change: &PinChange| change.held || change.state != PinState::Unchanged;
    let exit = match work {
        Work::Show { check: true } if exit == Exit::Done && changes.iter().any(differs) => Exit::ToolError,
        _ => exit,
    };
    let document = PinsDocument::new(&changes, &listing.unavailable, work);
    report_changes(context, exit, &document, &changes, work)
}

/// The changes that were asked about. A name that means no definition is an error, unless its server could not be asked.
fn select_changes(
    changes: &[PinChange],
    wanted: &[PinTarget<'_>],
    listing: &Listing,
) -> Result<Vec<PinChange>, Complaint> {
    for one in wanted {
        let Some(tool) = one.tool else { continue };
        let is_listed = listing
            .tools
            .iter()
            .any(|listed| listed.tool.server.as_str() == one.server && listed.tool.name == tool);
        let is_away = listing
            .unavailable
            .iter()
            .any(|away| away.server.as_str() == one.server);
        let is_known = is_listed || is_away || tool == INSTRUCTIONS || changes.iter().any(|change| one.means(change));
        if !is_known && !is_pinned(one.server, tool) {
            return Err(Complaint {
                message: format!("server `{}` has no tool `{}`", one.server, one_line(tool)),
                hint: Some(format!(
                    "`pegboard pins diff {}` shows what differs, `pegboard pins show {}` what is pinned",
                    one.server, one.server
                )),
                exit: Exit::Usage,
            });
        }
    }
    let is_meant = |change: &&PinChange| wanted.is_empty() || wanted.iter().any(|one| one.means(change));
    Ok(changes.iter().filter(is_meant).cloned().collect())
}

/// Whether a tool has a pin. A tool that the config hides may be in no listing.
fn is_pinned(server: &str, tool: &str) -> bool {
    read_pins(Some(server)).is_ok_and(|servers| servers.iter().any(|server| server.tools.contains_key(tool)))
}

/// A definition or a whole server, as named on the command line. A server's name has no dot.
struct PinTarget<'a> {
    server: &'a str,
    tool: Option<&'a str>,
}

impl<'a> PinTarget<'a> {
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
struct PinsDocument<'a> {
    changes: Vec<Value>,
    accepted: usize,
    unavailable: &'a [Unavailable],
}

impl<'a> PinsDocument<'a> {
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
                "fields": change.changed_fields(),
                "flagged": find_flagged(change).iter().map(|(at, text)| json!({"where": at, "text": text})).collect::<Vec<Value>>(),
            })
        };
        Self {
            changes: changes.iter().map(one).collect(),
            accepted: match work {
                Work::Accept { .. } => changes.len(),
                Work::Show { .. } => 0,
            },
            unavailable,
        }
    }
}

fn report_changes(
    context: &Context<'_>,
    exit: Exit,
    document: &PinsDocument<'_>,
    changes: &[PinChange],
    work: Work,
) -> Report {
    if context.output.is_json() {
        return Report::json(exit, document);
    }
    let mut report = Report::new(exit);
    // A person who was asked has seen them.
    if work != (Work::Accept { asks: true }) {
        report.data = texts(changes);
    }
    report = listing::add_unavailable(report, document.unavailable, context.is_late(), None);
    match (work, changes.len()) {
        (Work::Show { .. }, 0) => report.hint("no definition differs from its pin"),
        (Work::Show { .. }, _) => report.hint("`pegboard pins accept SERVER[.TOOL]` accepts what is shown"),
        (Work::Accept { .. }, 0) => report.hint("there was nothing to accept: no definition differs from its pin"),
        (Work::Accept { .. }, 1) => report.hint("accepted 1 definition"),
        (Work::Accept { .. }, count) => report.hint(&format!("accepted {count} definitions")),
    }
}

fn read_pins(server: Option<&str>) -> Result<Vec<PinnedServer>, Complaint> {
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
    let mut table = Table::with_indent(0);
    table.row(["DEFINITION", "PINNED", "BY", "HASH", "SERVER IS"].map(str::to_owned));
    for server in pinned {
        let tools = server.tools.iter().map(|(name, pin)| (name.as_str(), pin));
        let instructions = server.instructions.iter().map(|pin| (INSTRUCTIONS, pin));
        for (name, pin) in tools.chain(instructions) {
            let by = if pin.accepted { "a person" } else { "first listing" };
            let hash: String = pin.hash.to_string().chars().take(12).collect();
            let at = output::moment(pin.at, "%Y-%m-%d %H:%M");
            let name = format!("{}.{name}", server.server);
            table.row([one_line(&name), at, by.to_owned(), hash, one_line(&server.shown)]);
        }
    }
    table.render(output::width())
}
