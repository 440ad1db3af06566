//! `pegboard init`: finds hosts, imports their servers, and enters Pegboard in them. Where there is nothing to import, it writes a first config.

mod first_config;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use clap::Args;
use pegboard_base::secret::names_secret;
use pegboard_hosts::{
    hosts::{Folders, Host, find_present},
    import::{Action, Plan, Row},
    install::{Existing, Installation, find_movable, leave_what_would_not_work},
};
use serde_json::json;

use super::{
    agreement,
    command::Run,
    context::{Context, Ending, interruption_report, time_up},
    doctor,
    import::{self, Import, inputs, screen},
    install::{self, Done, Install, Twice},
};
use crate::{
    cli::hide_unless_for_files,
    exit::Exit,
    output::{self, Output, Report, one_line, path_text, wrap_message},
    settings::{Complaint, Settings},
};

/// The name of Pegboard's entry in hosts.
const NAME: &str = "pegboard";
/// What takes the hosts' own servers out of their files.
const TAKE_OVER: &str = "pegboard init --take-over";

/// Set Pegboard up: import servers, enter it in hosts
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard init\n  pegboard init --yes")]
pub(crate) struct Init {
    /// Move the hosts' own servers into the config, so that they get them
    /// from here
    #[arg(long)]
    take_over: bool,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
}

impl Run for Init {
    fn adjust(arg: clap::Arg) -> clap::Arg {
        hide_unless_for_files(arg)
    }

    /// Sets Pegboard up. No server is started.
    async fn run(self, mut context: Context<'_>) -> Exit {
        let nothing = json!({"file": null, "imported": null, "hosts": []});
        if !self.yes && !self.dry_run && !agreement::can_ask() {
            let complaint = Complaint {
                message: "there is no terminal to ask at".to_owned(),
                hint: Some(
                    "`pegboard init --yes` does everything with defaults, `--dry-run` shows what that is".to_owned(),
                ),
                exit: Exit::Refused,
            };
            return context.refuse(&complaint, &nothing).await;
        }
        let output = context.output.clone();
        let prepared = prepare(&context, &self);
        let (folders, mut plan) = match prepared {
            Ok(prepared) => prepared,
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
        };
        let is_first = !plan.has_work() && is_without_config(&context, &plan);
        let hosts = find_present(&folders);
        let is_asking = !self.yes && !self.dry_run;
        let mut answers = Answers {
            imports: true,
            installs: true,
            takes_over: self.take_over,
        };
        if is_asking {
            let asked = ask(&mut plan, is_first, &hosts, self.take_over, &output);
            match context.work(asked).await {
                Ending::Done(given) => answers = given,
                Ending::TimeUp => return context.print(time_up(&output, &nothing)).await,
                Ending::Interrupted => return context.print(interruption_report(&output, &nothing)).await,
            }
        }
        let is_first = is_first && answers.imports;
        if answers.takes_over {
            for left in leave_what_would_not_work(&mut plan, false) {
                // Without questions, the table that is printed later says it.
                if is_asking {
                    output.note(&left);
                }
            }
        }
        let unset = plan.unset_variables();
        let done = carry_out(&context, &self, &mut plan, &hosts, &folders, &answers);
        let done = done.and_then(|done| match is_first && !self.dry_run {
            true => first_config::write(&plan.file).map(|()| done),
            false => Ok(done),
        });
        let report = match done {
            Err(complaint) => return context.refuse(&complaint, &nothing).await,
            Ok(done) => {
                let is_written = answers.imports && !self.dry_run && plan.has_work();
                let is_something = !done.changes.is_empty() || (answers.imports && plan.has_work()) || is_first;
                let has_config = !is_without_config(&context, &plan);
                let checked = match has_config && !self.dry_run {
                    true => doctor::overview(&mut context).await,
                    false => None,
                };
                let exit = match is_something || done.skipped.is_empty() {
                    true => Exit::Done,
                    false => Exit::ToolError,
                };
                // What stays in the hosts alone is not there twice, and needs nothing here.
                let (twice, unset) = match answers.imports || !plan.has_work() {
                    true => (
                        Twice::find(&done.changes, &plan, answers.imports, &context.global, false),
                        unset,
                    ),
                    false => (Vec::new(), BTreeMap::new()),
                };
                let mut warnings = screen::warnings(&plan, is_written);
                warnings.extend(done.warnings());
                if !has_config && !self.dry_run && !done.changes.is_empty() {
                    warnings.push(install::ONLY_DEMO.to_owned());
                }
                if is_first {
                    warnings.extend(first_config::warning());
                }
                if output.is_json() {
                    let hosts: Vec<_> = done.changes.iter().map(install::screen::document).collect();
                    let document = json!({
                        "file": path_text(&plan.file), "imported": screen::document(&plan, is_written), "hosts": hosts, "skipped": done.skipped_documents(),
                        "twice": Twice::documents(&twice), "first_config": is_first, "checked": checked, "unset_variables": unset, "dry_run": self.dry_run,
                    });
                    with_warnings(Report::json(exit, &document), &warnings)
                } else {
                    let mut report = Report::new(exit);
                    if !is_asking {
                        report.data = overview(&hosts, &plan);
                    }
                    if answers.imports {
                        let ending = screen::render_ending(&plan, is_written);
                        report.data.push_str(&ending.replace("next: pegboard doctor\n", ""));
                    }
                    if is_first {
                        let would = if self.dry_run { "would be " } else { "" };
                        let file = plan.file.display();
                        let _ = writeln!(
                            report.data,
                            "a first config with the built-in demo server {would}written to {file}"
                        );
                    }
                    report
                        .data
                        .push_str(&install::screen::text(&done.changes, self.dry_run));
                    if !is_something {
                        report.data.push_str("nothing is changed\n");
                    }
                    report
                        .data
                        .push_str(&Twice::text(&twice, self.dry_run, Some(TAKE_OVER)));
                    if let Some(checked) = checked {
                        let checked = wrap_message(&checked.to_string(), output::width(), 0);
                        let _ = writeln!(report.data, "{checked}");
                    }
                    report.data.push_str(&next(&plan, &unset));
                    with_warnings(report, &warnings)
                }
            }
        };
        context.print(report).await
    }
}

fn with_warnings(report: Report, warnings: &[String]) -> Report {
    warnings.iter().fold(report, |report, warning| report.warning(warning))
}

/// What the person agreed to.
struct Answers {
    imports: bool,
    installs: bool,
    takes_over: bool,
}

fn prepare(context: &Context<'_>, options: &Init) -> Result<(Folders, Plan), Complaint> {
    let import = Import {
        from: Vec::new(),
        all: false,
        project: false,
        force: false,
        dry_run: options.dry_run,
        yes: options.yes,
    };
    Ok((import::folders()?, import::prepare(&context.global, &import)?))
}

/// Whether there is no config yet: neither the file that would be written, nor one that is found without it.
fn is_without_config(context: &Context<'_>, plan: &Plan) -> bool {
    let is_named = !context.global.configs.is_empty();
    !plan.file.exists() && (is_named || Settings::load(&context.global).demo_note().is_some())
}

async fn ask(plan: &mut Plan, is_first: bool, hosts: &[&'static Host], takes_over: bool, output: &Output) -> Answers {
    output.say(&overview(hosts, plan));
    let mut answers = Answers {
        imports: false,
        installs: false,
        takes_over: false,
    };
    if plan.has_work() {
        let question = format!("Write {} to {}?", screen::count(plan), plan.file.display());
        answers.imports = agreement::agrees(output, &question).await;
        if answers.imports {
            inputs::ask(plan, output).await;
            inputs::ask_for_secrets(plan, output).await;
        }
    }
    if is_first {
        let file = plan.file.display();
        let question = format!("Write a first config with the built-in demo server to {file}?");
        answers.imports = agreement::agrees(output, &question).await;
    }
    if !hosts.is_empty() {
        let names: Vec<&str> = hosts.iter().map(|host| host.title).collect();
        let question = format!("Make {} use Pegboard? Each file is backed up first.", names.join(", "));
        answers.installs = agreement::agrees(output, &question).await;
    }
    let is_of_host = |row: &&Row| hosts.iter().any(|host| host.id == row.host.id);
    let movable = find_movable(plan).into_iter().filter(is_of_host);
    // Two hosts may have a server of one name.
    let own: BTreeSet<&str> = movable.map(|row| row.original.as_str()).collect();
    let own: Vec<&str> = own.into_iter().collect();
    // What was not imported cannot be taken out.
    if answers.installs && !own.is_empty() && (answers.imports || !plan.has_work()) {
        let question = format!(
            "Take {} out of the hosts' files? If they stay, their tools are there twice.",
            one_line(&own.join(", "))
        );
        answers.takes_over = takes_over || agreement::agrees(output, &question).await;
    }
    answers
}

fn carry_out(
    context: &Context<'_>,
    options: &Init,
    plan: &mut Plan,
    hosts: &[&'static Host],
    folders: &Folders,
    answers: &Answers,
) -> Result<Done, Complaint> {
    plan.settle_inputs();
    if answers.imports && !options.dry_run {
        plan.write()?;
    }
    let mut done = Done::default();
    if answers.installs {
        let install = Install {
            hosts: Vec::new(),
            project: false,
            url: None,
            view: None,
            daemon: false,
            name: NAME.to_owned(),
            take_over: answers.takes_over,
            force: false,
            dry_run: options.dry_run,
            yes: true,
        };
        let entry = Installation {
            // Every entry that is Pegboard's already stays.
            existing: Existing::Kept,
            ..install::installation(&context.global, &install)?
        };
        for host in hosts {
            // All files of the host are tried first, and one that cannot be edited does not keep other hosts from it.
            let moved = answers.takes_over.then_some(&*plan);
            let edited = |is_dry| pegboard_hosts::install::install(host, &entry, false, folders, moved, is_dry);
            match edited(true).and_then(|_| edited(options.dry_run)) {
                Ok(changes) => done.changes.extend(changes),
                Err(error) => done.skipped.push((host, error.into())),
            }
        }
    }
    Ok(done)
}

/// The hosts and their servers.
fn overview(hosts: &[&'static Host], plan: &Plan) -> String {
    let names: Vec<&str> = hosts.iter().map(|host| host.title).collect();
    match names.is_empty() {
        // Files of other programs that use a host's form may be there all the same.
        true if plan.rows.is_empty() => "no host such as Claude, Cursor or VS Code was found\n".to_owned(),
        true => format!(
            "no host such as Claude, Cursor or VS Code was found\n{}",
            screen::text(plan)
        ),
        false => {
            let found = format!("found {}", names.join(", "));
            format!("{}\n{}", wrap_message(&found, output::width(), 0), screen::text(plan))
        }
    }
}

/// What comes next: the variables to set, with the servers that need them, and commands.
fn next(plan: &Plan, unset: &BTreeMap<String, Vec<String>>) -> String {
    let mut text = "next:\n".to_owned();
    let has_servers = !plan.rows.is_empty() || !plan.target.entries().is_empty();
    let stays = |server: &String| {
        let mut rows = plan.rows.iter();
        rows.any(|row| row.original == *server && matches!(row.action, Action::Refuse(_)))
    };
    let variables = unset.iter().flat_map(|(variable, servers)| {
        let names = one_line(&servers.join(", "));
        let stays = servers.iter().any(stays);
        let first = match names_secret(variable) {
            true if stays => (
                format!("pegboard secret set {variable}"),
                format!("stores what is needed by {names}"),
            ),
            true if agreement::can_ask() => (
                "pegboard doctor --fix".to_owned(),
                format!("asks for {variable}, which is needed by {names}, and keeps it"),
            ),
            _ => (
                format!("set {variable}"),
                format!("a variable that is needed by {names}"),
            ),
        };
        let second = stays.then(|| (TAKE_OVER.to_owned(), format!("moves {names} here then")));
        [Some(first), second].into_iter().flatten()
    });
    let commands = match has_servers {
        true => [
            ("pegboard doctor", "checks every server and says how to fix it"),
            ("pegboard tools", "lists the tools of all servers"),
            ("pegboard call SERVER.TOOL key=value", "calls one"),
        ],
        false => [
            ("pegboard tools", "lists the tools"),
            ("pegboard add time -- uvx mcp-server-time", "adds a server"),
            ("pegboard doctor", "checks it"),
        ],
    };
    let commands = commands.map(|(command, what)| (command.to_owned(), what.to_owned()));
    let lines: Vec<(String, String)> = variables.chain(commands).collect();
    let width = lines.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
    for (command, what) in lines {
        let _ = writeln!(text, "  {command:width$}  {what}");
    }
    text
}
