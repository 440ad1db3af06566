//! Shows an import: as a table for people, and as a document for programs.

use std::fmt::Write as _;

use pegboard::{Config, Env, Format, Secret, config::Source};
use pegboard_hosts::import::{Action, Plan, Row};
use serde_json::{Map, Value, json};

use crate::output::{self, Table, one_line, path_text};

/// Stands for the values of variables: a text that no host has.
const VARIABLE: &str = "https://variable.pegboard.invalid";

/// The table of all servers, with notes below it, and with the reasons that a narrow terminal has no room for.
pub(in crate::commands) fn text(plan: &Plan) -> String {
    let mut text = String::new();
    if plan.rows.is_empty() {
        // What cannot be read is in the warnings, and may have servers.
        let _ = match plan.files.saturating_sub(plan.unreadable.len()) {
            0 if !plan.unreadable.is_empty() => Ok(()),
            0 => writeln!(text, "no config file of a host was found"),
            1 => writeln!(text, "the host's config file has no servers"),
            files => writeln!(text, "{files} config files of hosts were read, and none has servers"),
        };
        return text;
    }
    let mut table = Table::with_indent(0);
    table.row(["SERVER", "FROM", "IMPORT", "TARGET"].map(str::to_owned));
    for row in &plan.rows {
        let name = row.new_name().unwrap_or(&row.original);
        let target = match &row.action {
            Action::Skip(reason) | Action::Refuse(reason) => reason.as_str(),
            _ => row.target.as_str(),
        };
        table.row([one_line(name), one_line(&row.label), word(row), one_line(target)]);
    }
    let width = output::width();
    text.push_str(&table.render(width));
    for row in &plan.rows {
        if let Action::Skip(reason) | Action::Refuse(reason) = &row.action
            && !table.has_room(&one_line(reason), width)
        {
            let _ = writeln!(text, "  {}: {}", one_line(&row.original), one_line(reason));
        }
    }
    for row in plan.rows.iter().filter(|row| row.new_name().is_some()) {
        for note in &row.notes {
            let _ = writeln!(text, "  {}: {}", row.new_name().unwrap_or_default(), one_line(note));
        }
        for input in &row.inputs {
            let name = row.new_name().unwrap_or_default();
            let _ = writeln!(text, "  {name}: needs a value: {}", one_line(&input.description));
        }
    }
    text
}

fn word(row: &Row) -> String {
    let is_off = row.settings.get("enabled") == Some(&Value::Bool(false));
    match &row.action {
        Action::Add(_) if is_off => "new, disabled".to_owned(),
        Action::Add(_) => "new".to_owned(),
        Action::Replace(_) => "replaces".to_owned(),
        Action::Same(name) => format!("same as {name}"),
        Action::Skip(_) => "no".to_owned(),
        Action::Refuse(_) => "cannot".to_owned(),
    }
}

/// How many servers are written, in words.
pub(in crate::commands) fn count(plan: &Plan) -> String {
    match plan.rows.iter().filter(|row| row.new_name().is_some()).count() {
        1 => "1 server".to_owned(),
        count => format!("{count} servers"),
    }
}

/// The last lines: what was written, and what to do next.
pub(in crate::commands) fn render_ending(plan: &Plan, is_written: bool) -> String {
    let file = plan.file.display();
    match (is_written, plan.has_work()) {
        (true, _) => format!("{} written to {file}\nnext: pegboard doctor\n", count(plan)),
        (false, true) => format!("{} would be written to {file}\n", count(plan)),
        (false, false) => String::new(),
    }
}

/// Files that cannot be read, and secrets that are copied.
pub(in crate::commands) fn warnings(plan: &Plan, is_written: bool) -> Vec<String> {
    let mut warnings: Vec<String> = plan
        .unreadable
        .iter()
        // The problem names the file.
        .map(|(_, problem)| format!("a host's file cannot be read: {problem}"))
        .collect();
    let new = plan.rows.iter().filter(|row| is_written && row.new_name().is_some());
    let holders: Vec<&str> = new
        .filter(|row| has_secret(&row.settings))
        .filter_map(Row::new_name)
        .collect();
    if !holders.is_empty() {
        warnings.push(format!(
            "{} now has the secrets of {} in clear text, readable only by you; to keep them out of the file, use `pegboard secret set NAME` and \
             write `${{secret:NAME}}` in place of each",
            plan.file.display(),
            holders.join(", "),
        ));
    }
    warnings
}

/// Whether a secret is written in the settings, as the library decides it for masking. One that comes from a variable is not written there.
fn has_secret(settings: &Map<String, Value>) -> bool {
    let env = Env::new(|_| Some(VARIABLE.to_owned())).keyring(|_, _| Ok(VARIABLE.to_owned()));
    let mut used = settings.clone();
    // A server that is not used now has secrets too.
    for key in ["enabled", "env_file"] {
        used.remove(key);
    }
    let text = json!({"servers": {"it": used}}).to_string();
    let loaded = Config::load(&[Source::text("import", text, Some(Format::Json))], &env);
    if !loaded.config.misconfigured.is_empty() {
        return ["env", "headers"].iter().any(|key| settings.contains_key(*key));
    }
    let secrets = loaded.config.secrets();
    let is_written = |secret: &Secret| settings.values().any(|value| contains(value, secret.expose()));
    secrets.iter().any(is_written)
}

fn contains(value: &Value, part: &str) -> bool {
    match value {
        Value::String(text) => text.contains(part),
        Value::Array(list) => list.iter().any(|value| contains(value, part)),
        Value::Object(table) => table.values().any(|value| contains(value, part)),
        _ => false,
    }
}

/// The document for programs. Settings are not in it: they may hold secrets.
pub(in crate::commands) fn document(plan: &Plan, is_written: bool) -> Value {
    let servers: Vec<Value> = plan.rows.iter().map(server).collect();
    let unreadable = plan.unreadable.iter();
    let unreadable: Vec<Value> = unreadable
        .map(|(path, problem)| json!({"file": path_text(path), "error": problem}))
        .collect();
    json!({"file": path_text(&plan.file), "written": is_written, "servers": servers, "unreadable": unreadable, "warnings": warnings(plan, is_written)})
}

fn server(row: &Row) -> Value {
    let (action, name, reason) = match &row.action {
        Action::Add(name) => ("add", Some(name), None),
        Action::Replace(name) => ("replace", Some(name), None),
        Action::Same(name) => ("same", Some(name), None),
        Action::Skip(reason) => ("skip", None, Some(reason)),
        Action::Refuse(reason) => ("refuse", None, Some(reason)),
    };
    let inputs: Vec<Value> = row
        .inputs
        .iter()
        .map(|input| json!({"id": input.id, "description": input.description}))
        .collect();
    json!({
        "host": row.host.id,
        "from": path_text(&row.from),
        "original": row.original,
        "action": action,
        "name": name,
        "reason": reason,
        "target": row.target,
        "notes": row.notes,
        "inputs": inputs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_that_are_not_plainly_public_are_secrets() {
        for (settings, expected) in [
            (
                json!({"command": "x", "env": {"LOG_LEVEL": "debug", "MAX_TOKENS": "4096", "KEYBOARD": "de_DE"}}),
                false,
            ),
            (
                json!({"command": "x", "env": {"API_KEY": "${API_KEY}", "KEY_FILE": "/home/me/key.pem"}}),
                false,
            ),
            (
                json!({"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}),
                false,
            ),
            (json!({"command": "x", "env": {"API_KEY": "abc123"}}), true),
            (
                json!({"command": "x", "args": ["--token", "ghp_0123456789abcdefghijABCDEFGHIJ012345"]}),
                true,
            ),
            (
                json!({"url": "https://x.example/mcp?api_key=0f8fad5bd9cb469fa165", "type": "http"}),
                true,
            ),
            (
                json!({"url": "https://x.example/mcp", "headers": {"Authorization": "Bearer abc.def"}}),
                true,
            ),
            (json!({"url": "https://x.example/mcp", "bearer_token": "abcdef"}), true),
        ] {
            assert_eq!(has_secret(settings.as_object().unwrap()), expected, "{settings}");
        }
    }
}
