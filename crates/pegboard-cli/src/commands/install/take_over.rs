//! Moves the servers of hosts into the config, after a person agreed.

use pegboard_hosts::{
    HostError,
    hosts::{self, Folders, Host},
    import::{Plan, Row},
    install::{self, Installation, leave_what_would_not_work},
};
use serde_json::json;

use super::options::Install;
use crate::{
    commands::{
        agreement,
        context::{Context, Ending, interruption_report, time_up},
        import::{self, Import, inputs},
    },
    exit::Exit,
    settings::Complaint,
};

/// Why an installation ends early.
pub(super) enum Stop {
    Complaint(Complaint),
    Printed(Exit),
}

impl From<Complaint> for Stop {
    fn from(complaint: Complaint) -> Self {
        Self::Complaint(complaint)
    }
}

impl From<HostError> for Stop {
    fn from(error: HostError) -> Self {
        Self::Complaint(error.into())
    }
}

/// What was taken over.
pub(super) struct TakenOver {
    pub(super) plan: Plan,
    /// Whether the person has seen the plan.
    pub(super) is_shown: bool,
}

/// Imports the servers of the hosts, after a person agreed. They are still in the hosts' files then.
pub(super) async fn take_over(
    context: &mut Context<'_>,
    options: &Install,
    entry: &Installation,
    folders: &Folders,
) -> Result<Option<TakenOver>, Stop> {
    let has_file = |host: &Host| match options.project {
        true => !host.project_files(folders).is_empty(),
        false => !host.user_files(folders).is_empty(),
    };
    let named = options.hosts.iter();
    let hosts: Vec<&'static Host> = named.clone().filter_map(|name| hosts::find(name)).collect();
    let names: Vec<String> = named
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
    let mut plan = import::prepare(&context.global, &from)?;
    let asks = !options.dry_run && !options.yes;
    leave_what_would_not_work(&mut plan, asks);
    // The moves are tried too before anything is written.
    for host in hosts {
        install::install(host, entry, options.project, folders, Some(&plan), true)?;
    }
    let is_shown = asks && plan.rows.iter().any(Row::can_move);
    if is_shown {
        agree(context, &mut plan).await?;
        // A secret that could not be stored is missing here.
        for left in leave_what_would_not_work(&mut plan, false) {
            context.output.note(&left);
        }
    }
    plan.settle_inputs();
    if !options.dry_run {
        plan.write()?;
    }
    Ok(Some(TakenOver { plan, is_shown }))
}

async fn agree(context: &mut Context<'_>, plan: &mut Plan) -> Result<(), Stop> {
    let output = context.output.clone();
    output.say(&import::screen::text(plan));
    if !agreement::can_ask() {
        return Err(Stop::Complaint(Complaint {
            message: "a person must agree to move servers, and there is no terminal to ask at".to_owned(),
            hint: Some("`--yes` moves them, `--dry-run` only lists them".to_owned()),
            exit: Exit::Refused,
        }));
    }
    let question = format!("Move them to {}, out of the host's file?", plan.file.display());
    let nothing = json!({"hosts": []});
    let asked = async {
        let is_agreed = agreement::agrees(&output, &question).await;
        if is_agreed {
            inputs::ask(plan, &output).await;
        }
        is_agreed
    };
    match context.work(asked).await {
        Ending::Done(true) => Ok(()),
        Ending::Done(false) => Err(Stop::Complaint(Complaint {
            message: "not confirmed, so nothing is changed".to_owned(),
            hint: None,
            exit: Exit::Refused,
        })),
        Ending::TimeUp => Err(Stop::Printed(context.print(time_up(&output, &nothing)).await)),
        Ending::Interrupted => Err(Stop::Printed(
            context.print(interruption_report(&output, &nothing)).await,
        )),
    }
}
