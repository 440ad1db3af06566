//! Moves the servers of hosts into the config, after a person agreed.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::edit::{self, Entry};
use crate::{
    cli::{Import, Install},
    commands::{
        agreement,
        context::{Context, Ending, interrupted, time_up},
        import::{
            self, inputs,
            plan::{Action, Plan, Row},
            usable, write,
        },
    },
    exit::Exit,
    hosts::{self, Folders, Host},
    settings::Complaint,
};

/// What the notes of an import say about servers that would not work here.
const UNUSABLE: [&str; 3] = ["cannot be used as it is", "only the host can do that", hosts::MISTYPED];
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
    leave_what_would_not_work(&mut plan, asks);
    // The moves are tried too before anything is written.
    for host in hosts {
        edit::install(host, entry, options.project, folders, Some(&plan), true)?;
    }
    let is_shown = asks && plan.rows.iter().any(edit::is_moved);
    if is_shown {
        agree(context, &mut plan).await?;
        // A secret that could not be stored is missing here.
        for left in leave_what_would_not_work(&mut plan, false) {
            context.output.note(&left);
        }
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

/// Leaves a server in its host's file if it would not work here, or if the one that is here has other secrets. Returns what is left, in
/// sentences. With `asks`, a person is asked for the inputs later.
pub(in crate::commands) fn leave_what_would_not_work(plan: &mut Plan, asks: bool) -> Vec<String> {
    let reasons = reasons(plan, asks);
    let mut left = Vec::new();
    for (row, reason) in plan.rows.iter_mut().zip(reasons) {
        if let Some(reason) = reason {
            left.push(format!("`{}` stays in {}: {reason}", row.original, row.host.title));
            row.action = Action::Refuse(format!("stays in the host: {reason}"));
        }
    }
    left
}

/// The servers of a plan that hosts start now and that would be moved.
pub(in crate::commands) fn movable(plan: &Plan) -> Vec<&Row> {
    let rows = plan.rows.iter().zip(reasons(plan, false));
    rows.filter(|(row, reason)| reason.is_none() && edit::is_moved(row) && is_in_use(&row.settings))
        .map(|(row, _)| row)
        .collect()
}

/// Why each server of a plan stays in its host.
fn reasons(plan: &Plan, asks: bool) -> Vec<Option<String>> {
    let mut known = plan.target.entries();
    let mut reason = |row: &Row| {
        let here = match &row.action {
            Action::Same(name) => known.get(name).and_then(Value::as_object),
            _ => None,
        };
        let reason = reason_to_stay(row, here, &plan.answers, asks);
        if let Some(name) = row.new_name().filter(|_| reason.is_none()) {
            known.insert(name.to_owned(), Value::Object(row.answered(&plan.answers)));
        }
        reason
    };
    plan.rows.iter().map(&mut reason).collect()
}

/// Why a server is not moved: it would not work here, or `here`, the one that is here already, is not the same.
pub(in crate::commands) fn reason_to_stay(
    row: &Row,
    here: Option<&Map<String, Value>>,
    answers: &BTreeMap<String, String>,
    asks: bool,
) -> Option<String> {
    if !edit::is_moved(row) {
        return None;
    }
    let is_sign = |note: &&String| UNUSABLE.iter().any(|sign| note.contains(sign));
    if let Some(note) = row.notes.iter().find(is_sign) {
        return Some(note.clone());
    }
    let Action::Same(name) = &row.action else {
        return unset(row, &row.answered(answers), asks);
    };
    let Some(here) = here else {
        return Some(format!("`{name}` is not imported"));
    };
    if !has_same_secrets(here, &row.settings) {
        return Some(format!("`{name}` has other variables or headers"));
    }
    if is_in_use(&row.settings) && !is_in_use(here) {
        return Some(format!("`{name}` is disabled here"));
    }
    unset(row, here, false)
}

/// The sentence about the variables that settings need and that are not set here.
fn unset(row: &Row, settings: &Map<String, Value>, asks: bool) -> Option<String> {
    let input = |variable: &String| row.inputs.iter().find(|input| input.variable() == *variable);
    let mut names = usable::unset(settings);
    names.retain(|name| !asks || input(name).is_none());
    match names.as_slice() {
        [] => None,
        [name] => Some(match input(name) {
            Some(input) => format!("the variable {name} is not set: {}", input.description),
            None => format!("the variable {name} is not set"),
        }),
        names => Some(format!("the variables {} are not set", names.join(", "))),
    }
}

fn is_in_use(settings: &Map<String, Value>) -> bool {
    settings.get("enabled") != Some(&Value::Bool(false))
}

/// Whether a server of ours has the values of one that was found where secrets are, or one for a value that the host asks its user for.
fn has_same_secrets(ours: &Map<String, Value>, found: &Map<String, Value>) -> bool {
    SECRETS
        .iter()
        .all(|key| is_same_or_asked(ours.get(*key), found.get(*key)))
}

fn is_same_or_asked(ours: Option<&Value>, found: Option<&Value>) -> bool {
    match (ours, found) {
        (Some(Value::String(_)), Some(Value::String(found))) if found.contains("${input:") => true,
        (Some(Value::Object(ours)), Some(Value::Object(found))) => {
            ours.len() == found.len()
                && found
                    .iter()
                    .all(|(key, value)| is_same_or_asked(ours.get(key), Some(value)))
        }
        (ours, found) => ours == found,
    }
}
