//! The description of a field in the table of fields: names, kind, default, and the servers it applies to.

use std::time::Duration;

use super::spelling::{nearest, snake};

/// A table in a config file: the fields it may have.
#[derive(Debug)]
pub(super) struct Section {
    /// The name of its definition in the JSON Schema.
    pub(super) name: &'static str,
    pub(super) fields: &'static [&'static Field],
}

/// One field of a section.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    /// Its name, in snake case. Camel and kebab case are accepted too.
    pub(super) name: &'static str,
    /// Other names for it, in snake case.
    pub(super) aliases: &'static [&'static str],
    /// Other names under which the value has another form.
    pub(super) converted: &'static [(&'static str, Via)],
    pub(super) kind: Kind,
    /// The value in effect when the field is not set.
    pub(super) default: DefaultValue,
    pub(super) effect: Effect,
    /// The servers it has an effect on.
    pub(super) applies: Applies,
    pub(super) doc: &'static str,
}

/// How a value under another name is converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Via {
    /// The opposite: `disabled` for `enabled`.
    Negated,
    /// The name of the variable that holds the value.
    VariableName,
    /// True for `shared`, false for `session`.
    SharedFlag,
}

/// Whether a field does something in this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Now,
    /// Belongs to another program that reads the same file; accepted without a warning.
    Foreign,
}

/// The servers that a field has an effect on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Applies {
    All,
    /// Child processes.
    Stdio,
    /// Servers with a URL.
    Remote,
}

/// The kind of value that a field takes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Bool,
    Text,
    /// A text that is redacted wherever settings are shown.
    Secret,
    Count {
        min: u64,
        max: u64,
    },
    /// `"30s"`, or a number under a name that ends in a unit. The bounds are in milliseconds.
    Duration {
        min: u64,
        max: u64,
    },
    /// `"8MiB"`, or a number of bytes.
    Size {
        min: u64,
        max: u64,
    },
    Word(&'static [Word]),
    List(&'static Self),
    Map(&'static Self),
    Table(&'static Section),
    /// The first kind that fits the shape of the value.
    Either(&'static [Self]),
    /// Not validated.
    Any,
}

/// One of the words that a field accepts, and other spellings of it.
#[derive(Debug)]
pub(super) struct Word {
    pub(super) name: &'static str,
    pub(super) spellings: &'static [&'static str],
}

/// The default of a field, as it is shown.
#[derive(Debug, Clone, Copy)]
pub(super) enum DefaultValue {
    None,
    Bool(bool),
    Count(usize),
    Size(usize),
    Duration(Duration),
    Durations(&'static [Duration]),
    Text(&'static str),
    Texts(&'static [&'static str]),
    EmptyList,
    EmptyTable,
}

impl DefaultValue {
    pub(super) fn is_some(self) -> bool {
        !matches!(self, Self::None)
    }
}

impl Kind {
    /// The section of a kind that is a table, or that may be one.
    pub(super) fn section(&self) -> Option<&'static Section> {
        match self {
            Self::Table(section) => Some(section),
            Self::Either(kinds) => kinds.iter().find_map(Self::section),
            _ => None,
        }
    }
}

impl Field {
    /// All its names, in snake case, the main one first.
    pub(super) fn names(&self) -> impl Iterator<Item = &'static str> {
        let converted = self.converted.iter().map(|(name, _)| *name);
        std::iter::once(self.name)
            .chain(self.aliases.iter().copied())
            .chain(converted)
    }

    pub(super) fn takes_duration(&self) -> bool {
        match self.kind {
            Kind::Duration { .. } => true,
            Kind::Either(kinds) => kinds.iter().any(|kind| matches!(kind, Kind::Duration { .. })),
            _ => false,
        }
    }
}

/// The field that a key names, and how the key spells it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Match {
    pub(super) field: &'static Field,
    pub(super) via: Option<Via>,
    /// The unit that the key ends in, in milliseconds.
    pub(super) unit: Option<u64>,
}

/// Suffixes of keys that give the unit of a number.
const UNITS: &[(&str, u64)] = &[
    ("_ms", 1),
    ("_millis", 1),
    ("_milliseconds", 1),
    ("_s", 1000),
    ("_sec", 1000),
    ("_secs", 1000),
    ("_seconds", 1000),
];

impl Section {
    /// The field that `key` names, in any spelling.
    pub(super) fn find(&self, key: &str) -> Option<Match> {
        let key = snake(key);
        let whole = self.named(&key);
        whole.or_else(|| {
            UNITS.iter().find_map(|(ending, unit)| {
                let found = self.named(key.strip_suffix(ending)?)?;
                let timed = found.via.is_none() && found.field.takes_duration();
                timed.then_some(Match {
                    unit: Some(*unit),
                    ..found
                })
            })
        })
    }

    fn named(&self, key: &str) -> Option<Match> {
        self.fields.iter().find_map(|field| {
            let via = field.converted.iter().find(|(name, _)| *name == key);
            let via = via.map(|(_, via)| *via);
            (via.is_some() || field.name == key || field.aliases.contains(&key)).then_some(Match {
                field,
                via,
                unit: None,
            })
        })
    }

    /// The name that is most similar to `key`, for suggestions.
    pub(crate) fn nearest(&self, key: &str) -> Option<&'static str> {
        nearest(&snake(key), self.fields.iter().flat_map(|field| field.names()))
    }
}

/// The word that `text` spells, in any case.
pub(super) fn find_word(words: &'static [Word], text: &str) -> Option<&'static str> {
    let text = snake(text.trim());
    let is = |name: &str| snake(name) == text;
    words
        .iter()
        .find(|word| is(word.name) || word.spellings.iter().any(|spelling| is(spelling)))
        .map(|word| word.name)
}
