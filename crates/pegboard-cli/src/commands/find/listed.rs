//! How servers of a registry are shown: to people, and to programs.

use std::{fmt::Write as _, io};

use serde_json::{Value, json};

use crate::{
    output::{self, Paint, Table, one_line},
    registry::{Entry, Need, Status, Way, ways},
};

/// The servers for people.
pub(super) fn text(entries: &[Entry]) -> String {
    let paint = Paint::of(&io::stdout());
    let shown: Vec<String> = entries.iter().map(|entry| one(entry, paint)).collect();
    shown.join("\n")
}

fn one(entry: &Entry, paint: Paint) -> String {
    let name = paint.bold(&one_line(&entry.name));
    let mut text = format!("{name} {}", one_line(&entry.version));
    if let Status::Other(status) = &entry.status {
        let _ = write!(text, " ({})", one_line(status));
    }
    text.push('\n');
    for line in [Some(&entry.description), entry.status_message.as_ref()] {
        if let Some(line) = line.filter(|line| !line.is_empty()) {
            let _ = writeln!(text, "  {}", one_line(line));
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
    let mut table = Table::indented(2);
    for way in &ways {
        table.row([one_line(&way.kind), line(way)]);
        for need in way.needs.iter().filter(|need| need.is_required) {
            table.row([String::new(), needed(need)]);
        }
    }
    text + &table.render(output::width())
}

fn line(way: &Way) -> String {
    match &way.settings {
        Ok(_) => one_line(&way.shown),
        Err(why) => format!("{} ({})", one_line(&way.shown), one_line(why)),
    }
}

fn needed(need: &Need) -> String {
    let secret = if need.is_secret { ", a secret" } else { "" };
    let description = need.description.as_deref().map(|text| format!(": {}", one_line(text)));
    format!(
        "needs {}{secret}{}",
        one_line(&need.name),
        description.unwrap_or_default()
    )
}

/// One server for programs.
pub(super) fn json(entry: &Entry) -> Value {
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
