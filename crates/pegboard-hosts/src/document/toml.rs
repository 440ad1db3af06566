//! Edits of TOML by lines: sections with a header, `key = value` lines, dotted keys and inline tables.

mod layout;

use std::{collections::HashSet, ops::Range};

use ::toml::Value as Toml;
use serde_json::{Map, Value};

use super::{
    splice::{self, Edit},
    tree::{self, Tree},
};
use layout::{Entry, Layout, TomlSection};

/// Sections have at most this many keys in their header when they are made here; what is deeper becomes an inline table.
const HEADER: usize = 2;

pub(super) fn read(text: &str) -> Result<Tree, String> {
    let table: ::toml::Table = ::toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let layout = Layout::parse(text);
    Ok(layout.order(&Toml::Table(table)))
}

pub(super) fn set(text: &str, path: &[&str], value: &Value) -> Result<Vec<Edit>, String> {
    let layout = Layout::parse(text);
    if let Some(entry) = layout.entries.iter().find(|entry| entry.path == path) {
        return Ok(vec![Edit::replace(entry.value.clone(), render(value)?)]);
    }
    if let Some(list) = layout
        .sections
        .iter()
        .find(|section| section.is_array && starts(path, &section.path))
    {
        return Err(format!("`{}` is a list of tables", list.path.join(".")));
    }
    if let Some(table) = layout.entries.iter().rfind(|entry| starts(path, &entry.path)) {
        if !table.is_table {
            return Err(format!("`{}` is not a table", table.path.join(".")));
        }
        return insert_inline(text, &layout, table, &path[table.path.len()..], value);
    }
    if let Some((entry, known)) = layout.find_dotted(path) {
        let section = &layout.sections[entry.section];
        let relative = path.get(section.path.len()..).unwrap_or(known);
        let at = splice::line_end(text, entry.value.end);
        let indent = splice::indent(text, entry.start);
        return Ok(vec![Edit::insert(
            at,
            format!("\n{indent}{} = {}", key_path(relative), render(value)?),
        )]);
    }
    let section = layout
        .sections
        .iter()
        .filter(|section| !section.path.is_empty() && starts(path, &section.path))
        .max_by_key(|section| section.path.len());
    match section {
        Some(section) if section.path.len() >= HEADER || !(value.is_object() || path.len() > HEADER) => {
            insert_line(text, &layout, section, &path[section.path.len()..], value)
        }
        _ if path.len() == 1 && !value.is_object() => insert_root(text, &layout, path[0], value),
        _ => insert_section(text, &layout, path, value),
    }
}

/// Replaces values of the list at a path.
pub(super) fn set_items(text: &str, path: &[&str], items: &[(usize, &Value)]) -> Result<Vec<Edit>, String> {
    let layout = Layout::parse(text);
    let list = layout.entries.iter().find(|entry| entry.path == path);
    let spans = list.map(|list| list.items.as_slice()).unwrap_or_default();
    let edits = items.iter().map(|(place, value)| -> Result<Edit, String> {
        let span = spans.get(*place).ok_or("the list is shorter")?;
        Ok(Edit::replace(span.clone(), render(value)?))
    });
    edits.collect()
}

/// Where the comments are.
pub(super) fn comments(text: &str) -> Result<Vec<Range<usize>>, String> {
    read(text)?;
    Ok(Layout::parse(text).comments)
}

/// Adds a key to an inline table.
fn insert_inline(
    text: &str,
    layout: &Layout,
    table: &Entry,
    rest: &[&str],
    value: &Value,
) -> Result<Vec<Edit>, String> {
    let pair = pair(rest, value)?;
    let inside = table.value.start + 1..table.value.end - 1;
    let last = layout
        .entries
        .iter()
        .rfind(|entry| entry.inside == Some(table.value.start) && entry.value.end <= inside.end);
    Ok(vec![match last {
        Some(last) => Edit::insert(last.value.end, format!(", {pair}")),
        None if text[inside.clone()].trim().is_empty() => Edit::replace(inside, format!(" {pair} ")),
        None => Edit::insert(inside.start, format!(" {pair}")),
    }])
}

/// Adds a line to a section, after its last one.
fn insert_line(
    text: &str,
    layout: &Layout,
    section: &TomlSection,
    rest: &[&str],
    value: &Value,
) -> Result<Vec<Edit>, String> {
    let at = splice::line_end(text, layout.last_of(section));
    let indent = layout
        .entries_of(section)
        .next_back()
        .map_or("", |entry| splice::indent(text, entry.start));
    Ok(vec![Edit::insert(at, format!("\n{indent}{}", pair(rest, value)?))])
}

/// Adds a key before the first section.
fn insert_root(text: &str, layout: &Layout, key: &str, value: &Value) -> Result<Vec<Edit>, String> {
    let line = pair(&[key], value)?;
    let Some(root) = layout.sections.first() else {
        return Ok(Vec::new());
    };
    if let Some(last) = layout.entries_of(root).next_back() {
        return Ok(vec![Edit::insert(
            splice::line_end(text, last.value.end),
            format!("\n{line}"),
        )]);
    }
    Ok(vec![match layout.sections.get(1) {
        None if text.is_empty() || text.ends_with('\n') => Edit::insert(text.len(), format!("{line}\n")),
        None => Edit::insert(text.len(), format!("\n{line}\n")),
        Some(first) => {
            let mut at = splice::line_start(text, first.header.start);
            while at > 0 {
                let previous = splice::line_start(text, at - 1);
                if !text[previous..at].trim_start().starts_with('#') {
                    break;
                }
                at = previous;
            }
            Edit::insert(at, format!("{line}\n\n"))
        }
    }])
}

/// Adds sections below `parent`; `None` if it is written in another way than with sections, or if one of them is there.
pub(super) fn add_all(text: &str, parent: &[&str], entries: &[(&str, &Value)]) -> Result<Option<Vec<Edit>>, String> {
    let layout = Layout::parse(text);
    let is_below =
        |path: &[String]| path.len() > parent.len() && path.iter().zip(parent).all(|(one, other)| one == other);
    let is_above = |path: &[String]| !path.is_empty() && path.iter().zip(parent).all(|(one, other)| one == other);
    let taken: HashSet<&str> = layout
        .sections
        .iter()
        .filter(|section| is_below(&section.path))
        .filter_map(|section| section.path.get(parent.len()).map(String::as_str))
        .collect();
    let is_other = |entry: &Entry| layout.sections[entry.section].path.len() <= parent.len() && is_above(&entry.path);
    let is_usual = parent.len() + 1 == HEADER
        && entries
            .iter()
            .all(|(key, value)| value.is_object() && !taken.contains(key))
        && !layout
            .sections
            .iter()
            .any(|section| section.is_array && is_above(&section.path))
        && !layout.entries.iter().any(is_other);
    if !is_usual {
        return Ok(None);
    }
    let path = |key| -> Vec<&str> { parent.iter().copied().chain([key]).collect() };
    let sections: Result<Vec<String>, String> = entries.iter().map(|(key, value)| section(&path(key), value)).collect();
    Ok(Some(vec![add_section(
        text,
        &layout,
        parent[0],
        &sections?.join("\n\n"),
    )]))
}

/// Adds a section, after those with the same first key.
fn insert_section(text: &str, layout: &Layout, path: &[&str], value: &Value) -> Result<Vec<Edit>, String> {
    Ok(vec![add_section(text, layout, path[0], &section(path, value)?)])
}

/// The lines of a section.
fn section(path: &[&str], value: &Value) -> Result<String, String> {
    let split = path.len().min(HEADER);
    let split = if value.is_object() {
        split
    } else {
        split.min(path.len() - 1)
    };
    let (header, rest) = path.split_at(split);
    let mut lines = vec![format!("[{}]", key_path(header))];
    if let Value::Object(map) = tree::nest(rest, value) {
        for (key, value) in tree::order(&map).into_iter().filter(|(_, value)| !value.is_null()) {
            lines.push(pair(&[key], value)?);
        }
    }
    Ok(lines.join("\n"))
}

fn add_section(text: &str, layout: &Layout, first_key: &str, lines: &str) -> Edit {
    let relative = layout
        .sections
        .iter()
        .rfind(|section| section.path.first().is_some_and(|first| first == first_key));
    let after = relative.map(|section| layout.end_of(text, section));
    match after {
        Some(at) if at < text.trim_end().len() => {
            let at = splice::line_end(text, at);
            Edit::insert(at, format!("\n\n{lines}"))
        }
        _ if text.trim().is_empty() => Edit::insert(text.len(), format!("{lines}\n")),
        _ => {
            let gap = match text {
                text if text.ends_with("\n\n") || text.ends_with("\n\r\n") => "",
                text if text.ends_with('\n') => "\n",
                _ => "\n\n",
            };
            Edit::insert(text.len(), format!("{gap}{lines}\n"))
        }
    }
}

/// Gives the last key of a path another name, wherever it is written.
pub(super) fn rename(text: &str, path: &[&str], new: &str) -> Vec<Edit> {
    let layout = Layout::parse(text);
    let written = layout.keys.into_iter().filter(|(known, _)| known == path);
    written.map(|(_, span)| Edit::replace(span, key(new))).collect()
}

pub(super) fn remove(text: &str, path: &[&str]) -> Vec<Edit> {
    removal(text, &Layout::parse(text), path)
}

/// Removes several entries of the table at `parent`.
pub(super) fn remove_all(text: &str, parent: &[&str], keys: &[&str]) -> Vec<Edit> {
    let layout = Layout::parse(text);
    let path = |key| -> Vec<&str> { parent.iter().copied().chain([key]).collect() };
    keys.iter().flat_map(|key| removal(text, &layout, &path(key))).collect()
}

fn removal(text: &str, layout: &Layout, path: &[&str]) -> Vec<Edit> {
    let mut edits = Vec::new();
    for section in layout
        .sections
        .iter()
        .filter(|section| section.path.len() >= path.len())
    {
        if !section.path.is_empty() && section.path.iter().zip(path).all(|(one, other)| one == other) {
            let start = splice::line_start(text, section.header.start);
            let end = splice::next_line(text, layout.end_of(text, section));
            edits.push(Edit::delete(splice::without_double_blank(text, start..end)));
        }
    }
    for (index, entry) in layout.entries.iter().enumerate() {
        let section = &layout.sections[entry.section];
        let is_inside = entry.path.len() >= path.len()
            && section.path.len() < path.len()
            && entry.path.iter().zip(path).all(|(one, other)| one == other);
        if !is_inside {
            continue;
        }
        match entry.inside {
            Some(table)
                if layout
                    .entries
                    .iter()
                    .any(|outer| outer.value.start == table && outer.path.len() >= path.len()) => {}
            Some(_) => edits.push(layout.without_inline(text, index)),
            None => {
                let lines = splice::line_start(text, entry.start)..splice::next_line(text, entry.value.end);
                edits.push(Edit::delete(lines));
            }
        }
    }
    edits
}

/// Whether `path` goes on after `start`.
fn starts(path: &[&str], start: &[String]) -> bool {
    start.len() < path.len() && start.iter().zip(path).all(|(one, other)| one == other)
}

/// `key = value`; what is below the first key is an inline table.
fn pair(path: &[&str], value: &Value) -> Result<String, String> {
    let Some((first, rest)) = path.split_first() else {
        return Err("there is no key".to_owned());
    };
    Ok(format!("{} = {}", key(first), render(&tree::nest(rest, value))?))
}

fn key_path(path: &[&str]) -> String {
    let keys: Vec<String> = path.iter().map(|step| key(step)).collect();
    keys.join(".")
}

fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(is_bare) {
        name.to_owned()
    } else {
        Value::from(name).to_string()
    }
}

/// A value on one line.
fn render(value: &Value) -> Result<String, String> {
    Ok(match value {
        Value::Null => return Err("TOML has no null".to_owned()),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.to_string(),
            None => Toml::Float(number.as_f64().unwrap_or_default()).to_string(),
        },
        Value::String(text) => Value::from(text.as_str()).to_string().replace('\u{7f}', "\\u007F"),
        Value::Array(items) => {
            let items: Result<Vec<String>, String> = items.iter().map(render).collect();
            format!("[{}]", items?.join(", "))
        }
        Value::Object(map) => table(map)?,
    })
}

fn table(map: &Map<String, Value>) -> Result<String, String> {
    let entries = tree::order(map).into_iter().filter(|(_, value)| !value.is_null());
    let entries: Result<Vec<String>, String> = entries.map(|(key, value)| pair(&[key], value)).collect();
    let entries = entries?;
    Ok(if entries.is_empty() {
        "{}".to_owned()
    } else {
        format!("{{ {} }}", entries.join(", "))
    })
}
