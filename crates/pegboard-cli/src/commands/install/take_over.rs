//! Moves the servers of hosts into the config, after a person agreed.

use serde_json::{Map, Value, json};

use super::{
    edit::{self, Entry},
    remotes,
};
use crate::{
    cli::{Import, Install},
    commands::{
        agreement,
        context::{Context, Ending, interrupted, time_up},
        import::{
            self, inputs,
            plan::{Action, Plan, Row},
            write,
        },
    },
    exit::Exit,
    hosts::{self, Folders, Host},
    settings::Complaint,
};

/// What the notes of an import say about servers that would not work here.
const UNUSABLE: [&str; 3] = [
    "cannot be used as it is",
    "is known to the host only",
    "only the host can do that",
];
/// The settings that hold secrets.
const SECRETS: [&str; 10] = [
    "env",
    "env_file",
    "env_pass",
    "headers",
    "env_headers",
    "headers_helper",
    "bearer_token",
    "bearer_token_env_var",
    "auth",
    "oauth",
];

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
    entry: &Entry,
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
    leave_what_would_not_work(&mut plan, &options.name, asks)?;
    // The moves are tried too before anything is written.
    for host in hosts {
        edit::install(host, entry, options.project, folders, Some(&plan), true)?;
    }
    let is_shown = asks && plan.rows.iter().any(edit::is_moved);
    if is_shown {
        agree(context, &mut plan).await?;
    }
    plan.settle_inputs();
    if !options.dry_run {
        write::write(&plan)?;
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
            message: "you did not say yes, so nothing is changed".to_owned(),
            hint: None,
            exit: Exit::Refused,
        })),
        Ending::TimeUp => Err(Stop::Printed(context.print(time_up(&output, &nothing)).await)),
        Ending::Interrupted => Err(Stop::Printed(context.print(interrupted(&output, &nothing)).await)),
    }
}

/// Leaves a server in its host's file if it would not work here, or if the one that is here has other secrets.
pub(in crate::commands) fn leave_what_would_not_work(plan: &mut Plan, name: &str, asks: bool) -> Result<(), Complaint> {
    let mut known = plan.target.entries();
    for row in &mut plan.rows {
        if row.original == name && remotes::url_of(&row.from, name)?.is_some() {
            row.action = Action::Skip("Pegboard itself".to_owned());
        } else if let Some(reason) = unusable(row, asks) {
            row.action = Action::Refuse(format!("stays in the host: {reason}"));
        } else if let Some(name) = row.new_name() {
            known.insert(name.to_owned(), Value::Object(row.settings.clone()));
        } else if let Action::Same(name) = &row.action {
            let here = known.get(name).and_then(Value::as_object);
            if !here.is_some_and(|here| has_same_secrets(here, &row.settings)) {
                row.action = Action::Skip(format!("stays in the host: `{name}` has other variables or headers"));
            }
        }
    }
    Ok(())
}

/// Why a server would not work here.
fn unusable(row: &Row, asks: bool) -> Option<String> {
    if !edit::is_moved(row) {
        return None;
    }
    let is_sign = |note: &&String| UNUSABLE.iter().any(|sign| note.contains(sign));
    if let Some(note) = row.notes.iter().find(is_sign) {
        return Some(note.clone());
    }
    let is_open = |input: &&hosts::Input| !asks && std::env::var_os(input.variable()).is_none();
    let input = row.inputs.iter().find(is_open)?;
    Some(format!(
        "the variable {} is not set: {}",
        input.variable(),
        input.description
    ))
}

/// Whether two servers have the same values where secrets are.
fn has_same_secrets(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    SECRETS.iter().all(|key| one.get(*key) == other.get(*key))
}
