//! Where the sections, keys and values of a TOML text are.

use std::{collections::HashMap, ops::Range};

use serde_json::Value;
use toml::Value as Toml;
use toml_parser::{
    Source,
    parser::{Event, EventKind, parse_document},
};

use crate::document::{
    splice::{self, Edit},
    tree::Tree,
};

/// A header, or the start of the text, with what follows it.
#[derive(Debug)]
pub(super) struct TomlSection {
    pub(super) path: Vec<String>,
    pub(super) header: Range<usize>,
    pub(super) is_array: bool,
}

/// A `key = value`, in a section or in an inline table.
#[derive(Debug)]
pub(super) struct Entry {
    /// The whole path, with that of the section.
    pub(super) path: Vec<String>,
    pub(super) start: usize,
    pub(super) value: Range<usize>,
    pub(super) section: usize,
    /// Where the value of the inline table starts that has this entry.
    pub(super) inside: Option<usize>,
    /// Whether the value is an inline table.
    pub(super) is_table: bool,
    /// If the value is a list, where each of its values starts and, of those that are neither lists nor tables, ends.
    pub(super) items: Vec<Range<usize>>,
}

#[derive(Debug)]
pub(super) struct Layout {
    pub(super) sections: Vec<TomlSection>,
    /// In the order of the text; an inline table is before what is in it.
    pub(super) entries: Vec<Entry>,
    /// Every key as it is written, in headers too, with the path that ends with it.
    pub(super) keys: Vec<(Vec<String>, Range<usize>)>,
    pub(super) comments: Vec<Range<usize>>,
}

/// Where each path is mentioned first.
type First<'a> = HashMap<&'a [String], usize>;

/// A value that has not ended.
enum OpenValue {
    /// An inline table: its place in the entries.
    Table(usize),
    /// A list, with what is in it: nothing there can be addressed.
    List(Option<usize>),
}

impl Layout {
    /// The layout of a text without syntax errors.
    pub(super) fn parse(text: &str) -> Self {
        let tokens: Vec<_> = Source::new(text).lex().collect();
        let mut events: Vec<Event> = Vec::new();
        parse_document(&tokens, &mut |event| events.push(event), &mut ());
        let mut reader = LayoutBuilder {
            text,
            layout: Self {
                sections: vec![TomlSection {
                    path: Vec::new(),
                    header: 0..0,
                    is_array: false,
                }],
                entries: Vec::new(),
                keys: Vec::new(),
                comments: Vec::new(),
            },
            open: Vec::new(),
            header: None,
            keys: Vec::new(),
            start: 0,
        };
        for event in &events {
            reader.take(event);
        }
        reader.layout
    }

    pub(super) fn entries_of(&self, section: &TomlSection) -> impl DoubleEndedIterator<Item = &Entry> {
        let header = section.header.clone();
        let index = self.sections.iter().position(move |known| known.header == header);
        self.entries
            .iter()
            .filter(move |entry| Some(entry.section) == index && entry.inside.is_none())
    }

    /// The end of the last value of a section, or of its header.
    pub(super) fn last_of(&self, section: &TomlSection) -> usize {
        self.entries_of(section)
            .next_back()
            .map_or(section.header.end, |entry| entry.value.end)
    }

    /// The end of a section, with the comments that follow without a blank line, unless they are above a header.
    pub(super) fn end_of(&self, text: &str, section: &TomlSection) -> usize {
        let last = splice::line_end(text, self.last_of(section));
        let mut end = last;
        loop {
            let next = splice::next_line(text, end);
            let line = &text[next..splice::line_end(text, next)];
            if next == end || next >= text.len() {
                return end;
            }
            match line.trim_start().chars().next() {
                Some('#') => end = splice::line_end(text, next),
                Some('[') => return last,
                _ => return end,
            }
        }
    }

    /// The last dotted key that makes a table which holds this path, and the path of that table.
    pub(super) fn find_dotted<'a>(&self, path: &'a [&'a str]) -> Option<(&Entry, &'a [&'a str])> {
        (1..path.len()).rev().find_map(|length| {
            let table = &path[..length];
            let entry = self.entries.iter().rfind(|entry| {
                entry.inside.is_none()
                    && self.sections[entry.section].path.len() < length
                    && entry.path.len() > length
                    && entry.path.iter().zip(table).all(|(one, other)| one == other)
            });
            entry.map(|entry| (entry, table))
        })
    }

    /// Takes an entry out of its inline table, with a comma.
    pub(super) fn without_inline(&self, text: &str, index: usize) -> Edit {
        let entry = &self.entries[index];
        let after = &text[entry.value.end..];
        let blank = after.len() - after.trim_start_matches([' ', '\t']).len();
        if after[blank..].starts_with(',') {
            let rest = &after[blank + 1..];
            let more = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            return Edit::delete(entry.start..entry.value.end + blank + 1 + more);
        }
        let before = text[..entry.start].trim_end();
        let start = before.strip_suffix(',').map_or(before.len(), str::len);
        if before.ends_with(',') {
            Edit::delete(start..entry.value.end)
        } else {
            Edit::delete(entry.start..entry.value.end + blank)
        }
    }

    /// The value with its keys in the order of the text.
    pub(super) fn order(&self, value: &Toml) -> Tree {
        let sections = self
            .sections
            .iter()
            .map(|section| (&section.path, section.header.start));
        let entries = self.entries.iter().map(|entry| (&entry.path, entry.start));
        let mut first = First::new();
        for (path, at) in sections.chain(entries) {
            for length in 1..=path.len() {
                let known = first.entry(&path[..length]).or_insert(at);
                *known = at.min(*known);
            }
        }
        Self::order_tree(value, &mut Vec::new(), &first)
    }

    fn order_tree(value: &Toml, path: &mut Vec<String>, first: &First<'_>) -> Tree {
        match value {
            Toml::Table(table) => {
                let mut entries = Vec::with_capacity(table.len());
                for (key, value) in table {
                    path.push(key.clone());
                    let at = first.get(path.as_slice()).copied().unwrap_or(usize::MAX);
                    entries.push((at, key.clone(), Self::order_tree(value, path, first)));
                    path.pop();
                }
                entries.sort_by_key(|(at, ..)| *at);
                Tree::Map(entries.into_iter().map(|(_, key, value)| (key, value)).collect())
            }
            Toml::Array(items) => {
                let items = items.iter().map(|item| Self::order_tree(item, path, first));
                Tree::List(items.collect())
            }
            Toml::String(text) => Tree::Leaf(text.as_str().into()),
            Toml::Integer(number) => Tree::Leaf((*number).into()),
            Toml::Float(number) => Tree::Leaf((*number).into()),
            Toml::Boolean(value) => Tree::Leaf((*value).into()),
            Toml::Datetime(time) => Tree::Leaf(Value::from(time.to_string())),
        }
    }
}

/// Builds the layout from the parser's events.
struct LayoutBuilder<'a> {
    text: &'a str,
    layout: Layout,
    open: Vec<OpenValue>,
    /// Where the header that has not ended starts.
    header: Option<usize>,
    /// The keys of a header or before `=`.
    keys: Vec<(String, Range<usize>)>,
    start: usize,
}

impl LayoutBuilder<'_> {
    fn take(&mut self, event: &Event) {
        let span = event.span().start()..event.span().end();
        match event.kind() {
            EventKind::StdTableOpen | EventKind::ArrayTableOpen => {
                self.header = Some(span.start);
                self.keys.clear();
            }
            kind @ (EventKind::StdTableClose | EventKind::ArrayTableClose) => {
                if let Some(start) = self.header.take() {
                    let path = self.path_below(Vec::new());
                    self.layout.sections.push(TomlSection {
                        path,
                        header: start..span.end,
                        is_array: kind == EventKind::ArrayTableClose,
                    });
                }
            }
            EventKind::SimpleKey => {
                if self.keys.is_empty() {
                    self.start = span.start;
                }
                self.keys.push((decode(&self.text[span.clone()]), span));
            }
            EventKind::Scalar => {
                self.begin(span.clone(), false);
            }
            EventKind::InlineTableOpen => {
                let place = self.begin(span, true);
                self.open.push(place.map_or(OpenValue::List(None), OpenValue::Table));
            }
            EventKind::ArrayOpen => {
                let place = self.begin(span, false);
                self.open.push(OpenValue::List(place));
            }
            EventKind::InlineTableClose | EventKind::ArrayClose => {
                if let Some(OpenValue::Table(place) | OpenValue::List(Some(place))) = self.open.pop() {
                    self.layout.entries[place].value.end = span.end;
                }
            }
            EventKind::Comment => self.layout.comments.push(span),
            EventKind::KeySep
            | EventKind::KeyValSep
            | EventKind::ValueSep
            | EventKind::Whitespace
            | EventKind::Newline
            | EventKind::Error => {}
        }
    }

    /// The path of the keys that were read, below another one.
    fn path_below(&mut self, mut path: Vec<String>) -> Vec<String> {
        for (key, span) in self.keys.drain(..) {
            path.push(key);
            self.layout.keys.push((path.clone(), span));
        }
        path
    }

    /// A value starts. Its place in the entries, unless it is in a list.
    fn begin(&mut self, value: Range<usize>, is_table: bool) -> Option<usize> {
        let section = self.layout.sections.len() - 1;
        let (path, inside) = match self.open.last() {
            Some(OpenValue::List(place)) => {
                let list = place.map(|place| &mut self.layout.entries[place]);
                if let Some(list) = list {
                    list.items.push(value);
                }
                self.keys.clear();
                return None;
            }
            Some(OpenValue::Table(place)) => {
                let table = &self.layout.entries[*place];
                (table.path.clone(), Some(table.value.start))
            }
            None => (self.layout.sections[section].path.clone(), None),
        };
        let path = self.path_below(path);
        self.layout.entries.push(Entry {
            path,
            start: self.start,
            value,
            section,
            inside,
            is_table,
            items: Vec::new(),
        });
        Some(self.layout.entries.len() - 1)
    }
}

/// A key without its quotes and escapes.
fn decode(raw: &str) -> String {
    if !raw.starts_with(['"', '\'']) {
        return raw.to_owned();
    }
    let table: Result<toml::Table, _> = toml::from_str(&format!("{raw} = 0"));
    let key = table.ok().and_then(|table| table.keys().next().cloned());
    key.unwrap_or_else(|| raw.to_owned())
}
