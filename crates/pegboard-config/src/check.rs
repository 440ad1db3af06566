//! Validates a tree against the table of fields: names, types and bounds. Reports every problem, and expands variables.

mod text;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    expand::{self, Env},
    field::{Match, Section, Syntax, ValueKind, Via, Word, find_word},
    problem::{MAX_PROBLEMS, Report, join},
    setting::{Found, Rank, Setting, Unchecked, Values},
    spelling::{find_nearest, snake},
    tree::{KeyValue, Location, Node, Value},
    units,
};
use pegboard_base::diagnosis::{Code, Edit};

/// Validates tables of one file.
pub(super) struct TableChecker<'a> {
    pub(super) report: &'a mut Report,
    env: &'a Env<'a>,
    /// The rank of the settings.
    rank: Rank,
    /// Whether missing variables are only warnings.
    lenient: bool,
    /// The bytes of all expanded values so far.
    expanded: usize,
}

impl<'a> TableChecker<'a> {
    pub(super) fn new(report: &'a mut Report, env: &'a Env<'a>, rank: Rank) -> Self {
        Self {
            report,
            env,
            rank,
            lenient: env.is_lenient(),
            expanded: 0,
        }
    }

    /// Sets whether missing variables are only warnings from now on.
    pub(super) fn set_lenient(&mut self, lenient: bool) {
        self.lenient = lenient || self.env.is_lenient();
    }

    /// Validates the entries of a table.
    pub(super) fn section(&mut self, section: &'static Section, entries: &[KeyValue], path: &str) -> Values {
        let mut values = Values::default();
        for entry in entries {
            if entry.is_note() {
                continue;
            }
            if self.report.errors() >= MAX_PROBLEMS {
                // An error, so that a partly validated server is not used.
                self.report
                    .error(entry.at, path, "is not read further, there are too many errors");
                break;
            }
            let field = join(path, &entry.key);
            let Some(found) = section.find(&entry.key) else {
                self.report_unknown(section, entry, &field);
                continue;
            };
            if let Some(first) = values.find(found.field) {
                let message = format!("`{}` and `{}` are the same setting", first.key, entry.key);
                self.report.error_with(entry.at, &field, message, "keep one of them");
                continue;
            }
            if let Some(setting) = self.field(found, entry, &field) {
                if let Some(syntax) = found.field.syntax {
                    self.syntax(syntax, &setting, &field);
                }
                let found_here = Found {
                    setting,
                    at: entry.at,
                    key: entry.key.clone(),
                    rank: self.rank,
                    file: self.report.file_name(),
                    variables: variables(&entry.value, found.via),
                };
                values.insert(found.field, found_here);
            }
        }
        values
    }

    /// Reports the texts of a setting that have another syntax.
    fn syntax(&mut self, syntax: Syntax, setting: &Setting, path: &str) {
        match setting {
            Setting::Text(text) | Setting::Secret(text) => match (syntax.problem)(&text.value) {
                Some(problem) if syntax.hint.is_empty() => self.report.error(text.at, path, problem),
                Some(problem) => self.report.error_with(text.at, path, problem, syntax.hint),
                None => {}
            },
            Setting::List(items) => items.iter().for_each(|item| self.syntax(syntax, item, path)),
            _ => {}
        }
    }

    fn report_unknown(&mut self, section: &'static Section, entry: &KeyValue, field: &str) {
        let message = "there is no such setting";
        let nearest = section.find_nearest(&entry.key);
        match nearest {
            Some(name) => self
                .report
                .error_with(entry.at, field, message, format!("did you mean `{name}`?")),
            None => self.report.error_with(
                entry.at,
                field,
                message,
                "`pegboard config schema` lists the settings there are",
            ),
        }
        let rename = nearest.map(|name| Edit::Rename {
            key: field.to_owned(),
            to: name.to_owned(),
        });
        self.report.name_last(Code::UnknownSetting, rename);
    }

    fn field(&mut self, found: Match, entry: &KeyValue, path: &str) -> Option<Setting> {
        let node = &entry.value;
        if node.value == Value::Null {
            return None;
        }
        match found.via {
            None => {
                // Programs disagree about the unit of a bare `timeout`, so the assumed unit is reported.
                let unit = match (&node.value, found.unit) {
                    (Value::Int(number), None) if *number != 0 && snake(&entry.key) == "timeout" => {
                        let (unit, word) = if *number < 1000 {
                            (1000, "seconds")
                        } else {
                            (1, "milliseconds")
                        };
                        let message = format!("{number} is taken as {word}");
                        self.report
                            .warn_with(node.at, path, message, "write it with a unit, such as `\"30s\"`");
                        Some(unit)
                    }
                    (_, unit) => unit,
                };
                self.setting(&found.field.kind, node, path, unit)
            }
            Some(Via::Negated) => match self.setting(&ValueKind::Bool, node, path, None)? {
                Setting::Bool(value) => Some(Setting::Bool(!value)),
                _ => None,
            },
            Some(Via::SharedFlag) => match self.setting(&ValueKind::Bool, node, path, None)? {
                Setting::Bool(true) => Some(Setting::Word("shared")),
                _ => Some(Setting::Word("session")),
            },
            Some(Via::VariableName) => match &node.value {
                Value::Text(name) => {
                    let reference = Node::text(format!("${{{name}}}"), node.at);
                    self.setting(&found.field.kind, &reference, path, None)
                }
                _ => self.report_wrong_type(node, path, "the name of a variable"),
            },
        }
    }

    fn setting(&mut self, kind: &ValueKind, node: &Node, path: &str, unit: Option<u64>) -> Option<Setting> {
        match kind {
            ValueKind::Text => self.text(node, path, false).map(Setting::Text),
            ValueKind::Secret => self.text(node, path, true).map(Setting::Secret),
            ValueKind::Any => Some(Setting::Any(Unchecked(node.clone()))),
            ValueKind::List(kind) => match &node.value {
                Value::List(items) => Some(Setting::List(self.list(kind, items, path))),
                _ => self.report_wrong_type(node, path, "a list"),
            },
            ValueKind::Map(kind) => match &node.value {
                Value::Map(entries) => Some(Setting::Map(self.map(kind, entries, path))),
                _ => self.report_wrong_type(node, path, "a table"),
            },
            ValueKind::Table(section) => match &node.value {
                Value::Map(entries) => Some(Setting::Table(self.section(section, entries, path))),
                _ => self.report_wrong_type(node, path, "a table"),
            },
            ValueKind::Either(kinds) => match kinds.iter().find(|kind| fits(kind, node, unit)) {
                Some(kind) => self.setting(kind, node, path, unit),
                None => self.report_wrong_type(node, path, &describe(&ValueKind::Either(kinds))),
            },
            ValueKind::Bool
            | ValueKind::Word(_)
            | ValueKind::Count { .. }
            | ValueKind::Duration { .. }
            | ValueKind::Size { .. } => self.scalar(kind, node, path, unit),
        }
    }

    fn list(&mut self, kind: &ValueKind, items: &[Node], path: &str) -> Vec<Setting> {
        let each = items.iter().enumerate();
        each.filter_map(|(index, item)| self.setting(kind, item, &format!("{path}[{index}]"), None))
            .collect()
    }

    fn map(&mut self, kind: &ValueKind, entries: &[KeyValue], path: &str) -> BTreeMap<String, Setting> {
        let mut map = BTreeMap::new();
        for entry in entries.iter().filter(|entry| entry.value.value != Value::Null) {
            let path = join(path, &entry.key);
            if let Some(setting) = self.setting(kind, &entry.value, &path, None) {
                map.insert(entry.key.clone(), setting);
            }
        }
        map
    }

    /// Reads a value that is not a text. A text with variables is expanded and then parsed.
    fn scalar(&mut self, kind: &ValueKind, node: &Node, path: &str, unit: Option<u64>) -> Option<Setting> {
        let expanded;
        let node = match &node.value {
            Value::Text(text) if expand::has_variables(text) => {
                let text = self.text(node, path, false)?.value;
                expanded = Node::new(parse_plain(kind, text), node.at);
                &expanded
            }
            _ => node,
        };
        match (kind, &node.value) {
            (ValueKind::Bool, Value::Bool(value)) => Some(Setting::Bool(*value)),
            (ValueKind::Word(words), Value::Text(text)) => self.word(words, text, node.at, path),
            (ValueKind::Count { min, max }, Value::Int(number)) => {
                let shown = (min.to_string(), max.to_string());
                self.check_bounds(u64::try_from(*number).ok(), (*min, *max), &shown, node.at, path)
                    .map(Setting::Count)
            }
            (ValueKind::Size { min, max }, Value::Int(_) | Value::Text(_)) => {
                let bytes = match &node.value {
                    Value::Int(number) => u64::try_from(*number).ok(),
                    Value::Text(text) => match units::size(text) {
                        None => return self.report_wrong_type(node, path, &describe(kind)),
                        bytes => bytes,
                    },
                    _ => None,
                };
                let shown = (units::SizeText(*min).to_string(), units::SizeText(*max).to_string());
                self.check_bounds(bytes, (*min, *max), &shown, node.at, path)
                    .map(Setting::Size)
            }
            (ValueKind::Duration { min, max }, _) => self.duration((*min, *max), node, path, unit),
            _ => self.report_wrong_type(node, path, &describe(kind)),
        }
    }

    fn duration(&mut self, bounds: (u64, u64), node: &Node, path: &str, unit: Option<u64>) -> Option<Setting> {
        let seconds = |number: f64, unit: u64| {
            // A unit is 1 or 1000, so the conversion is exact.
            Duration::try_from_secs_f64(number * unit as f64 / 1000.0).ok()
        };
        let duration = match (&node.value, unit) {
            (Value::Text(text), None) => units::duration(text),
            (Value::Text(text), Some(unit)) => match text.trim().parse() {
                Ok(number) => seconds(number, unit),
                Err(_) => units::duration(text),
            },
            (Value::Int(0), _) if bounds.0 > 0 => {
                let longest = units::duration_text(Duration::from_millis(bounds.1));
                let hint = format!("leave the setting out; the longest limit is `\"{longest}\"`");
                self.report.warn_with(node.at, path, "0 means that it is not set", hint);
                return None;
            }
            (Value::Int(number), Some(unit)) => match number.is_negative() {
                true => None,
                false => seconds(*number as f64, unit),
            },
            (Value::Float(number), Some(unit)) => seconds(*number, unit),
            (Value::Int(_) | Value::Float(_), None) => {
                self.report.error_with(
                    node.at,
                    path,
                    "the number has no unit",
                    "write `\"30s\"`, `\"2m\"` or `\"500ms\"`",
                );
                return None;
            }
            _ => None,
        };
        let Some(duration) = duration else {
            return self.report_wrong_type(node, path, "a duration such as `\"30s\"`");
        };
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let text = |millis| units::duration_text(Duration::from_millis(millis));
        let shown = (text(bounds.0), text(bounds.1));
        self.check_bounds(Some(millis), bounds, &shown, node.at, path)?;
        Some(Setting::Duration(duration))
    }

    fn check_bounds(
        &mut self,
        value: Option<u64>,
        bounds: (u64, u64),
        shown: &(String, String),
        at: Location,
        path: &str,
    ) -> Option<u64> {
        // `None` is a negative number.
        if value.is_some_and(|value| (bounds.0..=bounds.1).contains(&value)) {
            return value;
        }
        let message = format!("must be between {} and {}", shown.0, shown.1);
        self.report.error(at, path, message);
        None
    }

    fn word(&mut self, words: &'static [Word], text: &str, at: Location, path: &str) -> Option<Setting> {
        if let Some(name) = find_word(words, text) {
            return Some(Setting::Word(name));
        }
        let names: Vec<&str> = words.iter().map(|word| word.name).collect();
        let message = format!("must be one of {}", names.join(", "));
        let every = words
            .iter()
            .flat_map(|word| std::iter::once(word.name).chain(word.spellings.iter().copied()));
        match find_nearest(&snake(text), every) {
            Some(name) => self
                .report
                .error_with(at, path, message, format!("did you mean `{name}`?")),
            None => self.report.error(at, path, message),
        }
        None
    }

    fn report_wrong_type<T>(&mut self, node: &Node, path: &str, wanted: &str) -> Option<T> {
        // "not a text" would not explain why a text does not parse.
        let message = match node.value {
            Value::Text(_) => format!("must be {wanted}"),
            _ => format!("must be {wanted}, not {}", node.kind()),
        };
        self.report.error(node.at, path, message);
        None
    }
}

/// The names of the variables that a value refers to, each once.
fn variables(node: &Node, via: Option<Via>) -> Vec<String> {
    fn collect(node: &Node, names: &mut BTreeSet<String>) {
        match &node.value {
            Value::Text(text) => names.extend(expand::pieces(text).into_iter().filter_map(|piece| match piece {
                expand::Piece::Variable { name, .. } => Some(name.to_owned()),
                _ => None,
            })),
            Value::List(items) => items.iter().for_each(|item| collect(item, names)),
            Value::Map(entries) => entries.iter().for_each(|entry| collect(&entry.value, names)),
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {}
        }
    }
    if let (Some(Via::VariableName), Value::Text(name)) = (via, &node.value) {
        return vec![name.clone()];
    }
    let mut names = BTreeSet::new();
    collect(node, &mut names);
    names.into_iter().collect()
}

/// Whether a value has the form that `kind` takes.
fn fits(kind: &ValueKind, node: &Node, unit: Option<u64>) -> bool {
    match (kind, &node.value) {
        (ValueKind::Word(words), Value::Text(text)) => find_word(words, text).is_some(),
        (ValueKind::Duration { .. }, Value::Text(text)) => {
            expand::has_variables(text) || units::duration(text).is_some()
        }
        (ValueKind::Duration { .. }, Value::Int(number)) => unit.is_some() || *number == 0,
        (ValueKind::Duration { .. }, Value::Float(_)) => unit.is_some(),
        (ValueKind::Bool, Value::Bool(_)) | (ValueKind::Count { .. } | ValueKind::Size { .. }, Value::Int(_)) => true,
        (ValueKind::Text | ValueKind::Secret | ValueKind::Size { .. }, Value::Text(_)) => true,
        (ValueKind::List(_), Value::List(_)) | (ValueKind::Map(_) | ValueKind::Table(_), Value::Map(_)) => true,
        (ValueKind::Either(kinds), _) => kinds.iter().any(|kind| fits(kind, node, unit)),
        (ValueKind::Any, _) => true,
        _ => false,
    }
}

/// Parses an expanded text as a value of `kind`, or keeps it as a text.
fn parse_plain(kind: &ValueKind, text: String) -> Value {
    match (kind, text.trim()) {
        (ValueKind::Bool, "true") => Value::Bool(true),
        (ValueKind::Bool, "false") => Value::Bool(false),
        (ValueKind::Count { .. }, number) => number.parse().map_or(Value::Text(text), Value::Int),
        _ => Value::Text(text),
    }
}

/// The name of a kind of value in messages.
pub(super) fn describe(kind: &ValueKind) -> String {
    match kind {
        ValueKind::Bool => "true or false".into(),
        ValueKind::Text | ValueKind::Secret => "a text".into(),
        ValueKind::Count { .. } => "a whole number".into(),
        ValueKind::Duration { .. } => "a duration such as `\"30s\"`".into(),
        ValueKind::Size { .. } => "a size such as `\"8MiB\"`".into(),
        ValueKind::Word(words) => {
            let names: Vec<String> = words.iter().map(|word| format!("`{}`", word.name)).collect();
            names.join(" or ")
        }
        ValueKind::List(_) => "a list".into(),
        ValueKind::Map(_) | ValueKind::Table(_) => "a table".into(),
        ValueKind::Either(kinds) => kinds.iter().map(describe).collect::<Vec<_>>().join(" or "),
        ValueKind::Any => "anything".into(),
    }
}
