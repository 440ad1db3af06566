//! Edits of JSON, with or without comments. What is written is strict JSON, so a strict file stays strict.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
};

use jsonc_parser::{CollectOptions, ast, common::Ranged as _, parse_to_ast};
use pegboard_config::json_options;
use serde_json::Value;

use super::{
    splice::{self, Edit},
    tree::{self, Tree},
};

/// A list of plain values up to this length stays on one line.
const SHORT: usize = 72;

fn parse(text: &str) -> Result<Option<ast::Value<'_>>, String> {
    match parse_to_ast(text, &CollectOptions::default(), &json_options()) {
        Ok(parsed) => Ok(parsed.value),
        Err(error) => {
            let line = text[..error.range().start.min(text.len())].matches('\n').count() + 1;
            Err(format!("line {line}: {}", error.kind()))
        }
    }
}

pub(super) fn read(text: &str) -> Result<Tree, String> {
    parse(text)?.map_or(Ok(Tree::Leaf(Value::Null)), |value| tree_of(&value))
}

fn tree_of(value: &ast::Value<'_>) -> Result<Tree, String> {
    Ok(match value {
        ast::Value::NullKeyword(_) => Tree::Leaf(Value::Null),
        ast::Value::BooleanLit(literal) => Tree::Leaf(literal.value.into()),
        ast::Value::StringLit(literal) => Tree::Leaf(literal.value.as_ref().into()),
        ast::Value::NumberLit(literal) => {
            let number = serde_json::from_str(literal.value);
            Tree::Leaf(number.map_err(|_| format!("the number {} cannot be read", literal.value))?)
        }
        ast::Value::Array(array) => Tree::List(array.elements.iter().map(tree_of).collect::<Result<_, _>>()?),
        ast::Value::Object(object) => {
            let mut entries: Vec<(String, Tree)> = Vec::new();
            let mut known = HashSet::new();
            for property in &object.properties {
                let key = property.name.as_str();
                if !known.insert(key) {
                    return Err(format!("the key {key:?} is there twice"));
                }
                entries.push((key.to_owned(), tree_of(&property.value)?));
            }
            Tree::Map(entries)
        }
    })
}

pub(super) fn set(text: &str, path: &[&str], value: &Value) -> Result<Vec<Edit>, String> {
    let unit = unit(text);
    let Some(root) = parse(text)? else {
        let gap = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        let rendered = render(&tree::nest(path, value), "", &unit);
        return Ok(vec![Edit::insert(text.len(), format!("{gap}{rendered}\n"))]);
    };
    let mut current = &root;
    for (depth, key) in path.iter().enumerate() {
        let ast::Value::Object(object) = current else {
            return Err(match depth {
                0 => "the file is not an object".to_owned(),
                _ => format!("{:?} is not an object", path[..depth].join(".")),
            });
        };
        match object.properties.iter().find(|property| property.name.as_str() == *key) {
            Some(property) => current = &property.value,
            None => {
                let value = tree::nest(&path[depth + 1..], value);
                return Ok(insert(text, object, &[(*key, &value)], &unit));
            }
        }
    }
    Ok(vec![replace(text, current, value, &unit)])
}

/// Replaces values of the list at a path.
pub(super) fn set_items(text: &str, path: &[&str], items: &[(usize, &Value)]) -> Result<Vec<Edit>, String> {
    let root = parse(text)?;
    let found = root.as_ref().and_then(|root| find(root, path));
    let Some(ast::Value::Array(list)) = found.map(|(object, place)| &object.properties[place].value) else {
        return Err("it is not a list".to_owned());
    };
    let edits = items.iter().map(|(place, value)| -> Result<Edit, String> {
        let range = list.elements.get(*place).ok_or("the list is shorter")?.range();
        Ok(Edit::replace(range.start..range.end, inline(value)))
    });
    edits.collect()
}

/// Where the comments are.
pub(super) fn comments(text: &str) -> Result<Vec<Range<usize>>, String> {
    parse(text)?;
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(next) = text[at..].find(['"', '/']).map(|next| at + next) {
        at = match &text[next..] {
            rest if rest.starts_with('"') => next + string_length(rest),
            rest => {
                let end = match rest.starts_with("//") {
                    true => rest.find('\n').unwrap_or(rest.len()),
                    false => rest[2..].find("*/").map_or(rest.len(), |end| end + 4),
                };
                found.push(next..next + end);
                next + end
            }
        };
    }
    Ok(found)
}

/// The length of a string with its quotes.
fn string_length(text: &str) -> usize {
    let mut is_escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}

/// Sets entries of the object at `parent`; `None` if there is none.
pub(super) fn set_all(text: &str, parent: &[&str], entries: &[(&str, &Value)]) -> Result<Option<Vec<Edit>>, String> {
    let Some(root) = parse(text)? else {
        return Ok(None);
    };
    let found = parent.iter().try_fold(&root, |value, step| {
        let properties = &value.as_object()?.properties;
        let property = properties.iter().find(|property| property.name.as_str() == *step)?;
        Some(&property.value)
    });
    let Some(object) = found.and_then(|found| found.as_object()) else {
        return Ok(None);
    };
    let properties = object.properties.iter();
    let known: HashMap<&str, &ast::Value<'_>> = properties.map(|one| (one.name.as_str(), &one.value)).collect();
    let unit = unit(text);
    let (old, new): (Vec<_>, Vec<_>) = entries.iter().partition(|(key, _)| known.contains_key(key));
    let old = old
        .into_iter()
        .filter_map(|(key, value)| Some((known.get(key)?, value)));
    let mut edits: Vec<Edit> = old.map(|(known, value)| replace(text, known, value, &unit)).collect();
    if !new.is_empty() {
        edits.extend(insert(text, object, &new, &unit));
    }
    Ok(Some(edits))
}

/// Puts another value in the place of one.
fn replace(text: &str, old: &ast::Value<'_>, value: &Value, unit: &str) -> Edit {
    let range = old.range();
    let is_inline = !text[range.start..range.end].contains('\n') && is_one_line(text);
    let rendered = if is_inline {
        inline(value)
    } else {
        render(value, splice::indent(text, range.start), unit)
    };
    Edit::replace(range.start..range.end, rendered)
}

/// Adds properties after the last one.
fn insert(text: &str, object: &ast::Object<'_>, entries: &[(&str, &Value)], unit: &str) -> Vec<Edit> {
    let Some(last) = object.properties.last() else {
        return insert_first(text, object, entries, unit);
    };
    let first = object
        .properties
        .first()
        .map_or(last.range.start, |first| first.range.start);
    let end = last.range.end;
    let comma = Some(next_token(text, end)).filter(|at| text[*at..].starts_with(','));
    if !splice::starts_line(text, first) {
        let with = inline_properties(entries);
        let (at, with) = match comma {
            Some(comma) => (comma + 1, format!(" {with},")),
            None => (end, format!(", {with}")),
        };
        return vec![Edit::insert(at, with)];
    }
    let indent = splice::indent(text, first);
    let properties = line_properties(entries, indent, unit);
    match comma {
        // The document has trailing commas, so it gets one more.
        Some(comma) => vec![Edit::insert(after_comments(text, comma + 1), properties + ",")],
        None => {
            let tail = after_comments(text, end);
            if tail == end {
                vec![Edit::insert(end, format!(",{properties}"))]
            } else {
                vec![Edit::insert(end, ","), Edit::insert(tail, properties)]
            }
        }
    }
}

/// Properties on one line.
fn inline_properties(entries: &[(&str, &Value)]) -> String {
    let properties = entries.iter();
    let properties = properties.map(|(key, value)| format!("{}: {}", Value::from(*key), inline(value)));
    properties.collect::<Vec<_>>().join(", ")
}

/// Properties, each on lines of its own.
fn line_properties(entries: &[(&str, &Value)], indent: &str, unit: &str) -> String {
    let property =
        |(key, value): &(&str, &Value)| format!("\n{indent}{}: {}", Value::from(*key), render(value, indent, unit));
    entries.iter().map(property).collect::<Vec<_>>().join(",")
}

fn insert_first(text: &str, object: &ast::Object<'_>, entries: &[(&str, &Value)], unit: &str) -> Vec<Edit> {
    let (start, end) = (object.range.start + 1, object.range.end - 1);
    let inside = &text[start..end];
    if is_one_line(text) && text.trim() != "{}" {
        let properties = inline_properties(entries);
        return vec![match inside.trim_end() {
            "" => Edit::replace(start..end, properties),
            // A comment in an empty object stays before.
            comment => Edit::insert(start + comment.len(), format!(" {properties}")),
        }];
    }
    let outer = splice::indent(text, object.range.start).to_owned();
    let indent = format!("{outer}{unit}");
    let properties = format!("{}\n{outer}", line_properties(entries, &indent, unit));
    if inside.trim().is_empty() {
        vec![Edit::replace(start..end, properties)]
    } else {
        // A comment in an empty object stays above.
        let kept = start + inside.trim_end().len();
        vec![Edit::replace(kept..end, properties)]
    }
}

/// The object that has the property of a path, and its place there.
fn find<'a>(root: &'a ast::Value<'a>, path: &[&str]) -> Option<(&'a ast::Object<'a>, usize)> {
    let (key, parents) = path.split_last()?;
    let object = parents.iter().try_fold(root.as_object()?, |object, step| {
        let property = object
            .properties
            .iter()
            .find(|property| property.name.as_str() == *step)?;
        property.value.as_object()
    })?;
    let place = object
        .properties
        .iter()
        .position(|property| property.name.as_str() == *key)?;
    Some((object, place))
}

/// Gives the last key of a path another name.
pub(super) fn rename(text: &str, path: &[&str], new: &str) -> Result<Vec<Edit>, String> {
    let root = parse(text)?;
    let Some((object, place)) = root.as_ref().and_then(|root| find(root, path)) else {
        return Ok(Vec::new());
    };
    let range = object.properties[place].name.range();
    Ok(vec![Edit::replace(
        range.start..range.end,
        Value::from(new).to_string(),
    )])
}

pub(super) fn remove(text: &str, path: &[&str]) -> Result<Vec<Edit>, String> {
    let root = parse(text)?;
    let Some((object, index)) = root.as_ref().and_then(|root| find(root, path)) else {
        return Ok(Vec::new());
    };
    let property = &object.properties[index];
    if object.properties.len() == 1 && is_blank_without(text, object, property) {
        return Ok(vec![Edit::delete(object.range.start + 1..object.range.end - 1)]);
    }
    let (start, mut end) = (property.range.start, property.range.end);
    let comma = Some(next_token(text, end)).filter(|at| text[*at..].starts_with(','));
    let mut edits = Vec::new();
    match comma {
        Some(comma) => end = comma + 1,
        None if index > 0 => {
            let before = next_token(text, object.properties[index - 1].range.end);
            edits.push(Edit::delete(before..before + 1));
        }
        None => {}
    }
    let tail = after_comments(text, end);
    let ends_line = tail == splice::line_end(text, end);
    edits.push(if splice::starts_line(text, start) && ends_line {
        Edit::delete(splice::line_start(text, start)..splice::next_line(text, tail))
    } else if comma.is_some() {
        let blank = text[end..].len() - text[end..].trim_start_matches([' ', '\t']).len();
        Edit::delete(start..end + blank)
    } else {
        let blank = text[..start].trim_end_matches([' ', '\t']).len();
        Edit::delete(blank..end)
    });
    Ok(edits)
}

/// Whether nothing but the property is in its object, not even a comment.
fn is_blank_without(text: &str, object: &ast::Object<'_>, property: &ast::ObjectProp<'_>) -> bool {
    let before = &text[object.range.start + 1..property.range.start];
    let after = &text[property.range.end..object.range.end - 1];
    before.trim().is_empty() && after.trim().trim_start_matches(',').trim().is_empty()
}

/// The position of the next token, after white space and comments.
fn next_token(text: &str, mut at: usize) -> usize {
    loop {
        let rest = &text[at..];
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        if trimmed.starts_with("//") {
            at += trimmed.find('\n').unwrap_or(trimmed.len());
        } else if trimmed.starts_with("/*") {
            at += trimmed.find("*/").map_or(trimmed.len(), |end| end + 2);
        } else {
            return at;
        }
    }
}

/// The end of the line if nothing but comments is on the rest of it, else the position itself.
fn after_comments(text: &str, at: usize) -> usize {
    let end = splice::line_end(text, at);
    let mut rest = text[at..end].trim();
    while let Some(comment) = rest.strip_prefix("/*") {
        match comment.find("*/") {
            Some(close) => rest = comment[close + 2..].trim_start(),
            None => return at,
        }
    }
    if rest.is_empty() || rest.starts_with("//") {
        end
    } else {
        at
    }
}

fn is_one_line(text: &str) -> bool {
    !text.trim().contains('\n')
}

/// The indentation of one level: that of the first indented line.
fn unit(text: &str) -> String {
    let indented = text
        .lines()
        .find(|line| line.starts_with([' ', '\t']) && line.trim().starts_with('"'));
    match indented.map(|line| &line[..line.len() - line.trim_start().len()]) {
        Some(indent) if indent.starts_with('\t') => "\t".to_owned(),
        Some(indent) => indent.to_owned(),
        None => "  ".to_owned(),
    }
}

/// A value on one line.
pub(super) fn inline(value: &Value) -> String {
    match value {
        Value::Object(map) if map.is_empty() => "{}".to_owned(),
        Value::Object(map) => {
            let entries = tree::order(map).into_iter();
            let entries: Vec<String> = entries
                .map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), inline(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(inline).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_string(),
    }
}

/// A value over several lines; those after the first are indented by `indent`.
fn render(value: &Value, indent: &str, unit: &str) -> String {
    let deeper = format!("{indent}{unit}");
    let lines: Vec<String> = match value {
        Value::Object(map) if !map.is_empty() => tree::order(map)
            .into_iter()
            .map(|(key, value)| format!("{}: {}", Value::from(key.as_str()), render(value, &deeper, unit)))
            .collect(),
        Value::Array(items) if inline(value).len() > SHORT || items.iter().any(Value::is_object) => {
            items.iter().map(|item| render(item, &deeper, unit)).collect()
        }
        other => return inline(other),
    };
    let (open, close) = if value.is_object() { ('{', '}') } else { ('[', ']') };
    let separator = format!(",\n{deeper}");
    format!("{open}\n{deeper}{}\n{indent}{close}", lines.join(&separator))
}
