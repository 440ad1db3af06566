//! How servers of a registry are shown: to people, and to programs.

use std::{fmt::Write as _, io};

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr as _;

use crate::{
    output::{self, Paint, one_line, wrap},
    registry::{Need, RegistryEntry, Status, Way, ways},
};

/// The least width of a text, however narrow the terminal.
const MIN_TEXT: usize = 30;

/// The servers for people.
pub(super) fn text(entries: &[RegistryEntry]) -> String {
    let paint = Paint::detect(&io::stdout());
    let shown: Vec<String> = entries.iter().map(|entry| one(entry, paint)).collect();
    shown.join("\n")
}

fn one(entry: &RegistryEntry, paint: Paint) -> String {
    let name = paint.bold(&one_line(&entry.name));
    let mut text = format!("{name} {}", one_line(&entry.version));
    if let Status::Other(status) = &entry.status {
        let _ = write!(text, " ({})", one_line(status));
    }
    text.push('\n');
    for line in [Some(&entry.description), entry.status_message.as_ref()] {
        if let Some(line) = line.filter(|line| !line.is_empty()) {
            let room = output::width().map(|width| width.saturating_sub(2).max(MIN_TEXT));
            let _ = writeln!(text, "  {}", wrap(&one_line(line), room, 2));
        }
    }
    let ways = ways(entry, &Default::default());
    if ways.is_empty() {
        let website = entry.website.as_deref().map(one_line);
        let _ = writeln!(
            text,
            "  nothing to run{}",
            website.map(|url| format!("; see {url}")).unwrap_or_default()
        );
        return text;
    }
    // Commands are copied, so that nothing is cut off.
    let widest = ways.iter().map(|way| one_line(&way.kind).width()).max().unwrap_or(0);
    let indent = 2 + widest + 2;
    let room = output::width().map(|width| width.saturating_sub(indent).max(MIN_TEXT));
    for way in &ways {
        let kind = one_line(&way.kind);
        let padding = " ".repeat(indent - 2 - kind.width());
        let _ = writeln!(text, "  {kind}{padding}{}", wrap(&line(way), room, indent));
        for need in way.needs.iter().filter(|need| need.is_required) {
            let _ = writeln!(
                text,
                "{}{}",
                " ".repeat(indent),
                wrap(&describe_need(need), room, indent)
            );
        }
    }
    text
}

fn line(way: &Way) -> String {
    match &way.settings {
        Ok(_) => one_line(&way.shown),
        Err(why) => format!("{} ({})", one_line(&way.shown), one_line(why)),
    }
}

fn describe_need(need: &Need) -> String {
    let secret = if need.is_secret { ", a secret" } else { "" };
    let description = need.description.as_deref().map(|text| format!(": {}", one_line(text)));
    format!(
        "needs {}{secret}{}",
        one_line(&need.name),
        description.unwrap_or_default()
    )
}

/// One server for programs.
pub(super) fn json(entry: &RegistryEntry) -> Value {
    let status = match &entry.status {
        Status::Active => "active",
        Status::Other(status) => status,
    };
    json!({
        "name": entry.name,
        "title": entry.title,
        "description": entry.description,
        "version": entry.version,
        "status": status,
        "status_message": entry.status_message,
        "published_at": entry.published_at,
        "website": entry.website,
        "ways": ways(entry, &Default::default()).iter().map(way_json).collect::<Vec<_>>(),
    })
}

fn way_json(way: &Way) -> Value {
    json!({
        "kind": way.kind,
        "shown": way.shown,
        "settings": way.settings.as_ref().ok(),
        "problem": way.settings.as_ref().err(),
        "needs": way.needs.iter().map(need_json).collect::<Vec<_>>(),
    })
}

pub(super) fn need_json(need: &Need) -> Value {
    json!({
        "name": need.name,
        "description": need.description,
        "required": need.is_required,
        "secret": need.is_secret,
    })
}
