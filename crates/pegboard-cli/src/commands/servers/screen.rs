//! A server's settings on a few lines, secrets hidden.

use serde_json::Value;

use crate::output::{Table, one_line, shell_word};

/// The settings as a table of two columns, nothing cut off.
pub(super) fn lines(shown: &Value, more: &[(&str, String)]) -> String {
    let mut table = Table::with_indent(2);
    for (name, text) in rows(shown)
        .into_iter()
        .chain(more.iter().map(|(name, text)| ((*name).to_owned(), text.clone())))
    {
        table.row([name, one_line(&text)]);
    }
    table.render(None)
}

fn rows(shown: &Value) -> Vec<(String, String)> {
    let Some(settings) = shown.as_object() else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    if let Some(target) = target(shown) {
        let name = if settings.contains_key("url") { "url" } else { "command" };
        rows.push((name.to_owned(), target));
    }
    for key in ["cwd", "env", "headers"] {
        match settings.get(key) {
            Some(Value::Object(pairs)) => rows.extend(pairs.iter().map(|(name, value)| {
                let (name, mark) = (name.as_str(), if key == "env" { "=" } else { ": " });
                (key.to_owned(), format!("{name}{mark}{}", text(value)))
            })),
            Some(value) => rows.push((key.to_owned(), text(value))),
            None => {}
        }
    }
    let is_shown = |key: &str| ["command", "args", "url", "cwd", "env", "headers", "origin", "origins"].contains(&key);
    let rest = settings.iter().filter(|(key, _)| !is_shown(key));
    rows.extend(rest.map(|(key, value)| (key.clone(), text(value))));
    rows
}

/// The command line or the URL.
pub(in crate::commands) fn target(shown: &Value) -> Option<String> {
    if let Some(url) = shown["url"].as_str() {
        return Some(url.to_owned());
    }
    let words = |value: &Value| match value {
        Value::Array(items) => items.iter().map(text).collect(),
        Value::Null => Vec::new(),
        other => vec![text(other)],
    };
    let command: Vec<String> = [words(&shown["command"]), words(&shown["args"])].concat();
    let quoted = command.iter().map(|word| shell_word(word));
    (!command.is_empty()).then(|| quoted.collect::<Vec<_>>().join(" "))
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Object(pairs) => {
            let pairs = pairs.iter().map(|(name, value)| format!("{name}={}", text(value)));
            pairs.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}
