//! The words after the tool's name: pairs, values by position, and the form `tool(a: 1)`.

use serde_json::{Map, Value};

use super::{
    function_form::{self, Item},
    given::Given,
    quoting::cut,
};

/// What the command line asks for: a tool and its arguments, which the tool's schema assigns later.
#[derive(Debug, PartialEq)]
pub(super) struct Request {
    pub(super) tool: String,
    pub(super) words: Vec<Word>,
    /// The only word, if it is a JSON object: all arguments, or a text that is one argument.
    object: Option<Map<String, Value>>,
}

/// One argument as it was written.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Word {
    /// `key=value` or `key:=json`.
    Named { key: String, value: Given },
    /// `key:value`, which is a value by position if the tool declares no such key, as in `https://example.com`.
    Colon { key: String, value: String },
    /// A value without a key.
    Positional(Given),
}

/// A value that was assigned to an argument.
#[derive(Debug, PartialEq)]
pub(super) struct Assigned {
    pub(super) key: String,
    pub(super) value: Given,
}

impl Request {
    /// A request without arguments.
    pub(super) fn new(tool: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            words: Vec::new(),
            object: None,
        }
    }

    /// Reads `TOOL WORD…`, `SERVER TOOL WORD…` and `tool(…)`. `is_server` says whether a server has this name.
    pub(super) fn read(tool: &str, words: &[String], is_server: &dyn Fn(&str) -> bool) -> Result<Self, String> {
        if let Some((name, arguments)) = function_form::split(tool) {
            let items = function_form::parse_after_bracket(arguments)
                .map_err(|problem| format!("`{}` cannot be read: {problem}", cut(tool)))?;
            let mut read: Vec<Word> = items.into_iter().map(Word::from).collect();
            read.extend(words.iter().map(|word| Word::read(word)));
            return Ok(Self {
                tool: name.to_owned(),
                words: read,
                object: None,
            });
        }
        match words.split_first() {
            Some((first, rest)) if is_server(tool) && is_tool_name(first) => {
                Self::read(&format!("{tool}.{first}"), rest, &|_| false)
            }
            _ => Ok(Self {
                tool: tool.to_owned(),
                words: words.iter().map(|word| Word::read(word)).collect(),
                object: match words {
                    [word] if word.trim_start().starts_with('{') => serde_json::from_str(word).ok(),
                    _ => None,
                },
            }),
        }
    }

    /// The JSON object that is the only word, if the tool declares all of its keys. Otherwise it is a text.
    pub(super) fn whole_arguments(&self, schema: &Value) -> Option<&Map<String, Value>> {
        let declared = schema.get("properties").and_then(Value::as_object)?;
        let object = self.object.as_ref().filter(|object| !object.is_empty())?;
        object.keys().all(|key| declared.contains_key(key)).then_some(object)
    }

    /// Whether an argument is read from stdin.
    pub(super) fn reads_stdin(&self) -> bool {
        let is_stdin = |given: &Given| matches!(given, Given::File(path) | Given::JsonFile(path) if path == "-");
        self.words.iter().any(|word| match word {
            Word::Named { value, .. } | Word::Positional(value) => is_stdin(value),
            Word::Colon { value, .. } => value == "@-",
        })
    }
}

/// Whether a word can be the name of a tool. `get-sum(a: 1)` counts, `a=1` does not.
fn is_tool_name(word: &str) -> bool {
    let name = function_form::split(word).map_or(word, |(name, _)| name);
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    !name.is_empty() && name.chars().all(is_part)
}

impl Word {
    fn read(word: &str) -> Self {
        let Some(at) = word.find(['=', ':']).filter(|at| *at > 0) else {
            return Self::Positional(Given::read(word));
        };
        let (key, rest) = (word[..at].to_owned(), &word[at + 1..]);
        match (word.as_bytes()[at], rest.strip_prefix('=')) {
            (b'=', _) => Self::Named {
                key,
                value: Given::read(rest),
            },
            (_, Some(json)) => Self::Named {
                key,
                value: match json.strip_prefix('@') {
                    Some(path) => Given::JsonFile(path.to_owned()),
                    None => Given::JsonText(json.to_owned()),
                },
            },
            (_, None) => Self::Colon {
                key,
                value: rest.to_owned(),
            },
        }
    }
}

impl From<Item> for Word {
    fn from(item: Item) -> Self {
        match item.key {
            Some(key) => Self::Named { key, value: item.value },
            None => Self::Positional(item.value),
        }
    }
}

/// Gives each word its argument. Values by position go to the required arguments first, then to the others, both in the order in which the
/// server lists them; arguments with a key are passed over. If that order is not known, several values need arguments whose names have one,
/// such as `a` and `b`.
pub(super) fn assign(words: &[Word], schema: &Value, order: Option<&[String]>) -> Result<Vec<Assigned>, String> {
    let declared = Declared::read(schema, order);
    let (mut assigned, mut positional) = (Vec::new(), Vec::new());
    for word in words {
        match word {
            Word::Named { key, value } => assigned.push(Assigned {
                key: key.clone(),
                value: value.clone(),
            }),
            Word::Colon { key, value } if declared.has(key) => assigned.push(Assigned {
                key: key.clone(),
                value: Given::read(value),
            }),
            Word::Colon { key, value } => positional.push(Given::Text(format!("{key}:{value}"))),
            Word::Positional(value) => positional.push(value.clone()),
        }
    }
    let is_free = |name: &&String| {
        let inside = format!("{name}.");
        !assigned
            .iter()
            .any(|one| one.key == **name || one.key.starts_with(&inside))
    };
    let (required, optional): (Vec<_>, Vec<_>) = (
        declared.required.iter().filter(is_free).cloned().collect(),
        declared.optional.iter().filter(is_free).cloned().collect(),
    );
    let count = positional.len();
    if count > required.len() + optional.len() {
        return Err(too_many(count, &declared));
    }
    // Only groups that get a value must have an order.
    let groups = [(&required, count > 0), (&optional, count > required.len())];
    let is_unclear = |group: &[String]| order.is_none() && !has_order(group);
    if let Some((group, _)) = groups.iter().find(|(group, is_used)| *is_used && is_unclear(group)) {
        let names = group.join(", ");
        return Err(format!(
            "which of {names} a value without a name is for is not clear; write KEY=VALUE"
        ));
    }
    let names = required.into_iter().chain(optional);
    assigned.extend(names.zip(positional).map(|(key, value)| Assigned { key, value }));
    Ok(assigned)
}

/// The names of a tool's arguments.
struct Declared {
    required: Vec<String>,
    optional: Vec<String>,
}

impl Declared {
    fn read(schema: &Value, order: Option<&[String]>) -> Self {
        let names = match (order, schema.get("properties").and_then(Value::as_object)) {
            (Some(order), _) => order.to_vec(),
            (None, Some(properties)) => {
                let mut names: Vec<String> = properties.keys().cloned().collect();
                // `arg10` is after `arg9`.
                names.sort_by(|a, b| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
                names
            }
            (None, None) => Vec::new(),
        };
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &String| required.is_some_and(|names| names.iter().any(|one| one == name));
        let (required, optional) = names.into_iter().partition(is_required);
        Self { required, optional }
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.required.iter().chain(&self.optional)
    }

    /// Whether a key, or the object that it is in, is declared. A tool that declares nothing may take anything.
    fn has(&self, key: &str) -> bool {
        let first = key.split('.').next().unwrap_or(key);
        self.names().next().is_none() || self.names().any(|name| name == key || name == first)
    }
}

/// Whether names have an order of their own: at most one, single letters, or one word with numbers.
fn has_order(names: &[String]) -> bool {
    let stem = |name: &String| name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    let is_letter = |name: &String| name.len() == 1 && name.chars().all(|c| c.is_ascii_alphabetic());
    match names {
        [] | [_] => true,
        [first, rest @ ..] => {
            let is_numbered = |name: &String| stem(name) == stem(first) && stem(name).len() < name.len();
            names.iter().all(is_letter) || (is_numbered(first) && rest.iter().all(is_numbered))
        }
    }
}

fn too_many(given: usize, declared: &Declared) -> String {
    let values = if given == 1 {
        "1 value"
    } else {
        &format!("{given} values")
    };
    let names: Vec<&str> = declared.names().map(String::as_str).collect();
    match names.as_slice() {
        [] => format!("{values} without a name, and the tool declares no arguments; write KEY=VALUE"),
        names => format!(
            "{values} without a name are more than the tool takes; write KEY=VALUE, with one of {}",
            names.join(", ")
        ),
    }
}

/// Puts a value at a key such as `filter.state` or `rows.0.id`. A key that the tool declares as it is written is not split.
pub(super) fn put(
    arguments: &mut Map<String, Value>,
    key: &str,
    is_declared: bool,
    value: Value,
) -> Result<(), String> {
    let path: Vec<&str> = match is_declared {
        true => vec![key],
        false => key.split('.').collect(),
    };
    let Some((first, rest)) = path.split_first() else {
        return Ok(());
    };
    let mut place = arguments.entry((*first).to_owned()).or_insert(Value::Null);
    for part in rest {
        let index: Option<usize> = part.parse().ok();
        if place.is_null() {
            *place = index.map_or_else(|| Value::Object(Map::new()), |_| Value::Array(Vec::new()));
        }
        place = match (place, index) {
            (Value::Array(list), Some(index)) if index <= list.len() => {
                if index == list.len() {
                    list.push(Value::Null);
                }
                &mut list[index]
            }
            (Value::Array(_), Some(_)) => return Err(format!("`{key}` leaves out items of the list")),
            (Value::Object(fields), _) => fields.entry((*part).to_owned()).or_insert(Value::Null),
            _ => return Err(format!("`{key}` is inside a value that was given as a whole")),
        };
    }
    *place = value;
    Ok(())
}

#[cfg(test)]
mod tests;
