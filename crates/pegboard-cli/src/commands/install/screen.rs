//! Shows the changes of hosts' files: as sentences for people, and as a document for programs.

use std::fmt::Write as _;

use pegboard_hosts::install::{Change, Effect};
use serde_json::{Value, json};

use crate::output::{clean, path_text};

/// What was done, for people.
pub(in crate::commands) fn text(changes: &[Change], is_dry: bool) -> String {
    let mut text = String::new();
    for change in changes {
        let _ = writeln!(text, "{}", clean(&sentence(change, is_dry)));
        for line in details(change) {
            let _ = writeln!(text, "  {}", clean(&line));
        }
    }
    text
}

/// One change, for programs.
pub(in crate::commands) fn document(change: &Change) -> Value {
    json!({
        "host": change.host.id,
        "file": path_text(&change.file),
        "action": word(change.effect),
        "name": change.name,
        "target": change.target,
        "backup": change.backup.as_deref().map(path_text),
        "moved": change.moved,
        "warnings": change.warnings,
        "reload": change.host.reload,
    })
}

fn word(effect: Effect) -> &'static str {
    match effect {
        Effect::Added => "added",
        Effect::Updated => "updated",
        Effect::Unchanged => "unchanged",
        Effect::Removed => "removed",
        Effect::Restored => "restored",
        Effect::Absent => "absent",
    }
}

fn sentence(change: &Change, is_dry: bool) -> String {
    let (title, file) = (change.host.title, change.file.display());
    let would = if is_dry { "would be " } else { "" };
    let target = change.target.as_deref().unwrap_or_default();
    match change.effect {
        Effect::Added | Effect::Updated => format!("{title}: {would}{} in {file}: {target}", word(change.effect)),
        Effect::Unchanged => format!("{title}: has it already, in {file}"),
        Effect::Removed => format!("{title}: {would}removed from {file}"),
        Effect::Restored => format!("{title}: {would}restored in {file}"),
        Effect::Absent => format!("{title}: does not use Pegboard"),
    }
}

fn details(change: &Change) -> Vec<String> {
    let mut lines = Vec::new();
    if !change.moved.is_empty() {
        let way = match change.effect {
            Effect::Removed | Effect::Restored => "put back",
            _ => "taken over",
        };
        lines.push(format!("{way}: {}", change.moved.join(", ")));
    }
    let backup = change.backup.iter();
    lines.extend(backup.map(|backup| format!("backup: {}", backup.display())));
    // An entry that was there already may have lost servers beside it.
    if !matches!(change.effect, Effect::Unchanged | Effect::Absent) || !change.moved.is_empty() {
        lines.push(format!("to apply it: {}", change.host.reload));
    }
    lines
}
