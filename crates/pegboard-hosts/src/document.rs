//! Config files that are edited with their comments and layout kept: TOML, JSON with or without comments, and YAML.
//!
//! An edit replaces a part of the text and nothing else. The result is read again: if it does not say exactly what it should, the edit is
//! refused, so that a file that is written in an unusual way is never broken.
//!
//! Editors of whole syntax trees do not keep every byte: `toml_edit` writes `\r\n` as `\n` and removes the comments above a removed key; the
//! `cst` of `jsonc-parser` breaks a file of one line into several when it adds a key.

mod file;
mod json;
mod lock;
mod splice;
#[cfg(test)]
mod tests;
mod toml;
mod tree;
mod yaml;

use std::{
    collections::HashMap,
    fmt, io,
    path::{Path, PathBuf},
};

use serde_json::Value;

pub use lock::{CutShort, EditLock, limit_waits};
use tree::Tree;

/// What a file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// TOML.
    Toml,
    /// JSON, also with comments and trailing commas.
    Json,
    /// YAML.
    Yaml,
}

impl Format {
    /// The format of a file with this name.
    pub(crate) fn from_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        match extension.as_str() {
            "toml" => Some(Self::Toml),
            "json" | "jsonc" | "json5" => Some(Self::Json),
            "yaml" | "yml" => Some(Self::Yaml),
            _ => None,
        }
    }

    /// The comments of a text, in their order; `None` if the text cannot be read.
    pub(crate) fn comments(self, text: &str) -> Option<Vec<String>> {
        let text = text.trim_start_matches('\u{feff}');
        let spans = match self {
            Self::Toml => toml::comments(text),
            Self::Json => json::comments(text),
            Self::Yaml => yaml::comments(text),
        };
        let spans = spans.ok()?.into_iter();
        Some(spans.map(|span| text[span].trim().to_owned()).collect())
    }
}

/// Why a file cannot be read, edited or saved. The message names the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentError {
    message: String,
    /// Set if the deadline or a signal ended the wait for another process.
    pub cut_short: Option<CutShort>,
}

impl DocumentError {
    fn new(path: &Path, why: impl fmt::Display) -> Self {
        Self {
            message: format!("{}: {why}", path.display()),
            cut_short: None,
        }
    }

    fn from_io(path: &Path, error: &io::Error) -> Self {
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<CutShort>());
        Self {
            cut_short: inner.copied(),
            ..Self::new(path, error)
        }
    }
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DocumentError {}

/// A config file in memory.
#[derive(Debug, Clone)]
pub struct Document {
    path: PathBuf,
    format: Format,
    /// The text without a byte order mark.
    text: String,
    has_mark: bool,
    /// The bytes of the file when it was opened, `None` if there was no file.
    opened: Option<Vec<u8>>,
}

impl Document {
    /// Opens a file, whose name tells its format. A file that does not exist is an empty document.
    pub fn open(path: &Path) -> Result<Self, DocumentError> {
        let format = Format::from_path(path).ok_or_else(|| {
            let names = "`.toml`, `.json`, `.jsonc`, `.yaml` or `.yml`";
            DocumentError::new(path, format!("the name of a config file ends in {names}"))
        })?;
        Self::open_as(path, format)
    }

    /// Keeps other processes from editing a file while the lock lives, so that an edit that is opened after it can be saved. An error if they do
    /// not finish within 10 seconds, or if the check of [`limit_waits`] ends the wait.
    pub fn lock(path: &Path) -> Result<EditLock, DocumentError> {
        file::lock(path).map_err(|error| DocumentError::from_io(path, &error))
    }

    /// Opens a file of this format.
    fn open_as(path: &Path, format: Format) -> Result<Self, DocumentError> {
        let opened = file::read(path).map_err(|error| DocumentError::from_io(path, &error))?;
        let text = String::from_utf8(opened.clone().unwrap_or_default())
            .map_err(|_| DocumentError::new(path, "it is not UTF-8"))?;
        let document = Self::new(path, format, &text, opened);
        document.tree()?;
        Ok(document)
    }

    /// A document of a text, without a file behind it yet.
    #[cfg(test)]
    pub(crate) fn parse(path: &Path, format: Format, text: &str) -> Result<Self, DocumentError> {
        let document = Self::new(path, format, text, None);
        document.tree()?;
        Ok(document)
    }

    fn new(path: &Path, format: Format, text: &str, opened: Option<Vec<u8>>) -> Self {
        let without_mark = text.strip_prefix('\u{feff}');
        Self {
            path: path.to_owned(),
            format,
            has_mark: without_mark.is_some(),
            text: without_mark.unwrap_or(text).to_owned(),
            opened,
        }
    }

    /// The file, as it was named when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file is written in.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether the file existed when it was opened.
    pub(crate) fn exists(&self) -> bool {
        self.opened.is_some()
    }

    /// Whether the text differs from that of the file.
    pub fn is_changed(&self) -> bool {
        self.opened.as_deref() != Some(self.text().as_bytes())
    }

    /// The whole text, as it would be saved.
    pub fn text(&self) -> String {
        let mark = if self.has_mark { "\u{feff}" } else { "" };
        format!("{mark}{}", self.text)
    }

    /// Whether the file begins with a byte order mark.
    pub fn has_mark(&self) -> bool {
        self.has_mark
    }

    /// Takes the byte order mark away.
    pub fn remove_mark(&mut self) {
        self.has_mark = false;
    }

    /// The value at a path of keys; that of the whole document if the path is empty.
    pub fn get(&self, path: &[&str]) -> Option<Value> {
        Some(self.tree().ok()?.at(path)?.value())
    }

    /// The keys of the map at a path, in the order of the file.
    pub fn keys(&self, path: &[&str]) -> Vec<String> {
        let tree = self.tree().ok();
        tree.and_then(|tree| Some(tree.at(path)?.keys())).unwrap_or_default()
    }

    /// Takes another text that says the same, such as one in another order. Returns `false` if it does not.
    pub(crate) fn take_text(&mut self, text: &str) -> bool {
        let other = Self::new(&self.path, self.format, text, self.opened.clone());
        let (Some(own), Some(new)) = (self.get(&[]), other.get(&[])) else {
            return false;
        };
        let is_same = tree::is_same(&own, &new);
        if is_same {
            *self = other;
        }
        is_same
    }

    /// Puts a value at a path. Maps on the way that are missing are made. A list that differs from the known one in single values keeps its
    /// layout and its comments.
    pub fn set(&mut self, path: &[&str], value: &Value) -> Result<(), DocumentError> {
        if path.is_empty() {
            return Err(self.error("the path is empty"));
        }
        let tree = self.tree()?;
        if tree.at(path).is_some_and(|known| known.value() == *value) {
            return Ok(());
        }
        let mut expected = tree.value();
        tree::put(&mut expected, path, value);
        let items = tree.at(path).and_then(|known| tree::find_changed_items(known, value));
        if items.is_some_and(|items| self.try_set_items(path, &items, &expected)) {
            return Ok(());
        }
        let edits = match self.format {
            Format::Json => json::set(&self.text, path, value),
            Format::Yaml => yaml::set(&self.text, path, value),
            Format::Toml => match value {
                // A table that becomes another one goes first, wherever its parts are.
                Value::Object(_) if matches!(tree.at(path), Some(Tree::Map(_))) => {
                    self.apply(toml::remove(&self.text, path), path, None)?;
                    toml::set(&self.text, path, value)
                }
                _ => toml::set(&self.text, path, value),
            },
        };
        let edits = edits.map_err(|why| self.edit_error(path, &why))?;
        self.apply(edits, path, Some(&expected))
    }

    /// Replaces values of the list at a path where they are written, and says whether that was possible. If not, nothing is changed.
    fn try_set_items(&mut self, path: &[&str], items: &[(usize, &Value)], expected: &Value) -> bool {
        let edits = match self.format {
            Format::Json => json::set_items(&self.text, path, items),
            Format::Yaml => yaml::set_items(&self.text, path, items),
            Format::Toml => toml::set_items(&self.text, path, items),
        };
        edits.is_ok_and(|edits| self.apply(edits, path, Some(expected)).is_ok())
    }

    /// Puts values below a map: in one edit where the file is written in the usual way, else one after the other.
    pub(crate) fn set_all(&mut self, parent: &[&str], entries: &[(&str, &Value)]) -> Result<(), DocumentError> {
        let Some(((key, value), rest)) = entries.split_first() else {
            return Ok(());
        };
        if self.try_set_all_at_once(parent, entries)? {
            return Ok(());
        }
        // Where the map was missing, the first entry has made it.
        self.set(&[parent, &[*key]].concat(), value)?;
        if self.try_set_all_at_once(parent, rest)? {
            return Ok(());
        }
        rest.iter()
            .try_for_each(|(key, value)| self.set(&[parent, &[*key]].concat(), value))
    }

    /// Puts values below a map in one edit, and says whether that was possible. If not, nothing is changed.
    fn try_set_all_at_once(&mut self, parent: &[&str], entries: &[(&str, &Value)]) -> Result<bool, DocumentError> {
        let tree = self.tree()?;
        let known: HashMap<&str, &Tree> = match tree.at(parent) {
            Some(Tree::Map(known)) => known.iter().map(|(key, value)| (key.as_str(), value)).collect(),
            _ => HashMap::new(),
        };
        let is_new = |(key, value): &&(&str, &Value)| known.get(key).is_none_or(|known| known.value() != **value);
        let entries: Vec<(&str, &Value)> = entries.iter().filter(is_new).copied().collect();
        if entries.is_empty() {
            return Ok(true);
        }
        let mut expected = tree.value();
        for (key, value) in &entries {
            tree::put(&mut expected, &[parent, &[*key]].concat(), value);
        }
        let mut edited = self.clone();
        let edits = match self.format {
            Format::Json => json::set_all(&self.text, parent, &entries),
            Format::Yaml => yaml::set_all(&self.text, parent, &entries),
            Format::Toml => {
                // As in `set`: a table that becomes another one goes first.
                let old = entries.iter().map(|(key, _)| *key);
                let old: Vec<&str> = old.filter(|key| matches!(known.get(key), Some(Tree::Map(_)))).collect();
                edited.text = splice::apply(&self.text, toml::remove_all(&self.text, parent, &old));
                toml::add_all(&edited.text, parent, &entries)
            }
        };
        let Ok(Some(edits)) = edits else {
            return Ok(false);
        };
        let is_done = edited.apply(edits, parent, Some(&expected)).is_ok();
        if is_done {
            self.text = edited.text;
        }
        Ok(is_done)
    }

    /// Removes what is at a path, and says whether something was there. Comments above it stay.
    pub fn remove(&mut self, path: &[&str]) -> Result<bool, DocumentError> {
        let tree = self.tree()?;
        if path.is_empty() || tree.at(path).is_none() {
            return Ok(false);
        }
        let mut expected = tree.value();
        tree::take(&mut expected, path);
        let edits = match self.format {
            Format::Json => json::remove(&self.text, path),
            Format::Yaml => yaml::remove(&self.text, path),
            Format::Toml => Ok(toml::remove(&self.text, path)),
        };
        let edits = edits.map_err(|why| self.edit_error(path, &why))?;
        self.apply(edits, path, Some(&expected))?;
        Ok(true)
    }

    /// Renames the last key of a path in place. If that cannot be done safely, the
    /// value is written anew under the new key.
    pub fn rename(&mut self, path: &[&str], new: &str) -> Result<(), DocumentError> {
        let tree = self.tree()?;
        let (Some((_, parents)), Some(value)) = (path.split_last(), tree.at(path).map(Tree::value)) else {
            return Err(self.error(&format!("there is no `{}`", path.join("."))));
        };
        let target = [parents, &[new]].concat();
        let mut expected = tree.value();
        tree::take(&mut expected, path);
        tree::put(&mut expected, &target, &value);
        let edits = match self.format {
            Format::Json => json::rename(&self.text, path, new),
            Format::Yaml => yaml::rename(&self.text, path, new),
            Format::Toml => Ok(toml::rename(&self.text, path, new)),
        };
        if let Ok(edits) = edits
            && self.apply(edits, path, Some(&expected)).is_ok()
        {
            return Ok(());
        }
        self.remove(path)?;
        self.set(&target, &value)
    }

    /// Writes the file: atomically, with its mode and owner, and through a symbolic link to what it names. Refused if another process has
    /// changed the file since it was opened.
    pub fn save(&mut self) -> Result<(), DocumentError> {
        let text = self.text();
        file::write(&self.path, self.opened.as_deref(), text.as_bytes())
            .map_err(|error| DocumentError::from_io(&self.path, &error))?;
        self.opened = Some(text.into_bytes());
        Ok(())
    }

    /// Fails if the file, or the folder that it is replaced in, is read-only: saving would fail.
    pub(crate) fn check_writable(&self) -> Result<(), DocumentError> {
        file::check_writable(&self.path).map_err(|error| self.error(&error.to_string()))
    }

    /// Copies the file as it was when it was opened to `FILE.bak-YYYYMMDD-HHMMSS`, and returns that path; `None` if there was no file.
    pub(crate) fn back_up(&self) -> Result<Option<PathBuf>, DocumentError> {
        let Some(opened) = &self.opened else {
            return Ok(None);
        };
        let copy = file::back_up(&self.path, opened).map_err(|error| self.error(&format!("no backup: {error}")))?;
        Ok(Some(copy))
    }

    fn tree(&self) -> Result<Tree, DocumentError> {
        let read = match self.format {
            Format::Json => json::read(&self.text),
            Format::Yaml => yaml::read(&self.text),
            Format::Toml => toml::read(&self.text),
        };
        read.map_err(|why| self.error(&why))
    }

    /// Applies edits, unless the text would not say what is expected then.
    fn apply(
        &mut self,
        edits: Vec<splice::Edit>,
        path: &[&str],
        expected: Option<&Value>,
    ) -> Result<(), DocumentError> {
        let edited = Self {
            text: splice::apply(&self.text, edits),
            ..self.clone()
        };
        let found = edited.tree().map(|tree| tree.value());
        let is_right = match (&found, expected) {
            (Ok(found), Some(expected)) => tree::is_same(found, expected),
            (found, _) => found.is_ok(),
        };
        if !is_right {
            return Err(self.edit_error(path, "it is written in a way that cannot be edited safely"));
        }
        self.text = edited.text;
        Ok(())
    }

    fn edit_error(&self, path: &[&str], why: &str) -> DocumentError {
        self.error(&format!(
            "`{}` cannot be changed: {why}; edit the file by hand",
            path.join(".")
        ))
    }

    fn error(&self, why: &str) -> DocumentError {
        DocumentError::new(&self.path, why)
    }
}
