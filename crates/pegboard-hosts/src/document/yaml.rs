//! Edits of YAML by lines and by positions: block maps and flow maps. What cannot be told apart safely is refused.

mod nodes;

use std::{collections::HashMap, ops::Range};

use serde_json::Value;

use super::{
    json,
    splice::{self, Edit},
    tree::{self, Tree},
};
use nodes::{NodeKind, YamlNode};

pub(super) fn read(text: &str) -> Result<Tree, String> {
    Ok(nodes::read(text)?.map_or(Tree::Leaf(Value::Null), |root| root.tree()))
}

pub(super) fn set(text: &str, path: &[&str], value: &Value) -> Result<Vec<Edit>, String> {
    let unit = unit(text);
    let root = match nodes::read(text)? {
        Some(root) if !root.is_empty_scalar() => root,
        _ => {
            let gap = if text.is_empty() || text.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            let block = block(&tree::nest(path, value), "", &unit);
            return Ok(vec![Edit::insert(text.len(), format!("{gap}{block}\n"))]);
        }
    };
    let mut current = &root;
    let mut key: Option<&YamlNode> = None;
    for (depth, step) in path.iter().enumerate() {
        let rest = tree::nest(&path[depth + 1..], value);
        match &current.kind {
            NodeKind::Map(entries) => match entries.iter().find(|(key, _)| key.text() == Some(*step)) {
                Some((found, value)) => {
                    key = Some(found);
                    current = value;
                }
                None => return insert(text, current, key, &[(*step, &rest)], &unit),
            },
            NodeKind::Scalar(Value::Null) => {
                let Some(key) = key else {
                    return Err("the document is not a map".to_owned());
                };
                return Ok(vec![replace(
                    text,
                    key,
                    current,
                    &tree::nest(&path[depth..], value),
                    &unit,
                )?]);
            }
            NodeKind::Alias(_) => return Err(format!("`{}` is an alias (*) of another part", path[..depth].join("."))),
            NodeKind::Scalar(_) | NodeKind::List(_) => {
                return Err(format!("`{}` is not a map", path[..depth].join(".")));
            }
        }
    }
    let Some(key) = key else {
        return Err("there is no key".to_owned());
    };
    Ok(vec![replace(text, key, current, value, &unit)?])
}

/// Replaces values of the list at a path.
pub(super) fn set_items(text: &str, path: &[&str], items: &[(usize, &Value)]) -> Result<Vec<Edit>, String> {
    let root = nodes::read(text)?;
    let found = root.as_ref().and_then(|root| {
        let mut steps = path.iter();
        steps.try_fold(root, |node, step| node.below(step))
    });
    let Some(NodeKind::List(known)) = found.map(|node| &node.kind) else {
        return Err("it is not a list".to_owned());
    };
    let edits = items.iter().map(|(place, value)| -> Result<Edit, String> {
        let old = known.get(*place).ok_or("the list is shorter")?;
        if old.has_reference() || old.is_empty_scalar() {
            return Err("an anchor (&), an alias (*) or a tag (!) is in the part to be changed".to_owned());
        }
        let new = match text[old.start..].starts_with('"') {
            true => json::inline(value),
            false => flow(value),
        };
        Ok(Edit::replace(old.start..old.end, new))
    });
    edits.collect()
}

/// Where the comments are.
pub(super) fn comments(text: &str) -> Result<Vec<Range<usize>>, String> {
    let mut scalars = Vec::new();
    if let Some(root) = nodes::read(text)? {
        root.scalars(&mut scalars);
    }
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(next) = text[at..].find('#').map(|next| at + next) {
        let is_inside = |scalar: &&Range<usize>| scalar.contains(&next);
        at = match scalars.iter().find(is_inside) {
            Some(scalar) => scalar.end,
            None => {
                let end = splice::line_end(text, next);
                found.push(next..end);
                end
            }
        };
    }
    Ok(found)
}

/// Sets entries of the map at `parent`; `None` if there is none that lines can be added to.
pub(super) fn set_all(text: &str, parent: &[&str], entries: &[(&str, &Value)]) -> Result<Option<Vec<Edit>>, String> {
    let Some(root) = nodes::read(text)? else {
        return Ok(None);
    };
    let found = parent
        .iter()
        .try_fold((None, &root), |(_, node), step| match &node.kind {
            NodeKind::Map(entries) => {
                let entry = entries.iter().find(|(key, _)| key.text() == Some(*step));
                entry.map(|(key, value)| (Some(key), value))
            }
            NodeKind::Scalar(_) | NodeKind::List(_) | NodeKind::Alias(_) => None,
        });
    let Some((key, map)) = found else {
        return Ok(None);
    };
    let NodeKind::Map(old) = &map.kind else {
        return Ok(None);
    };
    if old.is_empty() {
        return Ok(None);
    }
    let old = old.iter().filter_map(|(key, value)| Some((key.text()?, (key, value))));
    let old: HashMap<&str, (&YamlNode, &YamlNode)> = old.collect();
    let unit = unit(text);
    let (mut edits, mut new) = (Vec::new(), Vec::new());
    for (name, value) in entries {
        match old.get(name) {
            Some((key, known)) => edits.push(replace(text, key, known, value, &unit)?),
            None => new.push((*name, *value)),
        }
    }
    if !new.is_empty() {
        edits.extend(insert(text, map, key, &new, &unit)?);
    }
    Ok(Some(edits))
}

/// Puts another value after a key.
fn replace(text: &str, key: &YamlNode, old: &YamlNode, value: &Value, unit: &str) -> Result<Edit, String> {
    if old.has_reference() {
        return Err("an anchor (&), an alias (*) or a tag (!) is in the part to be changed".to_owned());
    }
    let colon = text[key.end..]
        .find(':')
        .map(|at| key.end + at + 1)
        .ok_or("a key without a colon")?;
    let is_block = matches!(value, Value::Object(map) if !map.is_empty()) && splice::starts_line(text, key.start);
    let with = if is_block {
        let indent = format!("{}{unit}", splice::indent(text, key.start));
        format!("\n{}", block(value, &indent, unit))
    } else {
        format!(" {}", flow(value))
    };
    if old.is_empty_scalar() {
        let at = if is_block { comment_end(text, colon) } else { colon };
        return Ok(Edit::insert(at, with));
    }
    if is_block {
        // A comment after the colon or after the old value stays on the line of the key.
        let first = splice::line_end(text, colon);
        if old.start > first {
            return Ok(Edit::replace(first..old.end, with));
        }
        let end = splice::line_end(text, old.end);
        if text[old.end..end].trim_start().starts_with('#') {
            let comment = text[old.end..end].to_owned();
            return Ok(Edit::replace(colon..end, comment + &with));
        }
    }
    Ok(Edit::replace(colon..old.end, with))
}

/// Adds entries after the last one of a map.
fn insert(
    text: &str,
    map: &YamlNode,
    key: Option<&YamlNode>,
    new: &[(&str, &Value)],
    unit: &str,
) -> Result<Vec<Edit>, String> {
    let NodeKind::Map(entries) = &map.kind else {
        return Err("it is not a map".to_owned());
    };
    if map.is_flow {
        let pairs = new.iter();
        let pairs = pairs.map(|(name, value)| format!("{}: {}", flow_text(name), flow(value)));
        let pairs = pairs.collect::<Vec<_>>().join(", ");
        let nested = || {
            Value::Object(
                new.iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).clone()))
                    .collect(),
            )
        };
        return Ok(vec![match (entries.last(), key) {
            (Some((_, last)), _) if !last.is_empty_scalar() => Edit::insert(last.end, format!(", {pairs}")),
            (Some(_), _) => return Err("a key without a value is in a map in braces".to_owned()),
            (None, Some(key)) if text[map.start + 1..map.end - 1].trim().is_empty() => {
                replace(text, key, map, &nested(), unit)?
            }
            (None, None) if text.trim() == "{}" => Edit::replace(map.start..map.end, block(&nested(), "", unit)),
            (None, _) => Edit::insert(map.start + 1, pairs),
        }]);
    }
    let (Some((first, _)), Some((last, last_value))) = (entries.first(), entries.last()) else {
        return Err("an empty map".to_owned());
    };
    if !splice::starts_line(text, first.start) {
        return Err("a map that starts in the middle of a line".to_owned());
    }
    let end = if last_value.is_empty_scalar() {
        last.end
    } else {
        last_value.end.max(last.end)
    };
    let at = splice::line_end(text, end);
    let indent = splice::indent(text, first.start);
    let lines = new.iter();
    let lines = lines.map(|(name, value)| format!("\n{}", block(&tree::nest(&[name], value), indent, unit)));
    Ok(vec![Edit::insert(at, lines.collect::<String>())])
}

/// Gives the last key of a path another name.
pub(super) fn rename(text: &str, path: &[&str], new: &str) -> Result<Vec<Edit>, String> {
    let root = nodes::read(text)?;
    let mut current = root.as_ref();
    let mut key = None;
    for step in path {
        let Some(NodeKind::Map(entries)) = current.map(|node| &node.kind) else {
            return Ok(Vec::new());
        };
        let found = entries.iter().find(|(key, _)| key.text() == Some(*step));
        (key, current) = found.map(|(key, value)| (key, value)).unzip();
    }
    let written = key.map(|key| Edit::replace(key.start..key.end, flow_text(new)));
    Ok(written.into_iter().collect())
}

pub(super) fn remove(text: &str, path: &[&str]) -> Result<Vec<Edit>, String> {
    let (Some(root), Some((name, parents))) = (nodes::read(text)?, path.split_last()) else {
        return Ok(Vec::new());
    };
    let mut current = &root;
    let mut parent_key = None;
    for step in parents {
        let NodeKind::Map(entries) = &current.kind else {
            return Ok(Vec::new());
        };
        match entries.iter().find(|(key, _)| key.text() == Some(*step)) {
            Some((key, value)) => {
                parent_key = Some(key);
                current = value;
            }
            None => return Ok(Vec::new()),
        }
    }
    let NodeKind::Map(entries) = &current.kind else {
        return Err("the part is an alias (*) of another one".to_owned());
    };
    let Some(index) = entries.iter().position(|(key, _)| key.text() == Some(*name)) else {
        return Err("the part comes from an anchor (<<)".to_owned());
    };
    let (key, value) = &entries[index];
    let end = if value.is_empty_scalar() {
        key.end + 1
    } else {
        value.end
    };
    if current.is_flow {
        let after = &text[end..];
        let blank = after.len() - after.trim_start().len();
        return Ok(vec![if after[blank..].starts_with(',') {
            let rest = &after[blank + 1..];
            Edit::delete(key.start..end + blank + 1 + rest.len() - rest.trim_start().len())
        } else {
            let before = text[..key.start].trim_end();
            Edit::delete(before.strip_suffix(',').map_or(key.start, str::len)..end)
        }]);
    }
    if !splice::starts_line(text, key.start) {
        return Err("a map that starts in the middle of a line".to_owned());
    }
    let lines = splice::line_start(text, key.start)..splice::next_line(text, end);
    let mut edits = Vec::new();
    if entries.len() == 1
        && let Some(parent) = parent_key
    {
        let colon = text[parent.end..].find(':').map(|at| parent.end + at + 1);
        edits.push(Edit::insert(colon.ok_or("a key without a colon")?, " {}"));
    }
    edits.push(Edit::delete(lines));
    Ok(edits)
}

/// The end of the line, after a comment.
fn comment_end(text: &str, at: usize) -> usize {
    splice::line_end(text, at)
}

/// The indentation of one level.
fn unit(text: &str) -> String {
    let indented = text.lines().find(|line| {
        let trimmed = line.trim_start();
        line.starts_with(' ') && !trimmed.is_empty() && !trimmed.starts_with(['-', '#'])
    });
    indented.map_or("  ".to_owned(), |line| " ".repeat(line.len() - line.trim_start().len()))
}

/// A map over several lines, each with the indentation.
fn block(value: &Value, indent: &str, unit: &str) -> String {
    let Value::Object(map) = value else {
        return format!("{indent}{}", flow(value));
    };
    let lines: Vec<String> = tree::order(map)
        .into_iter()
        .map(|(key, value)| match value {
            Value::Object(inner) if !inner.is_empty() => {
                let deeper = format!("{indent}{unit}");
                format!("{indent}{}:\n{}", flow_text(key), block(value, &deeper, unit))
            }
            other => format!("{indent}{}: {}", flow_text(key), flow(other)),
        })
        .collect();
    lines.join("\n")
}

/// A value on one line. JSON is YAML; texts that need no quotes get none.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => flow_text(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(json::inline).collect();
            format!("[{}]", items.join(", "))
        }
        other => json::inline(other),
    }
}

fn flow_text(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./@".contains(c);
    let starts_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '/');
    let is_word = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word));
    if starts_plain && !is_word && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        Value::from(text).to_string()
    }
}
