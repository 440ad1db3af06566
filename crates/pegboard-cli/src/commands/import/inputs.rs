//! Asks for the values that a host would ask its user for.

use std::collections::{BTreeMap, BTreeSet};

use pegboard_base::secret::names_secret;
use pegboard_hosts::{
    hosts::Input,
    import::{Plan, Row},
    secret_reference,
};
use tokio_util::sync::CancellationToken;

use crate::{
    commands::secret_prompt::{self, Need},
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
    for (id, input) in inputs {
        let value = match input.is_secret {
            true => ask_for_secret(plan, &input, output).await,
            // To us `$$` is an escaped `$`.
            false => answer(&input, output).await.map(|answer| answer.replace('$', "$$")),
        };
        if let Some(value) = value {
            plan.answers.insert(id, value);
        }
    }
}

/// Asks for a secret in the words of the other commands, stores it, and returns the reference to it.
async fn ask_for_secret(plan: &Plan, input: &Input, output: &Output) -> Option<String> {
    let needs = |row: &&Row| row.inputs.iter().any(|one| one.id == input.id);
    let rows = plan.rows.iter().filter(needs);
    let servers: BTreeSet<String> = rows.filter_map(Row::new_name).map(str::to_owned).collect();
    let servers: Vec<String> = servers.into_iter().collect();
    let name = input.variable();
    let need = Need {
        name: &name,
        servers: &servers,
        note: (!input.description.is_empty()).then(|| format!("It is described as: {}", input.description)),
    };
    match secret_prompt::ask_and_store(output, &need).await {
        true => Some(secret_reference(&name)),
        false => None,
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
    let reading = tokio::task::spawn_blocking(move || {
        let line = Keyboard::until(cancelled).next();
        drop(aside);
        line
    });
    let line = reading.await.ok()?.ok()??;
    match line.is_empty() {
        true => input.default.clone(),
        false => Some(line),
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
    for (variable, servers) in missing {
        let need = Need {
            name: &variable,
            servers: &servers,
            note: None,
        };
        if secret_prompt::ask_and_store(output, &need).await {
            plan.take_from_secret(&variable);
        }
    }
}
