//! The backups of a host's file, which have the text that it had before.

use std::path::Path;

use serde_json::Value;

use crate::document::{Document, Format};

/// The smallest number that no integer of the formats holds.
const LARGE: f64 = 9_223_372_036_854_775_808.0;

/// Whether a backup of a file has this content.
pub(super) fn has(file: &Path, content: &str) -> bool {
    texts(file).iter().any(|text| text == content)
}

/// Gives a document with restored entries the text of a backup that says the same: with dates, large numbers and the order of keys, which are
/// not remembered. Not if comments were added since: `remaining` is the text without the restored entries.
pub(super) fn take(document: &mut Document, remaining: &str, file: &Path) -> bool {
    let format = document.format();
    let Some(comments) = format.comments(remaining) else {
        return false;
    };
    let mut texts = texts(file).into_iter();
    texts.any(|text| has_comments(&text, format, &comments) && document.take_text(&text))
}

/// Whether an entry may have lost something on its way through a tree of JSON.
pub(super) fn is_inexact(entry: &Value, format: Format) -> bool {
    match entry {
        Value::Array(items) => items.iter().any(|item| is_inexact(item, format)),
        Value::Object(table) => table.values().any(|value| is_inexact(value, format)),
        Value::String(text) => format == Format::Toml && text.parse::<toml::value::Datetime>().is_ok(),
        Value::Number(number) => number.is_f64() && number.as_f64().is_some_and(|number| number.abs() >= LARGE),
        _ => false,
    }
}

/// Whether a backup has all these comments.
fn has_comments(backup: &str, format: Format, comments: &[String]) -> bool {
    let Some(mut known) = format.comments(backup) else {
        return false;
    };
    comments.iter().all(|comment| {
        let place = known.iter().position(|one| one == comment);
        place.map(|place| known.swap_remove(place)).is_some()
    })
}

/// The texts of the backups, the newest first.
fn texts(file: &Path) -> Vec<String> {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name().and_then(|name| name.to_str())) else {
        return Vec::new();
    };
    let prefix = format!("{name}.bak-");
    let found = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut backups: Vec<_> = found
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
        .collect();
    backups.sort_by_key(|entry| std::cmp::Reverse(entry.file_name()));
    let read = backups
        .iter()
        .filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    read.collect()
}
