//! `pegboard init`: finds hosts, imports their servers, and enters Pegboard in them.

use std::fmt::Write as _;

use serde_json::json;

use super::{
    agreement,
    context::{Context, Ending, interrupted, time_up},
    import::{self, inputs, plan::Plan, screen, write},
    install::{self, Done, edit},
};
use crate::{
    cli::{Import, Init, Install},
    exit::Exit,
    hosts::{Folders, Host},
    output::Report,
    settings::Complaint,
};

/// Sets Pegboard up. Nothing is started.
pub(super) async fn run(mut context: Context<'_>, options: Init) -> Exit {
    let nothing = json!({"file": null, "imported": null, "hosts": []});
    if !options.yes && !options.dry_run && !agreement::can_ask() {
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
    let prepared = prepare(&context, &options);
    let (folders, mut plan) = match prepared {
        Ok(prepared) => prepared,
        Err(complaint) => return context.refuse(&complaint, &nothing).await,
    };
    let hosts = install::present(&folders);
    let is_asking = !options.yes && !options.dry_run;
    let mut answers = Answers {
        imports: true,
        installs: true,
    };
    if is_asking {
        let asked = ask(&mut plan, &hosts, &output);
        match context.work(asked).await {
            Ending::Done(given) => answers = given,
            Ending::TimeUp => return context.print(time_up(&output, &nothing)).await,
            Ending::Interrupted => return context.print(interrupted(&output, &nothing)).await,
        }
    }
    let done = carry_out(&context, &options, &mut plan, &hosts, &folders, &answers);
    let report = match done {
        Err(complaint) => return context.refuse(&complaint, &nothing).await,
        Ok(done) => {
            let is_written = answers.imports && !options.dry_run && plan.has_work();
            let is_something = !done.changes.is_empty() || (answers.imports && plan.has_work());
            let exit = match is_something || done.skipped.is_empty() {
                true => Exit::Done,
                false => Exit::ToolError,
            };
            let mut warnings = screen::warnings(&plan, is_written);
            warnings.extend(done.warnings());
            if output.is_json() {
                let hosts: Vec<_> = done.changes.iter().map(edit::Change::document).collect();
                let document = json!({
                    "file": plan.file, "imported": screen::document(&plan, is_written), "hosts": hosts, "skipped": done.skipped(),
                    "dry_run": options.dry_run,
                });
                with_warnings(Report::json(exit, &document), &warnings)
            } else {
                let mut report = Report::new(exit);
                if !is_asking {
                    report.data = format!("{}\n{}", found(&hosts), screen::text(&plan));
                }
                if answers.imports {
                    report
                        .data
                        .push_str(&screen::ending(&plan, is_written).replace("next: pegboard tools\n", ""));
                }
                report.data.push_str(&install::text(&done.changes, options.dry_run));
                report.data.push_str(&next(&plan));
                with_warnings(report, &warnings)
            }
        }
    };
    context.print(report).await
}

fn with_warnings(report: Report, warnings: &[String]) -> Report {
    warnings.iter().fold(report, |report, warning| report.warning(warning))
}

/// What the person agreed to.
struct Answers {
    imports: bool,
    installs: bool,
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

async fn ask(plan: &mut Plan, hosts: &[&'static Host], output: &crate::output::Output) -> Answers {
    output.say(&format!("{}\n", found(hosts)));
    output.say(&screen::text(plan));
    let mut answers = Answers {
        imports: false,
        installs: false,
    };
    if plan.has_work() {
        let question = format!("Write {} to {}?", screen::count(plan), plan.file.display());
        answers.imports = agreement::agrees(output, &question).await;
        if answers.imports {
            inputs::ask(plan, output).await;
        }
    }
    if !hosts.is_empty() {
        let names: Vec<&str> = hosts.iter().map(|host| host.title).collect();
        let question = format!("Make {} use Pegboard? Each file is backed up first.", names.join(", "));
        answers.installs = agreement::agrees(output, &question).await;
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
        write::write(plan)?;
    }
    let mut done = Done::default();
    if answers.installs {
        let install = Install {
            hosts: Vec::new(),
            project: false,
            url: None,
            view: None,
            daemon: false,
            name: "pegboard".to_owned(),
            take_over: false,
            force: false,
            dry_run: options.dry_run,
            yes: true,
        };
        let entry = edit::Entry::new(&context.global, &install)?.keeping();
        for host in hosts {
            // All files of the host are tried first, and one that cannot be edited does not keep other hosts from it.
            let edited = |is_dry| edit::install(host, &entry, false, folders, None, is_dry);
            match edited(true).and_then(|_| edited(options.dry_run)) {
                Ok(changes) => done.changes.extend(changes),
                Err(complaint) => done.skipped.push((host, complaint)),
            }
        }
    }
    Ok(done)
}

fn found(hosts: &[&'static Host]) -> String {
    let names: Vec<&str> = hosts.iter().map(|host| host.title).collect();
    match names.is_empty() {
        true => "no host such as Claude, Cursor or VS Code was found".to_owned(),
        false => format!("found {}", names.join(", ")),
    }
}

/// The commands that come next.
fn next(plan: &Plan) -> String {
    let mut text = "next:\n".to_owned();
    let has_servers = !plan.rows.is_empty();
    let lines = match has_servers {
        true => [
            ("pegboard doctor", "checks every server and says how to mend it"),
            ("pegboard tools", "lists the tools of all servers"),
            ("pegboard call SERVER.TOOL key=value", "calls one"),
        ],
        false => [
            ("pegboard tools", "lists the tools of the built-in demo server"),
            ("pegboard add time -- uvx mcp-server-time", "adds a server"),
            ("pegboard doctor", "checks it"),
        ],
    };
    let width = lines.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
    for (command, what) in lines {
        let _ = writeln!(text, "  {command:width$}  {what}");
    }
    text
}
