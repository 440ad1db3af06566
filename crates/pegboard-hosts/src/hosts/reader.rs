//! Takes the keys of a host's entry one by one, and notes every value that cannot be carried over.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::{
    host::{Dialect, Unit},
    variables::{ProjectPaths, translate, variable_name},
};

/// What a note says of a setting that is left out because of its type, after the name of the setting.
pub(crate) const MISTYPED: &str = "is left out: must be";

/// The settings of a server, with what a person must know about them.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Imported {
    pub(crate) settings: Map<String, Value>,
    /// What is different from before, in sentences without a subject: "`x` is left out".
    pub(crate) notes: Vec<String>,
    /// The ids of the values that a person is asked for.
    pub(crate) inputs: BTreeSet<String>,
}

/// The keys of an entry that are not translated yet, and the settings so far.
pub(super) struct EntryReader<'a> {
    name: &'a str,
    left: BTreeMap<String, Value>,
    pub(super) dialect: Dialect,
    pub(super) place: &'a ProjectPaths,
    done: Imported,
    /// Whether it needs the folder that is open in the host, and there is none.
    pub(super) needs_open_folder: bool,
}

impl<'a> EntryReader<'a> {
    pub(super) fn new(name: &'a str, entry: &Map<String, Value>, dialect: Dialect, place: &'a ProjectPaths) -> Self {
        let keys = entry.iter().filter(|(_, value)| !value.is_null());
        Self {
            name,
            left: keys.map(|(key, value)| (snake_case(key), value.clone())).collect(),
            dialect,
            place,
            done: Imported::default(),
            needs_open_folder: false,
        }
    }

    /// Takes a key, by the first of these names that the entry has.
    pub(super) fn take(&mut self, names: &[&str]) -> Option<Value> {
        self.take_named(names).map(|(_, value)| value)
    }

    /// Takes a key, by the first of these names that the entry has, with this name.
    pub(super) fn take_named<'n>(&mut self, names: &[&'n str]) -> Option<(&'n str, Value)> {
        let mut found = names.iter().filter_map(|name| Some((*name, self.left.remove(*name)?)));
        found.next()
    }

    /// Takes a text. A value of another type is noted.
    pub(super) fn text(&mut self, names: &[&str]) -> Option<String> {
        let (key, value) = self.take_named(names)?;
        self.text_in(key, &value)
    }

    /// Takes a switch. A value of another type is noted.
    pub(super) fn flag(&mut self, name: &str) -> Option<bool> {
        let value = self.take(&[name])?;
        if !value.is_boolean() {
            self.note_mistyped(name, &value, "true or false");
        }
        value.as_bool()
    }

    /// Takes a list of texts; a text with commas or spaces is one too. Values of other types are noted.
    pub(super) fn texts(&mut self, names: &[&str]) -> Vec<String> {
        match self.take_named(names) {
            Some((key, value)) => self.texts_in(key, &value),
            None => Vec::new(),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.left.contains_key(name)
    }

    pub(super) fn text_of(&self, name: &str) -> Option<String> {
        self.left.get(name)?.as_str().map(str::to_owned)
    }

    pub(super) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.done.settings.insert(key.to_owned(), value.into());
    }

    /// Sets a key of a table.
    pub(super) fn set_in(&mut self, table: &str, key: &str, value: impl Into<Value>) {
        let table = self.done.settings.entry(table).or_insert_with(|| json!({}));
        if let Some(table) = table.as_object_mut() {
            table.insert(key.to_owned(), value.into());
        }
    }

    /// Adds texts to a list.
    pub(super) fn add_to(&mut self, list: &str, more: Vec<String>) {
        if more.is_empty() {
            return;
        }
        let list = self.done.settings.entry(list).or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.extend(more.into_iter().map(Value::from));
        }
    }

    /// Its name in the host's file.
    pub(super) fn name(&self) -> &str {
        self.name
    }

    pub(super) fn is_process(&self) -> bool {
        self.done.settings.contains_key("command")
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        self.done.notes.push(note.into());
    }

    /// Notes that the value of a setting is left out because of its type. The value is not named: it may be a secret.
    pub(super) fn note_mistyped(&mut self, key: &str, value: &Value, wanted: &str) {
        self.note(format!("`{key}` {MISTYPED} {wanted}, not {}", kind(value)));
    }

    /// Notes that the value of a setting is left out because Pegboard has nothing like it.
    pub(super) fn note_unknown(&mut self, key: &str) {
        self.note(format!("`{key}` is left out: not known to Pegboard"));
    }

    /// The text of a setting.
    pub(super) fn text_in(&mut self, key: &str, value: &Value) -> Option<String> {
        if !value.is_string() {
            self.note_mistyped(key, value, "a text");
        }
        value.as_str().map(str::to_owned)
    }

    /// The texts of a list; a text with commas or spaces is one too.
    pub(super) fn texts_in(&mut self, key: &str, value: &Value) -> Vec<String> {
        let mut texts = Vec::new();
        match value {
            Value::Array(list) => {
                for (at, one) in list.iter().enumerate() {
                    let text = self.text_in(&format!("{key}[{at}]"), one).unwrap_or_default();
                    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                    texts.extend(parts.map(str::to_owned));
                }
            }
            Value::String(text) => texts.extend(text.split_whitespace().map(str::to_owned)),
            _ => self.note_mistyped(key, value, "a list"),
        }
        texts
    }

    /// The words of a command line; numbers and truth values become texts.
    pub(super) fn words_in(&mut self, key: &str, value: &Value) -> Vec<String> {
        let Some(list) = value.as_array() else {
            self.note_mistyped(key, value, "a list");
            return Vec::new();
        };
        let mut words = Vec::new();
        for (at, one) in list.iter().enumerate() {
            match plain_text(one) {
                Some(word) => words.push(word),
                None => self.note_mistyped(&format!("{key}[{at}]"), one, "a text"),
            }
        }
        words
    }

    /// A duration with its unit.
    pub(super) fn duration_in(&mut self, key: &str, value: &Value, unit: Unit) -> Option<String> {
        let Some(amount) = value.as_f64() else {
            self.note_mistyped(key, value, "a number");
            return None;
        };
        if amount <= 0.0 {
            self.note(format!("`{key}` is left out: not a positive number"));
            return None;
        }
        let millis = match unit {
            Unit::Millis => amount,
            Unit::Seconds => amount * 1000.0,
        };
        let millis = millis.round().max(1.0);
        Some(match millis % 1000.0 == 0.0 {
            true => format!("{}s", millis / 1000.0),
            false => format!("{millis}ms"),
        })
    }

    /// Replaces a table by its own keys, as in `transport: {type, command}` and `command: {path, args}`.
    pub(super) fn flatten(&mut self, key: &str) {
        let Some(Value::Object(inner)) = self.left.get(key).cloned() else {
            return;
        };
        self.left.remove(key);
        for (inner, value) in inner.into_iter().filter(|(_, value)| !value.is_null()) {
            let inner = if inner == "path" {
                "command".to_owned()
            } else {
                snake_case(&inner)
            };
            self.left.entry(inner).or_insert(value);
        }
    }

    /// The text in our notation. `key` names what it is the value of.
    pub(super) fn translate_text(&mut self, text: &str, key: &str) -> String {
        let variable = match is_variable(key) {
            true => key.to_owned(),
            false => variable_name(&format!("{}_{key}", self.name)),
        };
        let done = translate(text, self.dialect.variables, self.place, &variable);
        for lost in &done.lost {
            self.note(format!(
                "`{lost}` is known to the host only: set the variable {variable}"
            ));
        }
        self.needs_open_folder |= done.needs_open_folder;
        self.done.inputs.extend(done.inputs);
        done.text
    }

    /// A table of texts in our notation; numbers and truth values become texts.
    pub(super) fn table_in(&mut self, key: &str, value: &Value) -> Map<String, Value> {
        let Some(pairs) = value.as_object() else {
            self.note_mistyped(key, value, "a table");
            return Map::new();
        };
        let mut table = Map::new();
        for (name, value) in pairs {
            match plain_text(value) {
                Some(text) => {
                    let text = self.translate_text(&text, name);
                    table.insert(name.clone(), text.into());
                }
                None => self.note_mistyped(&format!("{key}.{name}"), value, "a text"),
            }
        }
        table
    }

    pub(super) fn finish(mut self) -> Imported {
        let unknown: Vec<String> = self.left.keys().map(|key| format!("`{key}`")).collect();
        if !unknown.is_empty() {
            self.note(format!("{} left out: not known to Pegboard", unknown.join(", ")));
        }
        self.done
    }
}

/// The type of a value, in the words of the config's own messages.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

fn plain_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        _ => None,
    }
}

fn is_variable(key: &str) -> bool {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    key.starts_with(|c: char| c.is_ascii_uppercase()) && key.chars().all(is_part)
}

/// `httpUrl` as `http_url`, `CLIENT_ID` as `client_id`.
pub(super) fn snake_case(key: &str) -> String {
    if !key.chars().any(char::is_lowercase) {
        return key.to_lowercase();
    }
    let mut snake = String::with_capacity(key.len() + 4);
    for c in key.chars() {
        match c {
            '-' => snake.push('_'),
            c if c.is_uppercase() => {
                if !snake.is_empty() && !snake.ends_with('_') {
                    snake.push('_');
                }
                snake.extend(c.to_lowercase());
            }
            c => snake.push(c),
        }
    }
    snake
}
