//! Changes of definitions as text: what the scanner found, and the lines that differ.

use pegboard::pin::{FieldChange, PinChange, PinState};
use serde_json::{Value, json};

use crate::output::{self, one_line};

/// The most flagged texts of a definition that are shown, and the most bytes of each.
const MAX_FLAGGED: usize = 8;
const MAX_FLAGGED_TEXT: usize = 4096;

/// The changes for people.
pub(super) fn texts(changes: &[PinChange]) -> String {
    let text: String = changes.iter().map(text).collect();
    output::clean(&text).into_owned()
}

/// One definition: its name and state, what the scanner found, and each field that differs.
fn text(change: &PinChange) -> String {
    let held = if change.held { ", held" } else { "" };
    let state = match change.state {
        PinState::Unchanged => "suspicious",
        PinState::NotAccepted => "never accepted",
        PinState::NewServer => "of a new server, not accepted yet",
        state => state.as_str(),
    };
    let mut text = format!("{} ({state}{held})\n", one_line(&change.name()));
    for finding in &change.findings {
        text.push_str(&format!(
            "  ! {}: {}\n",
            finding.severity.as_str(),
            one_line(&finding.to_string())
        ));
    }
    for (at, flagged) in find_flagged(change) {
        text.push_str(&format!("  {}, as it is\n", one_line(&at)));
        let lines = flagged
            .lines()
            .map(|line| format!("    | {}\n", one_line_with_indentation(line)));
        text.extend(lines);
    }
    if change.old.is_none() && change.state == PinState::Changed {
        text.push_str("  the pinned definition was too long to keep; this is the current one\n");
    }
    change
        .changed_fields()
        .iter()
        .filter(|field| field.field != "name")
        .for_each(|field| text.push_str(&lines(field)));
    text
}

/// The whole text of each place that the scanner flagged, unless it is among the fields that differ.
pub(super) fn find_flagged(change: &PinChange) -> Vec<(String, String)> {
    if change.state != PinState::Unchanged {
        return Vec::new();
    }
    let definition: Value = match change.tool {
        Some(_) => serde_json::from_str(&change.new).unwrap_or_default(),
        None => json!({"instructions": change.new}),
    };
    let mut shown: Vec<(String, String)> = Vec::new();
    for finding in &change.findings {
        let (at, value) = place(&definition, &finding.at);
        if shown.len() < MAX_FLAGGED && !shown.iter().any(|(known, _)| *known == at) {
            let mut text = match value {
                Value::String(text) => text.clone(),
                other => pretty(Some(&other.to_string())).join("\n"),
            };
            if text.len() > MAX_FLAGGED_TEXT {
                text.truncate(text.floor_char_boundary(MAX_FLAGGED_TEXT));
                text.push('…');
            }
            shown.push((at, text));
        }
    }
    shown
}

/// The innermost value on the way to a place in a definition, and the way to it. Names with dots end the way early.
fn place<'a>(definition: &'a Value, at: &str) -> (String, &'a Value) {
    let (mut way, mut value) = (Vec::new(), definition);
    for step in at.split('.') {
        match value.get(step) {
            Some(inner) => {
                way.push(step);
                value = inner;
            }
            None => break,
        }
    }
    match way.is_empty() {
        true => ("definition".to_owned(), definition),
        false => (way.join("."), value),
    }
}

/// The lines of a field that differ.
fn lines(field: &FieldChange) -> String {
    let (old, new) = (pretty(field.old.as_deref()), pretty(field.new.as_deref()));
    let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[start..], &new[start..]);
    let end = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(|(old, new)| old == new)
        .count();
    let removed = old[..old.len() - end]
        .iter()
        .map(|line| format!("    - {}\n", one_line_with_indentation(line)));
    let added = new[..new.len() - end]
        .iter()
        .map(|line| format!("    + {}\n", one_line_with_indentation(line)));
    let changed: String = removed.chain(added).collect();
    format!("  {}\n{changed}", one_line(&field.field))
}

/// The lines of a text; JSON is formatted.
fn pretty(text: Option<&str>) -> Vec<String> {
    let Some(text) = text else {
        return Vec::new();
    };
    let tree: Option<Value> = serde_json::from_str(text)
        .ok()
        .filter(|tree: &Value| tree.is_object() || tree.is_array());
    let formatted = tree.and_then(|tree| serde_json::to_string_pretty(&tree).ok());
    formatted
        .as_deref()
        .unwrap_or(text)
        .lines()
        .map(str::to_owned)
        .collect()
}

/// A line without control characters, with its indentation.
fn one_line_with_indentation(line: &str) -> String {
    let indentation = line.len() - line.trim_start_matches(' ').len();
    format!("{}{}", " ".repeat(indentation), one_line(line.trim_start_matches(' ')))
}
