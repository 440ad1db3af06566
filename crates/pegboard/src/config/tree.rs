//! A config file as a tree of values that know where they were written, whatever the format.

mod json;
mod toml;
mod yaml;

use std::{fmt, path::Path};

/// The largest config file. Hand-written ones have a few kilobytes; this leaves room for generated ones.
pub(super) const MAX_BYTES: usize = 4 << 20;

/// The deepest nesting. Ours needs six levels; the rest is for other programs' settings in the same file.
const MAX_DEPTH: usize = 64;

/// The most values in one file, counting those that a YAML alias repeats.
const MAX_NODES: usize = 200_000;

/// How a config file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
    /// JSON; comments and trailing commas are allowed.
    Json,
}

impl Format {
    /// The format that a file's extension tells, if it tells one.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "toml" => Some(Self::Toml),
            "yaml" | "yml" => Some(Self::Yaml),
            "json" | "jsonc" => Some(Self::Json),
            _ => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Toml => "TOML",
            Self::Yaml => "YAML",
            Self::Json => "JSON",
        })
    }
}

/// A place in a file. Lines and columns count from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) line: u32,
    pub(super) column: u32,
}

impl Place {
    pub(super) const START: Self = Self { line: 1, column: 1 };

    fn new(line: usize, column: usize) -> Self {
        let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self {
            line: small(line),
            column: small(column),
        }
    }
}

/// A value and the place where it starts.
#[derive(Clone, PartialEq)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) at: Place,
}

#[derive(Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<Entry>),
}

/// A key, the place where it was written, and its value.
#[derive(Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) at: Place,
    pub(super) value: Node,
}

impl Node {
    pub(super) fn new(value: Value, at: Place) -> Self {
        Self { value, at }
    }

    pub(super) fn text(text: impl Into<String>, at: Place) -> Self {
        Self::new(Value::Text(text.into()), at)
    }

    /// The value of `key`, if this is a map that has it.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value),
            _ => None,
        }
    }

    /// The entries, if this is a map.
    pub(super) fn into_entries(self) -> Option<Vec<Entry>> {
        match self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The word for the kind of value this is, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Int(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Map(_) => "a table",
        }
    }
}

/// A text that does not follow its format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyntaxError {
    pub(super) at: Place,
    pub(super) message: String,
}

impl SyntaxError {
    fn new(at: Place, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }

    fn too_deep(at: Place) -> Self {
        Self::new(at, format!("nested deeper than {MAX_DEPTH} levels"))
    }

    fn too_many(at: Place) -> Self {
        Self::new(at, format!("more than {MAX_NODES} values"))
    }

    fn duplicate(at: Place, key: &str) -> Self {
        Self::new(at, format!("`{key}` is written twice"))
    }
}

/// Reads `text`. Without a format the ones that the text could be in are tried.
pub(super) fn read(text: &str, format: Option<Format>) -> Result<Node, SyntaxError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > MAX_BYTES {
        return Err(SyntaxError::new(
            Place::START,
            format!("larger than {} MiB", MAX_BYTES >> 20),
        ));
    }
    match format {
        Some(Format::Toml) => toml::read(text),
        Some(Format::Yaml) => yaml::read(text),
        Some(Format::Json) => json::read(text),
        None => guess(text),
    }
}

/// Tries the formats in turn. When none fits, the one that got furthest is most likely what was meant.
fn guess(text: &str) -> Result<Node, SyntaxError> {
    let mut furthest: Option<SyntaxError> = None;
    for (format, read) in [
        (Format::Json, json::read as fn(&str) -> Result<Node, SyntaxError>),
        (Format::Toml, toml::read),
        (Format::Yaml, yaml::read),
    ] {
        match read(text) {
            // Any line of prose is YAML, but a config is a table or a list.
            Ok(node) if matches!(node.value, Value::Map(_) | Value::List(_) | Value::Null) => return Ok(node),
            Ok(_) => {}
            Err(error) if furthest.as_ref().is_none_or(|seen| seen.at < error.at) => {
                furthest = Some(SyntaxError::new(
                    error.at,
                    format!("{} (read as {format})", error.message),
                ));
            }
            Err(_) => {}
        }
    }
    Err(furthest.unwrap_or_else(|| SyntaxError::new(Place::START, "neither TOML, YAML nor JSON")))
}

/// The starts of a text's lines, to turn byte offsets into places.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn of(text: &'a str) -> Self {
        let ends = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(ends).collect(),
        }
    }

    fn place(&self, offset: usize) -> Place {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        // In a file that is one long line, counting characters for every value would take forever; bytes will do there.
        let before = match self.text.get(start..offset) {
            Some(text) if text.len() < 1000 => text.chars().count(),
            _ => offset.saturating_sub(start),
        };
        Place::new(line, before + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(node: &Node) -> String {
        match &node.value {
            Value::Null => "null".into(),
            Value::Bool(b) => b.to_string(),
            Value::Int(i) => i.to_string(),
            Value::Float(f) => f.to_string(),
            Value::Text(t) => format!("{t:?}"),
            Value::List(items) => format!("[{}]", items.iter().map(shape).collect::<Vec<_>>().join(", ")),
            Value::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|e| format!("{}@{}: {}", e.key, e.at.line, shape(&e.value)))
                    .collect::<Vec<_>>();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }

    #[test]
    fn the_three_formats_give_the_same_tree_with_lines() {
        let want = "{a@1: 1, b@2: {c@3: [\"x\", true]}}";
        for (format, text) in [
            (Format::Toml, "a = 1\nb = {\nc = ['x', true] }\n"),
            (Format::Yaml, "a: 1\nb:\n  c: [x, true]\n"),
            (
                Format::Json,
                "{ \"a\": 1, // one\n\"b\": {\n\"c\": [\"x\", true,],},\n}",
            ),
        ] {
            assert_eq!(shape(&read(text, Some(format)).unwrap()), want, "{format}");
            assert_eq!(shape(&read(text, None).unwrap()), want, "{format} guessed");
        }
    }

    #[test]
    fn syntax_errors_know_their_line() {
        for (format, text, line) in [
            (Format::Toml, "a = 1\nb = = 2\n", 2),
            (Format::Yaml, "a: 1\nb: [1, 2\n", 3),
            (Format::Json, "{\n\"a\": 1,\n\"b\" 2}", 3),
            (Format::Json, "{\n\"a\": 1,\n\"a\": 2}", 3),
            (Format::Yaml, "a: 1\na: 2\n", 2),
            (Format::Toml, "a = 1\na = 2\n", 2),
        ] {
            let error = read(text, Some(format)).err().unwrap();
            assert_eq!(error.at.line, line, "{format}: {}", error.message);
        }
    }

    #[test]
    fn depth_size_and_repetition_are_bounded() {
        let deep_json = "[".repeat(100_000);
        let deep_yaml = "- ".repeat(100_000);
        let deep_toml = format!("a = {}", "[".repeat(100_000));
        for (format, text) in [
            (Format::Json, deep_json.as_str()),
            (Format::Json, &format!("{}{}", "[".repeat(70), "]".repeat(70))),
            (Format::Yaml, &deep_yaml),
            (Format::Yaml, &"[".repeat(100_000)),
            (Format::Toml, &deep_toml),
            (Format::Yaml, &" ".repeat(MAX_BYTES + 1)),
        ] {
            assert!(read(text, Some(format)).is_err(), "{format}");
        }
        let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for n in 1..9 {
            let refs = vec![format!("*a{}", n - 1); 10].join(", ");
            laughs.push_str(&format!("a{n}: &a{n} [{refs}]\n"));
        }
        let error = read(&laughs, Some(Format::Yaml)).err().unwrap();
        assert_eq!(error.message, "more than 200000 values");
        let mut chain = String::from("a0: &a0 [x]\n");
        for n in 1..5000 {
            chain.push_str(&format!("a{n}: &a{n} [*a{}]\n", n - 1));
        }
        let error = read(&chain, Some(Format::Yaml)).err().unwrap();
        assert_eq!(error.message, "nested deeper than 64 levels");
    }
}
