//! The nodes of a parsed config file: values with their location.

/// The deepest nesting. Our settings need six levels; the rest is for settings of other programs in the same file.
pub(super) const MAX_DEPTH: usize = 64;

/// A location in a file. Lines and columns count from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Location {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Location {
    pub(crate) const START: Self = Self { line: 1, column: 1 };

    pub(super) fn new(line: usize, column: usize) -> Self {
        let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Self {
            line: small(line),
            column: small(column),
        }
    }
}

/// A value and the location where it starts.
#[derive(Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) at: Location,
}

#[derive(Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Map(Vec<KeyValue>),
}

/// A key, its location, and its value.
#[derive(Clone, PartialEq)]
pub(crate) struct KeyValue {
    pub(crate) key: String,
    pub(crate) at: Location,
    pub(crate) value: Node,
}

impl Node {
    pub(crate) fn new(value: Value, at: Location) -> Self {
        Self { value, at }
    }

    pub(crate) fn text(text: impl Into<String>, at: Location) -> Self {
        Self::new(Value::Text(text.into()), at)
    }

    /// The value of `key`, if this is a map that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        match &self.value {
            Value::Map(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value),
            _ => None,
        }
    }

    /// The entries, if this is a map.
    pub(crate) fn into_entries(self) -> Option<Vec<KeyValue>> {
        match self.value {
            Value::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The kind of the value, for messages.
    pub(crate) fn kind(&self) -> &'static str {
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

impl KeyValue {
    /// Whether the key marks a comment or an extension (`x-…`), under which YAML anchors are often defined.
    pub(crate) fn is_note(&self) -> bool {
        ["x-", "//", "_comment"].iter().any(|start| self.key.starts_with(start))
    }
}

/// A syntax error and its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) at: Location,
    pub(crate) message: String,
}

impl SyntaxError {
    pub(super) fn new(at: Location, message: impl Into<String>) -> Self {
        Self {
            at,
            message: message.into(),
        }
    }

    pub(super) fn too_deep(at: Location) -> Self {
        Self::new(at, format!("nested deeper than {MAX_DEPTH} levels"))
    }

    pub(super) fn duplicate(at: Location, key: &str) -> Self {
        Self::new(at, format!("`{key}` is written twice"))
    }
}
