//! `pegboard install` and `uninstall`: enters Pegboard in the config files of hosts, and takes it out again.

pub(super) mod edit;
pub(super) mod program;
mod taken_over;

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{
    agreement,
    context::{Context, Ending, interrupted, time_up},
    import::{self, plan::Plan},
};
use crate::{
    cli::{Import, Install, Uninstall},
    exit::Exit,
    hosts::{self, Folders, HOSTS, Host},
    output::{Report, clean},
    settings::Complaint,
};
use edit::{Change, Entry};

/// Enters Pegboard in hosts.
pub(super) async fn install(mut context: Context<'_>, options: Install) -> Exit {
    match prepare(&mut context, &options).await {
        Ok((changes, plan)) => {
            let report = report(&context, &changes, plan.as_ref(), options.dry_run);
            context.print(report).await
        }
        Err(Stop::Complaint(complaint)) => context.refuse(&complaint, &json!({"hosts": []})).await,
        Err(Stop::Printed(exit)) => exit,
    }
}

/// Why an installation ends early.
enum Stop {
    Complaint(Complaint),
    Printed(Exit),
}

impl From<Complaint> for Stop {
    fn from(complaint: Complaint) -> Self {
        Self::Complaint(complaint)
    }
}

async fn prepare(context: &mut Context<'_>, options: &Install) -> Result<(Vec<Change>, Option<Plan>), Stop> {
    let folders = import::folders()?;
    let hosts = hosts_of(&options.hosts)?;
    let entry = Entry::new(&context.global, options)?;
    // Everything is tried first, so that nothing is half done when the last host cannot be written.
    for host in &hosts {
        edit::install(host, &entry, options.project, &folders, None, true)?;
    }
    let plan = match options.take_over {
        true => take_over(context, options, &folders).await?,
        false => None,
    };
    let mut changes = Vec::new();
    for host in &hosts {
        changes.extend(edit::install(
            host,
            &entry,
            options.project,
            &folders,
            plan.as_ref(),
            options.dry_run,
        )?);
    }
    Ok((changes, plan))
}

/// Imports the servers of the hosts, after a person agreed.
async fn take_over(context: &mut Context<'_>, options: &Install, folders: &Folders) -> Result<Option<Plan>, Stop> {
    let has_file = |host: &Host| match options.project {
        true => !host.project_files(folders).is_empty(),
        false => !host.user_files(folders).is_empty(),
    };
    let names = options.hosts.iter();
    let names: Vec<String> = names
        .filter(|name| hosts::find(name).is_some_and(has_file))
        .cloned()
        .collect();
    // Without a name, an import would read all hosts.
    if names.is_empty() {
        return Ok(None);
    }
    let from = Import {
        from: names,
        all: false,
        project: options.project,
        force: false,
        dry_run: options.dry_run,
        yes: options.yes,
    };
    let mut plan = import::prepare(context, &from)?;
    let has_moves = plan.rows.iter().any(edit::is_moved);
    if has_moves && !options.dry_run && !options.yes {
        let output = context.output.clone();
        output.say(&import::screen::text(&plan));
        if !agreement::can_ask() {
            return Err(Stop::Complaint(Complaint {
                message: "a person must agree to move servers, and there is no terminal to ask at".to_owned(),
                hint: Some("`--yes` moves them, `--dry-run` only lists them".to_owned()),
                exit: Exit::Refused,
            }));
        }
        let question = format!("Move them to {}, out of the host's file?", plan.file.display());
        let nothing = json!({"hosts": []});
        match context.work(agreement::agrees(&output, &question)).await {
            Ending::Done(true) => {}
            Ending::Done(false) => {
                return Err(Stop::Complaint(Complaint {
                    message: "you did not say yes, so nothing is changed".to_owned(),
                    hint: None,
                    exit: Exit::Refused,
                }));
            }
            Ending::TimeUp => return Err(Stop::Printed(context.print(time_up(&output, &nothing)).await)),
            Ending::Interrupted => return Err(Stop::Printed(context.print(interrupted(&output, &nothing)).await)),
        }
    }
    plan.settle_inputs();
    if !options.dry_run {
        import::write::write(&plan)?;
    }
    Ok(Some(plan))
}

/// Takes Pegboard out of hosts.
pub(super) async fn uninstall(mut context: Context<'_>, options: Uninstall) -> Exit {
    let done = || -> Result<Vec<Change>, Complaint> {
        let folders = import::folders()?;
        let mut changes = Vec::new();
        for host in hosts_of(&options.hosts)? {
            changes.extend(edit::uninstall(host, &options, &folders)?);
        }
        Ok(changes)
    };
    match done() {
        Ok(changes) => {
            let report = report(&context, &changes, None, options.dry_run);
            context.print(report).await
        }
        Err(complaint) => context.refuse(&complaint, &json!({"hosts": []})).await,
    }
}

fn hosts_of(names: &[String]) -> Result<Vec<&'static Host>, Complaint> {
    let find = |name: &String| {
        hosts::find(name).filter(|host| host.form.is_some()).ok_or_else(|| {
            let known: Vec<&str> = HOSTS
                .iter()
                .filter(|host| host.form.is_some())
                .map(|host| host.id)
                .collect();
            Complaint {
                message: match hosts::find(name) {
                    Some(host) => format!("{} is only imported from", host.title),
                    None => format!("`{name}` is not a known host"),
                },
                hint: Some(format!("the hosts are {}", known.join(", "))),
                exit: Exit::Usage,
            }
        })
    };
    names.iter().map(find).collect()
}

/// The hosts that are found here and can use Pegboard.
pub(super) fn present(folders: &Folders) -> Vec<&'static Host> {
    HOSTS
        .iter()
        .filter(|host| host.form.is_some() && host.is_present(folders))
        .collect()
}

fn report(context: &Context<'_>, changes: &[Change], plan: Option<&Plan>, is_dry: bool) -> Report {
    if context.output.is_json() {
        let hosts: Vec<Value> = changes.iter().map(Change::document).collect();
        let mut document = json!({"hosts": hosts, "dry_run": is_dry});
        if let Some(plan) = plan {
            document["taken_over"] = import::screen::document(plan, !is_dry);
        }
        return Report::json(Exit::Done, &document);
    }
    let mut report = Report::new(Exit::Done);
    report.data = text(changes, is_dry);
    for change in changes.iter().filter_map(|change| change.warning.as_deref()) {
        report = report.warning(change);
    }
    report
}

/// What was done, for people.
pub(super) fn text(changes: &[Change], is_dry: bool) -> String {
    let mut text = String::new();
    for change in changes {
        let _ = writeln!(text, "{}", clean(&change.sentence(is_dry)));
        for line in change.details() {
            let _ = writeln!(text, "  {}", clean(&line));
        }
    }
    text
}
