//! Decides which servers of hosts can be moved into the config.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{
    hosts::MISTYPED,
    import::{self, Action, Plan, Row},
};

/// What the notes of an import say about servers that would not work here.
const UNUSABLE: [&str; 3] = ["cannot be used as it is", "only the host can do that", MISTYPED];
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

/// Leaves a server in its host's file if it would not work here, or if the one that is here has other secrets. Returns what is left, in
/// sentences. With `asks`, a person is asked for the inputs later.
pub fn leave_what_would_not_work(plan: &mut Plan, asks: bool) -> Vec<String> {
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
pub fn find_movable(plan: &Plan) -> Vec<&Row> {
    let rows = plan.rows.iter().zip(reasons(plan, false));
    rows.filter(|(row, reason)| reason.is_none() && row.can_move() && is_in_use(&row.settings))
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
            known.insert(name.to_owned(), Value::Object(row.settings_with_answers(&plan.answers)));
        }
        reason
    };
    plan.rows.iter().map(&mut reason).collect()
}

/// Why a server is not moved: it would not work here, or `here`, the one that is here already, is not the same.
pub fn reason_to_stay(
    row: &Row,
    here: Option<&Map<String, Value>>,
    answers: &BTreeMap<String, String>,
    asks: bool,
) -> Option<String> {
    if !row.can_move() {
        return None;
    }
    let is_sign = |note: &&String| UNUSABLE.iter().any(|sign| note.contains(sign));
    if let Some(note) = row.notes.iter().find(is_sign) {
        return Some(note.clone());
    }
    let Action::Same(name) = &row.action else {
        return describe_unset(row, &row.settings_with_answers(answers), asks);
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
    describe_unset(row, here, false)
}

/// The sentence about the variables that settings need and that are not set here.
fn describe_unset(row: &Row, settings: &Map<String, Value>, asks: bool) -> Option<String> {
    let input = |variable: &String| row.inputs.iter().find(|input| input.variable() == *variable);
    let mut names = import::find_unset(settings);
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
