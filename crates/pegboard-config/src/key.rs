//! Typed keys: the kinds of settings, and the rules that a declaration adds to them.
//!
//! A [`Key<S, T>`] is a setting of the section `S` whose value is a `T`. [`settings!`](super::settings) declares a section's keys, and values are
//! read by them only, so a setting that is read but not declared does not compile, and neither does one that is read as another type.

mod table;

pub(crate) use table::Table;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    marker::PhantomData,
    ops::Deref,
    time::Duration,
};

use super::{
    choice::{Choice, DefaultChoice},
    field::{
        Applies, DefaultValue, Effect, Field, Floor, ForAll, InProject, ShortForm, Syntax, Usage, ValueKind, Via, Void,
        Word,
    },
    from_setting::FromSetting,
    setting::Setting,
};

/// A field of the section that `S` marks, read as a `T`.
pub(super) struct Key<S, T> {
    pub(super) field: Field,
    /// The value in effect when the field is not set.
    pub(super) default: T,
    /// Makes the default where a constant cannot.
    default_by: Option<fn() -> T>,
    read: fn(&Setting) -> Option<T>,
    section: PhantomData<fn() -> S>,
}

impl<S, T> Deref for Key<S, T> {
    type Target = Field;

    fn deref(&self) -> &Field {
        &self.field
    }
}

impl<S, T> fmt::Debug for Key<S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.field.name)
    }
}

/// The type of a key whose value is a table: the section that `S` marks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Nested<S>(PhantomData<fn() -> S>);

/// The values of a nested table are read by [`Table::table`].
impl<S> FromSetting for Nested<S> {
    fn from_setting(_: &Setting) -> Option<Self> {
        None
    }
}

const fn key<S, T: FromSetting>(kind: ValueKind, default: T, shown: DefaultValue) -> Key<S, T> {
    Key {
        field: Field {
            default: shown,
            ..plain("", kind, "")
        },
        default,
        default_by: None,
        read: T::from_setting,
        section: PhantomData,
    }
}

/// A field without a key: one of another program or version, or the only one of its section.
pub(super) const fn plain(name: &'static str, kind: ValueKind, doc: &'static str) -> Field {
    Field {
        name,
        aliases: &[],
        converted: &[],
        kind,
        syntax: None,
        default: DefaultValue::None,
        effect: Effect::Now,
        applies: Applies::All,
        for_all: None,
        in_project: InProject::OwnServers,
        floor: Floor::None,
        protects: false,
        live: false,
        merged: None,
        void: Void::Never,
        usage: Usage::Ordinary,
        doc,
    }
}

/// A field of another program that reads the same file.
pub(super) const fn foreign(name: &'static str) -> Field {
    Field {
        effect: Effect::Foreign,
        ..plain(name, ValueKind::Any, "")
    }
}

/// True or false.
pub(super) const fn flag<S>(default: bool) -> Key<S, bool> {
    key(ValueKind::Bool, default, DefaultValue::Bool(default))
}

/// True, false, or not set.
pub(super) const fn optional_flag<S>() -> Key<S, Option<bool>> {
    key(ValueKind::Bool, None, DefaultValue::None)
}

/// Whole numbers between `min` and `max` as a kind.
pub(super) const fn number(min: u64, max: u64) -> ValueKind {
    ValueKind::Count { min, max }
}

/// Numbers of bytes between `min` and `max` as a kind.
pub(super) const fn bytes(min: u64, max: u64) -> ValueKind {
    ValueKind::Size { min, max }
}

/// A whole number between `min` and `max`.
pub(super) const fn count<S>((min, max): (u64, u64), default: usize) -> Key<S, usize> {
    key(number(min, max), default, DefaultValue::Count(default))
}

/// A whole number of at most 32 bits.
pub(super) const fn small<S>((min, max): (u64, u64), default: u32) -> Key<S, u32> {
    key(number(min, max), default, DefaultValue::Count(default as usize))
}

/// A whole number, or none.
pub(super) const fn optional_count<S, T: FromSetting>((min, max): (u64, u64)) -> Key<S, Option<T>> {
    key(number(min, max), None, DefaultValue::None)
}

/// A number of bytes.
pub(super) const fn size<S>((min, max): (u64, u64), default: usize) -> Key<S, usize> {
    key(bytes(min, max), default, DefaultValue::Size(default))
}

/// A number of bytes, or none.
pub(super) const fn optional_size<S, T: FromSetting>((min, max): (u64, u64)) -> Key<S, Option<T>> {
    key(bytes(min, max), None, DefaultValue::None)
}

/// The shortest and the longest timeout, in milliseconds.
pub(super) const LIMIT: ValueKind = ValueKind::Duration {
    min: 1,
    max: 24 * 3600 * 1000,
};

/// A wait that may be zero.
pub(super) const WAIT: ValueKind = ValueKind::Duration {
    min: 0,
    max: 24 * 3600 * 1000,
};

/// A time limit in seconds: a millisecond at least, a day at most.
pub(super) const fn limit<S>(seconds: u64) -> Key<S, Duration> {
    duration(LIMIT, seconds)
}

/// A duration with other bounds; the default is in seconds.
pub(super) const fn duration<S>(kind: ValueKind, seconds: u64) -> Key<S, Duration> {
    let default = Duration::from_secs(seconds);
    key(kind, default, DefaultValue::Duration(default))
}

/// A time limit in seconds, or `off`.
pub(super) const fn limit_or_off<S>(seconds: u64) -> Key<S, Option<Duration>> {
    let default = Duration::from_secs(seconds);
    key(
        ValueKind::Either(LIMIT_OR_OFF),
        Some(default),
        DefaultValue::Duration(default),
    )
}

const LIMIT_OR_OFF: &[ValueKind] = &[ValueKind::Word(&[word("off")]), LIMIT];

/// A duration, or none.
pub(super) const fn optional_duration<S>(kind: ValueKind) -> Key<S, Option<Duration>> {
    key(kind, None, DefaultValue::None)
}

/// A text, or none. `T` parses a text with a syntax of its own, or keeps its written form and location.
pub(super) const fn text<S, T: FromSetting>() -> Key<S, Option<T>> {
    key(ValueKind::Text, None, DefaultValue::None)
}

/// A text that is redacted wherever settings are shown.
pub(super) const fn secret<S, T: FromSetting>() -> Key<S, Option<T>> {
    key(ValueKind::Secret, None, DefaultValue::None)
}

/// A list of texts.
pub(super) const fn texts<S, T: FromSetting>() -> Key<S, Vec<T>> {
    key(TEXTS, Vec::new(), DefaultValue::EmptyList)
}

/// A list of texts, or none.
pub(super) const fn optional_texts<S>() -> Key<S, Option<Vec<String>>> {
    key(TEXTS, None, DefaultValue::EmptyList)
}

pub(super) const TEXTS: ValueKind = ValueKind::List(&ValueKind::Text);

/// One text, or a list of texts.
pub(super) const ONE_OR_MORE: &[ValueKind] = &[ValueKind::Text, TEXTS];

/// A text that is read as another type, with a default.
pub(super) const fn text_or<S, T: FromSetting>(default: T, shown: &'static str) -> Key<S, T> {
    key(ValueKind::Text, default, DefaultValue::Text(shown))
}

/// A text with a default.
pub(super) const fn required_text<S>(default: fn() -> String) -> Key<S, String> {
    key(ValueKind::Text, String::new(), DefaultValue::None).default_by(default)
}

/// A table with keys of the user's choice.
pub(super) const fn map<S, T: FromSetting>(kind: &'static ValueKind) -> Key<S, BTreeMap<String, T>> {
    key(ValueKind::Map(kind), BTreeMap::new(), DefaultValue::EmptyTable)
}

/// A list of values of one kind.
pub(super) const fn list<S, T: FromSetting>(kind: &'static ValueKind) -> Key<S, Vec<T>> {
    key(ValueKind::List(kind), Vec::new(), DefaultValue::None)
}

/// A list of words of `T`, each at most once.
pub(super) const fn choices<S, T: Choice + FromSetting + Ord>(default: fn() -> BTreeSet<T>) -> Key<S, BTreeSet<T>> {
    key(
        ValueKind::List(&ValueKind::Word(T::WORDS)),
        BTreeSet::new(),
        DefaultValue::None,
    )
    .default_by(default)
}

/// One of the words of `T`.
pub(super) const fn choice<S, T: DefaultChoice + FromSetting>() -> Key<S, T> {
    key(word_kind::<T>(), T::DEFAULT, DefaultValue::Text(T::DEFAULT_WORD))
}

/// One of the words of `T`, or none.
pub(super) const fn optional_choice<S, T: Choice + FromSetting>() -> Key<S, Option<T>> {
    key(word_kind::<T>(), None, DefaultValue::None)
}

/// The words of `T` as a kind, for fields that take other values too.
pub(super) const fn word_kind<T: Choice>() -> ValueKind {
    ValueKind::Word(T::WORDS)
}

/// A table of the section that `U` marks, or a short form of it.
pub(super) const fn table<S, U>(kind: ValueKind) -> Key<S, Nested<U>> {
    key(kind, Nested(PhantomData), DefaultValue::None)
}

/// A field with several forms. `T` has a constructor for each of them.
pub(super) const fn either<S, T: FromSetting>(
    kinds: &'static [ValueKind],
    default: T,
    shown: DefaultValue,
) -> Key<S, T> {
    key(ValueKind::Either(kinds), default, shown)
}

/// The problem of a text that is not valid.
pub(super) fn unless(is_valid: bool, problem: &str) -> Option<String> {
    (!is_valid).then(|| problem.to_owned())
}

/// The problem of a text that cannot be parsed.
pub(super) fn parse_problem<T, E: fmt::Display>(parsed: Result<T, E>) -> Option<String> {
    parsed.err().map(|error| error.to_string())
}

/// The short form of a table with a flag such as `enabled`: a boolean or `off`.
pub(super) fn switch(enabled: &'static Field, setting: &Setting) -> Option<(&'static Field, Setting)> {
    match setting {
        Setting::Bool(_) => Some((enabled, setting.clone())),
        // `off` is the only word that the field accepts.
        Setting::Word(_) => Some((enabled, Setting::Bool(false))),
        _ => None,
    }
}

pub(super) const fn word(name: &'static str) -> Word {
    Word { name, spellings: &[] }
}

impl<S, T> Key<S, T> {
    /// Sets the name, unless [`called`](Self::called) has set it, and the description: the lines of a doc comment.
    pub(super) const fn describe(mut self, name: &'static str, doc: &'static str) -> Self {
        if self.field.name.is_empty() {
            self.field.name = name;
        }
        self.field.doc = doc.trim_ascii();
        self
    }

    /// The name in config files, where it is not that of the Rust field.
    pub(super) const fn called(mut self, name: &'static str) -> Self {
        self.field.name = name;
        self
    }

    /// Converts settings by `read`, for forms that the type does not tell.
    pub(super) const fn via(mut self, read: fn(&Setting) -> Option<T>) -> Self {
        self.read = read;
        self
    }

    /// Reports its texts that `problem` finds something wrong with.
    pub(super) const fn syntax(mut self, problem: fn(&str) -> Option<String>, hint: &'static str) -> Self {
        self.field.syntax = Some(Syntax { problem, hint });
        self
    }

    /// Other names for it, in snake case.
    pub(super) const fn aka(mut self, aliases: &'static [&'static str]) -> Self {
        self.field.aliases = aliases;
        self
    }

    /// Other names under which the value has another form.
    pub(super) const fn converted(mut self, converted: &'static [(&'static str, Via)]) -> Self {
        self.field.converted = converted;
        self
    }

    /// The default as it is shown, where it is not the key's own.
    pub(super) const fn shown(mut self, default: DefaultValue) -> Self {
        self.field.default = default;
        self
    }

    /// The default of a type that has no constant values.
    pub(super) const fn default_by(mut self, default: fn() -> T) -> Self {
        self.default_by = Some(default);
        self
    }

    /// It has an effect on child processes only.
    pub(super) const fn stdio(mut self) -> Self {
        self.field.applies = Applies::Stdio;
        self
    }

    /// It has an effect on servers with a URL only.
    pub(super) const fn remote(mut self) -> Self {
        self.field.applies = Applies::Remote;
        self
    }

    /// Most files set it: it stands in the first table of the reference page.
    pub(super) const fn common(mut self) -> Self {
        self.field.usage = Usage::Common;
        self
    }

    /// Nothing but presets sets it: it stands apart in the reference page.
    pub(super) const fn preset_only(mut self) -> Self {
        self.field.usage = Usage::Presets;
        self
    }

    /// A change applies to a running server at once; that of any other setting replaces its connection.
    pub(super) const fn live(mut self) -> Self {
        self.field.live = true;
        self
    }

    /// It is a table that is merged key by key with those of weaker layers. Its short forms are expanded first.
    pub(super) const fn merged(mut self, short: ShortForm) -> Self {
        self.field.merged = Some(short);
        self
    }

    /// A weaker table's setting is left out if a stronger table has one of the settings of these names.
    pub(super) const fn void_if(mut self, names: &'static [&'static str]) -> Self {
        self.field.void = Void::IfSet(names);
        self
    }

    /// A weaker table's setting is left out if there is a stronger table.
    pub(super) const fn void_if_table(mut self) -> Self {
        self.field.void = Void::IfTable;
        self
    }

    /// It may also stand at the top of a file, under these other names, for every server that does not set it.
    pub(super) const fn for_all(self, aliases: &'static [&'static str]) -> Self {
        self.for_all_as("The same for every server that does not say otherwise.", aliases)
    }

    /// The same with a description of its own.
    pub(super) const fn for_all_as(mut self, doc: &'static str, aliases: &'static [&'static str]) -> Self {
        self.field.for_all = Some(ForAll { aliases, doc });
        self
    }

    /// It restricts what servers and models may do or see, or hides secrets.
    pub(super) const fn protects(mut self) -> Self {
        self.field.protects = true;
        self
    }

    /// What it does at the top of a project file.
    pub(super) const fn in_project(mut self, rule: InProject) -> Self {
        self.field.in_project = rule;
        self
    }

    /// A project file may only lower it.
    pub(super) const fn lowers(self) -> Self {
        self.in_project(InProject::Lowers)
    }

    /// When it is too weak for a server of a project file.
    pub(super) const fn floor(mut self, floor: Floor) -> Self {
        self.field.floor = floor;
        self
    }
}

impl<S, T: Clone> Key<S, T> {
    /// The value in effect when the field is not set.
    pub(super) fn default(&self) -> T {
        self.default_by
            .map_or_else(|| self.default.clone(), |default| default())
    }
}

impl Field {
    /// The same field in a section where it is short for this one.
    pub(super) const fn short_for(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }
}
