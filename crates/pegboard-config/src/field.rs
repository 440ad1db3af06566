//! The description of a field in the table of fields: names, kind, default, and the servers it applies to.

use std::time::Duration;

use super::{
    setting::Setting,
    spelling::{find_nearest, snake},
};

/// A table in a config file: the fields it may have.
#[derive(Debug)]
pub(super) struct Section {
    /// The name of its definition in the JSON Schema.
    pub(super) name: &'static str,
    pub(super) parts: &'static [&'static [&'static Field]],
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
    pub(super) kind: ValueKind,
    /// The syntax of its texts, besides the kind.
    pub(super) syntax: Option<Syntax>,
    /// The value in effect when the field is not set.
    pub(super) default: DefaultValue,
    pub(super) effect: Effect,
    /// The servers it has an effect on.
    pub(super) applies: Applies,
    /// How it may also stand at the top of a file, for every server that does not set it.
    pub(super) for_all: Option<ForAll>,
    /// What it does at the top of a project file.
    pub(super) in_project: InProject,
    /// When it is too weak for a server of a project file.
    pub(super) floor: Floor,
    /// Whether it restricts what servers and models may do or see, or hides secrets. An error in it keeps servers from starting without it.
    pub(super) protects: bool,
    /// Whether a change of a server's setting applies to it at once. Other changes replace its connection.
    pub(super) live: bool,
    /// How a table is merged with that of a weaker layer; `None` if the stronger one replaces it.
    pub(super) merged: Option<ShortForm>,
    /// Which settings of a stronger table make a weaker setting of this one void.
    pub(super) void: Void,
    /// Who sets it, for the reference page.
    pub(super) usage: Usage,
    pub(super) doc: &'static str,
}

/// The syntax of a text, or of each text of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Syntax {
    /// What is wrong with a text, if anything is.
    pub(super) problem: fn(&str) -> Option<String>,
    /// How to write it; empty if the problem says it.
    pub(super) hint: &'static str,
}

/// The setting of a table that a short form of the table sets, and its value; `None` for the table itself.
pub(super) type ShortForm = fn(&Setting) -> Option<(&'static Field, Setting)>;

/// When a setting of a table is void in a weaker layer, because the table of a stronger layer says otherwise by other settings.
#[derive(Debug, Clone, Copy)]
pub(super) enum Void {
    /// Never.
    Never,
    /// If there is a stronger table.
    IfTable,
    /// If the stronger table has one of the settings of these names.
    IfSet(&'static [&'static str]),
}

/// Who sets a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    /// Most files.
    Common,
    /// Files that need it.
    Ordinary,
    /// Nothing but presets.
    Presets,
}

/// How a setting of servers stands at the top of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct ForAll {
    /// Other names for it there, in snake case.
    pub(super) aliases: &'static [&'static str],
    pub(super) doc: &'static str,
}

/// What a setting at the top of a project file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InProject {
    /// It applies to the file's own servers, as if each of them had it in its own table.
    OwnServers,
    /// It is left out.
    LeftOut,
    /// It applies to all servers if it is stricter.
    Approval,
    /// It adds to the masking of all servers.
    Masking,
    /// It lowers a limit of the board.
    Lowers,
    /// It adds queues and lowers the limits of others.
    Queues,
    /// It adds views of other names.
    Views,
    /// It applies if no other file sets it.
    IfUnset,
}

/// When a setting of a project file is left out because it is weaker than that of the user's own files for all servers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Floor {
    /// Never.
    None,
    /// If the function returns `true` for it and the user's setting.
    Users(IsWeaker),
    /// The same, and the default counts as the user's setting.
    Default(IsWeaker),
    /// If the user sets it as well, because there is no order among its values; of a table only the keys that both set.
    Both,
}

/// Whether the first setting is weaker than the second one, or than the default if there is none.
pub(super) type IsWeaker = fn(&Setting, Option<&Setting>) -> bool;

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
pub(super) enum ValueKind {
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

    /// The number that it is.
    pub(super) fn number(self) -> Option<usize> {
        match self {
            Self::Count(number) | Self::Size(number) => Some(number),
            _ => None,
        }
    }
}

impl ValueKind {
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
            ValueKind::Duration { .. } => true,
            ValueKind::Either(kinds) => kinds.iter().any(|kind| matches!(kind, ValueKind::Duration { .. })),
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
    /// Its fields.
    pub(super) fn fields(&self) -> impl Iterator<Item = &'static Field> + use<> {
        self.parts.iter().copied().flatten().copied()
    }

    /// The field that `key` names, in any spelling.
    pub(super) fn find(&self, key: &str) -> Option<Match> {
        let key = snake(key);
        let whole = self.find_named(&key);
        whole.or_else(|| {
            UNITS.iter().find_map(|(ending, unit)| {
                let found = self.find_named(key.strip_suffix(ending)?)?;
                let timed = found.via.is_none() && found.field.takes_duration();
                timed.then_some(Match {
                    unit: Some(*unit),
                    ..found
                })
            })
        })
    }

    fn find_named(&self, key: &str) -> Option<Match> {
        self.fields().find_map(|field| {
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
    pub(crate) fn find_nearest(&self, key: &str) -> Option<&'static str> {
        find_nearest(&snake(key), self.fields().flat_map(|field| field.names()))
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
