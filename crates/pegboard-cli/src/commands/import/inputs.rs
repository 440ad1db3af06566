//! Asks for the values that a host would ask its user for.

use std::collections::BTreeMap;

use pegboard::Secret;
use pegboard_base::secret::names_secret;
use pegboard_hosts::{hosts::Input, import::Plan, secret_reference};
use tokio_util::sync::CancellationToken;

use crate::{
    commands::secret_prompt,
    output::{Output, one_line},
    terminal::{Keyboard, Lines as _},
};

/// Asks for every input of the plan, once each. Without an answer, a variable takes its place.
pub(in crate::commands) async fn ask(plan: &mut Plan, output: &Output) {
    let rows = plan.rows.iter().filter(|row| row.new_name().is_some());
    let inputs: BTreeMap<String, Input> = rows
        .flat_map(|row| &row.inputs)
        .map(|input| (input.id.clone(), input.clone()))
        .collect();
    let has_place = !inputs.values().any(|input| input.is_secret) || secret_prompt::find_place(output).await;
    for (id, input) in inputs {
        if input.is_secret && !has_place {
            output.note(&format!(
                "{} is not asked for: set the variable {}",
                one_line(&input.description),
                input.variable()
            ));
            continue;
        }
        let Some(answer) = answer(&input, output).await else {
            continue;
        };
        let value = match input.is_secret {
            true => store(&input, &answer, output).await,
            // To us `$$` is an escaped `$`.
            false => Some(answer.replace('$', "$$")),
        };
        if let Some(value) = value {
            plan.answers.insert(id, value);
        }
    }
}

async fn answer(input: &Input, output: &Output) -> Option<String> {
    let cancelled = CancellationToken::new();
    let _cancels = cancelled.clone().drop_guard();
    let aside = output.hide_spinner();
    let mut question = one_line(&input.description);
    if !input.options.is_empty() {
        question.push_str(&format!(" ({})", one_line(&input.options.join(", "))));
    }
    if let Some(default) = &input.default {
        question.push_str(&format!(" [{}]", one_line(default)));
    }
    output.say(&format!("{question}: "));
    let is_secret = input.is_secret;
    let reading = tokio::task::spawn_blocking(move || {
        let mut keyboard = Keyboard::until(cancelled);
        let line = match is_secret {
            true => keyboard.next_hidden(),
            false => keyboard.next(),
        };
        drop(aside);
        line
    });
    let line = reading.await.ok()?.ok()??;
    match line.is_empty() {
        true => input.default.clone(),
        false => Some(line),
    }
}

/// Stores a secret of the user, and returns the reference to it. Where it cannot be stored it is forgotten, and a variable takes its place.
async fn store(input: &Input, secret: &str, output: &Output) -> Option<String> {
    let name = input.variable();
    match secret_prompt::store(&name, Secret::new(secret)).await {
        Ok(_) => Some(secret_reference(&name)),
        Err(reason) => {
            output.note(&format!(
                "the secret is not stored ({reason}), so a variable takes its place: set {name}"
            ));
            None
        }
    }
}

/// Asks for the secrets that the servers of a plan take from variables which are not set here, and has the config refer to them.
pub(in crate::commands) async fn ask_for_secrets(plan: &mut Plan, output: &Output) {
    if !secret_prompt::can_ask(output) {
        return;
    }
    let is_input = |variable: &String| {
        let mut inputs = plan.rows.iter().flat_map(|row| &row.inputs);
        inputs.any(|input| input.variable() == *variable)
    };
    let mut missing = plan.unset_variables();
    missing.retain(|variable, _| names_secret(variable) && !is_input(variable));
    if missing.is_empty() || !secret_prompt::find_place(output).await {
        return;
    }
    for (variable, servers) in missing {
        if secret_prompt::ask_and_store(output, &variable, &servers).await {
            plan.take_from_secret(&variable);
        }
    }
}
