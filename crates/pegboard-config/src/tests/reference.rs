//! `docs/reference/config.md`, made from the table of fields.

use std::{fmt::Write as _, path::Path, time::Duration};

use super::*;
use crate::field::{Applies, Effect, Field, Section, Usage, ValueKind, Via};

/// Set to rewrite the page instead of comparing it.
const BLESS: &str = "PEGBOARD_BLESS";

const HEAD: &str = "\
# Config reference

Every setting of a config file, made from the table that files are validated against. [Config files](../concepts/config.md) explains where files are
found and which value wins; `pegboard config explain SERVER.SETTING` shows a value with its origin.

Keys may also be written in camel case or kebab case, and a duration may have its unit in the key (`callTimeoutMs = 500`). A *duration* is a text such as
`\"500ms\"`, `\"30s\"` or `\"1h30m\"`, a *size* a number of bytes or a text such as `\"8MiB\"`. A *secret* is a text that is never shown. *Processes* are servers with a
`command`, *URLs* are servers with a `url`. A change of a setting with ↻ replaces the connection to a running server when the file is loaded again;
other changes apply at once. The first table has the settings that most files need.
";

const COLUMNS: &str = "| setting | type | default | applies to | meaning |\n| --- | --- | --- | --- | --- |";

const TOP: &str = "\
Settings of the board, and settings for every server whose own table does not set them. The defaults of the latter are those of a server.";

#[test]
fn the_reference_page_shows_the_table_of_fields() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/config.md");
    let page = page();
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = page
        .lines()
        .zip(written.lines())
        .find(|(page, written)| page != written);
    assert!(
        page == written,
        "{} is out of date, first in {differs:#?}; rewrite it with {BLESS}=1",
        file.display()
    );
}

fn page() -> String {
    let mut sections = Vec::new();
    collect(fields::TOP, "", &mut sections);
    collect(fields::SERVER, "servers.NAME", &mut sections);
    let mut page = HEAD.to_owned();
    write_common(&mut page);
    for (section, places) in &sections {
        let places: Vec<String> = places.iter().map(|place| format!("`{place}`")).collect();
        let _ = match section.name {
            "config" => writeln!(page, "\n## {}\n\n{TOP}", title(section)),
            _ => writeln!(page, "\n## {}\n\nIn {}.", title(section), places.join(", ")),
        };
        write_fields(section, &mut page);
    }
    page
}

/// The sections in the order in which they are first used, each with the places of its tables.
fn collect(section: &'static Section, at: &str, sections: &mut Vec<(&'static Section, Vec<String>)>) {
    match sections.iter_mut().find(|(known, _)| std::ptr::eq(*known, section)) {
        Some((_, places)) => places.push(at.to_owned()),
        None => sections.push((section, vec![at.to_owned()])),
    }
    for field in section.fields() {
        let at = if at.is_empty() {
            field.name.to_owned()
        } else {
            format!("{at}.{}", field.name)
        };
        descend(&field.kind, &at, sections);
    }
}

fn descend(kind: &ValueKind, at: &str, sections: &mut Vec<(&'static Section, Vec<String>)>) {
    match kind {
        ValueKind::Table(section) => collect(section, at, sections),
        ValueKind::Map(kind) => descend(kind, &format!("{at}.NAME"), sections),
        ValueKind::List(kind) => descend(kind, &format!("{at}[]"), sections),
        ValueKind::Either(kinds) => kinds.iter().for_each(|kind| descend(kind, at, sections)),
        _ => {}
    }
}

fn title(section: &Section) -> String {
    match section.name {
        "config" => "The top of the file".to_owned(),
        "server" => "A server".to_owned(),
        name => format!("`{name}`"),
    }
}

fn write_fields(section: &Section, page: &mut String) {
    let _ = writeln!(page, "\n{COLUMNS}");
    let (foreign, ours): (Vec<&Field>, Vec<&Field>) =
        section.fields().partition(|field| field.effect == Effect::Foreign);
    let (of_presets, ours): (Vec<&Field>, Vec<&Field>) =
        ours.into_iter().partition(|field| field.usage == Usage::Presets);
    write_rows(section, &ours, page);
    if !of_presets.is_empty() {
        let _ = writeln!(
            page,
            "\nSet by presets, to act as the program that they are named after:\n\n{COLUMNS}"
        );
        write_rows(section, &of_presets, page);
    }
    if !foreign.is_empty() {
        let names: Vec<String> = foreign.iter().map(|field| format!("`{}`", field.name)).collect();
        let _ = writeln!(
            page,
            "\nKeys of other programs, accepted without effect: {}.",
            names.join(", ")
        );
    }
}

fn write_rows(section: &Section, fields: &[&Field], page: &mut String) {
    for field in fields {
        let default = redact::render_default(field.default).map_or_else(String::new, |default| format!("`{default}`"));
        let row = [
            &format!("`{}`", field.name),
            &kind_text(&field.kind),
            &default,
            &applies(section, field),
            &meaning(section, field),
        ];
        let _ = writeln!(page, "| {} |", row.map(|cell| cell.replace('|', "\\|")).join(" | "));
    }
}

/// The settings that people set, with the anchors of their sections.
fn write_common(page: &mut String) {
    let _ = writeln!(
        page,
        "\n## What people set\n\n| setting | type | meaning |\n| --- | --- | --- |"
    );
    for (section, at) in [(fields::SERVER, "servers.NAME."), (fields::TOP, "")] {
        for field in section.fields().filter(|field| field.usage == Usage::Common) {
            let row = [
                format!("`{at}{}`", field.name),
                kind_text(&field.kind),
                field.doc.to_owned(),
            ];
            let _ = writeln!(page, "| {} |", row.map(|cell| cell.replace('|', "\\|")).join(" | "));
        }
    }
}

/// The field of servers that a field at the top of a file sets for all of them.
fn find_server_field(section: &Section, field: &Field) -> Option<&'static Field> {
    // These two have a meaning of their own at the top.
    let is_own = matches!(field.name, "preset" | "masking");
    let found = fields::SERVER.fields().find(|known| known.name == field.name)?;
    (section.name == "config" && !is_own).then_some(found)
}

fn applies(section: &Section, field: &Field) -> String {
    let servers = find_server_field(section, field);
    let field = servers.unwrap_or(field);
    let whom = match field.applies {
        Applies::Stdio => "processes",
        Applies::Remote => "URLs",
        Applies::All if section.name == "config" && servers.is_none() => "the board",
        Applies::All if section.name.starts_with("serve.") => "the gateway",
        Applies::All if matches!(section.name, "serve" | "token") => "the gateway",
        Applies::All if section.name == "view" => "the view",
        Applies::All => "all servers",
    };
    // The settings of a nested table follow the setting that the table is.
    let is_of_server = section.name == "server" || servers.is_some();
    let mark = if is_of_server && !field.live { " ↻" } else { "" };
    format!("{whom}{mark}")
}

/// The doc of a field, whether it is in effect, and its other names.
fn meaning(section: &Section, field: &Field) -> String {
    let servers = find_server_field(section, field);
    let mut meaning = servers.unwrap_or(field).doc.to_owned();
    if !field.aliases.is_empty() {
        let names: Vec<String> = field.aliases.iter().map(|name| format!("`{name}`")).collect();
        let _ = write!(meaning, " Also: {}.", names.join(", "));
    }
    for (name, via) in field.converted {
        let means = match via {
            Via::Negated => "the opposite",
            Via::VariableName => "the variable that holds the value",
            Via::SharedFlag => "true for `shared`, false for `session`",
        };
        let _ = write!(meaning, " `{name}`: {means}.");
    }
    meaning
}

fn kind_text(kind: &ValueKind) -> String {
    let duration = |millis: &u64| units::duration_text(Duration::from_millis(*millis));
    match kind {
        ValueKind::Bool => "true or false".to_owned(),
        ValueKind::Text => "text".to_owned(),
        ValueKind::Secret => "secret".to_owned(),
        ValueKind::Count { min, max } => format!("number, {min} to {max}"),
        ValueKind::Duration { min, max } => format!("duration, {} to {}", duration(min), duration(max)),
        ValueKind::Size { min, max } => format!("size, {} to {}", units::SizeText(*min), units::SizeText(*max)),
        ValueKind::Word(words) => {
            let names: Vec<String> = words.iter().map(|word| format!("`{}`", word.name)).collect();
            names.join(", ")
        }
        ValueKind::List(kind) => format!("list of {}", kind_text(kind)),
        ValueKind::Map(kind) => format!("table of {}", kind_text(kind)),
        // The anchor of a heading has no dots.
        ValueKind::Table(section) => format!("[`{}`](#{})", section.name, section.name.replace('.', "")),
        ValueKind::Either(kinds) => kinds.iter().map(kind_text).collect::<Vec<_>>().join("; or "),
        ValueKind::Any => "anything".to_owned(),
    }
}
