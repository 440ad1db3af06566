//! Parses TOML, YAML or JSON text into one tree whose values carry their line and column.

mod json;
mod lines;
mod node;
#[cfg(feature = "toml")]
mod toml;
#[cfg(feature = "yaml")]
mod yaml;

pub use json::json_options;
pub(super) use node::{KeyValue, Location, Node, SyntaxError, Value};
#[cfg(feature = "yaml")]
pub use yaml::YamlScalar;

use std::{fmt, path::Path};

/// The largest config file. Handwritten files have a few kilobytes; this leaves room for generated ones.
pub(super) const MAX_BYTES: usize = 4 << 20;

/// The format of a config file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Format {
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
    /// JSON; comments and trailing commas are allowed.
    Json,
}

impl Format {
    /// The format for a file's extension, if it is a known one.
    pub fn from_path(path: &Path) -> Option<Self> {
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

/// Parses `text`. Without a format, tries all.
pub(super) fn read(text: &str, format: Option<Format>) -> Result<Node, SyntaxError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > MAX_BYTES {
        return Err(SyntaxError::new(
            Location::START,
            format!("larger than {} MiB", MAX_BYTES >> 20),
        ));
    }
    match format {
        Some(format) => reader(format)?(text),
        None => guess(text),
    }
}

/// Reads a text in one format.
type Read = fn(&str) -> Result<Node, SyntaxError>;

/// How a format is read, unless it is not built in.
fn reader(format: Format) -> Result<Read, SyntaxError> {
    match format {
        Format::Json => Ok(json::read),
        #[cfg(feature = "toml")]
        Format::Toml => Ok(toml::read),
        #[cfg(feature = "yaml")]
        Format::Yaml => Ok(yaml::read),
        #[cfg(not(all(feature = "toml", feature = "yaml")))]
        format => Err(SyntaxError::new(
            Location::START,
            format!(
                "this program was built without configs in {format} (build it with the feature `{}` of the crate `pegboard`, or write JSON)",
                format.to_string().to_lowercase()
            ),
        )),
    }
}

/// Tries the formats in order. If none parses, reports the error of the one that got furthest, as the most likely format.
fn guess(text: &str) -> Result<Node, SyntaxError> {
    let mut furthest: Option<SyntaxError> = None;
    for format in [Format::Json, Format::Toml, Format::Yaml] {
        let Ok(read) = reader(format) else { continue };
        match read(text) {
            // Any prose is valid YAML, but a config is a table or a list.
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
    let mut error = furthest.unwrap_or_else(|| SyntaxError::new(Location::START, "neither TOML, YAML nor JSON"));
    for missing in [Format::Toml, Format::Yaml]
        .into_iter()
        .filter_map(|format| reader(format).err())
    {
        error.message = format!("{}; {}", error.message, missing.message);
    }
    Err(error)
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
