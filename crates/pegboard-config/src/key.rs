//! Typed keys: the constants that make up the table of fields, and the only way to read its values.
//!
//! A [`Key<S, T>`] is a field of the section `S` whose value is a `T`. [`section!`] declares a section's keys and its table from
//! one list, so a field that is read but not in the table does not compile, and neither does one that is read as another type.

use std::{collections::BTreeMap, fmt, marker::PhantomData, ops::Deref, time::Duration};

use super::{
    choice::Choice,
    field::{Applies, DefaultValue, Effect, Field, Kind, Via, Word},
    from_setting::FromSetting,
    setting::{Found, Rank, Setting, Text, Values},
    tree::Place,
};

/// A field of the section that `S` marks, read as a `T`.
pub(super) struct Key<S, T> {
    pub(super) field: Field,
    default: T,
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

/// Values of the section that `S` marks.
#[derive(Debug)]
pub(super) struct Table<'a, S> {
    values: &'a Values,
    section: PhantomData<fn() -> S>,
}

impl<S> Clone for Table<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Table<'_, S> {}

impl<'a, S> Table<'a, S> {
    /// The values of a table that was validated against the section.
    pub(super) fn new(values: &'a Values) -> Self {
        Self {
            values,
            section: PhantomData,
        }
    }

    /// The value in effect: the one that is set, or the default.
    pub(super) fn get<T: FromSetting + Clone>(self, key: &Key<S, T>) -> T {
        self.set(key).unwrap_or_else(|| key.default.clone())
    }

    /// The value, if it is set.
    pub(super) fn set<T: FromSetting>(self, key: &Key<S, T>) -> Option<T> {
        T::from_setting(&self.find(key)?.setting)
    }

    /// The setting with its origin.
    pub(super) fn find<T>(self, key: &Key<S, T>) -> Option<&'a Found> {
        self.values.find(&key.field)
    }

    /// The same by a field of the table, for code that treats all fields alike.
    pub(super) fn found(self, field: &Field) -> Option<&'a Found> {
        self.values.find(field)
    }

    /// Where it is set.
    pub(super) fn at<T>(self, key: &Key<S, T>) -> Option<Place> {
        self.find(key).map(|found| found.at)
    }

    /// The rank of a setting; `None`, which is less than any, if it is not set.
    pub(super) fn rank<T>(self, key: &Key<S, T>) -> Option<Rank> {
        self.find(key).map(|found| found.rank)
    }

    /// The table, if it is set and not in a short form.
    pub(super) fn table<U>(self, key: &Key<S, Nested<U>>) -> Option<Table<'a, U>> {
        self.values.table(&key.field).map(Table::new)
    }

    /// The tables of a map, by their keys.
    pub(super) fn tables<U>(self, key: &Key<S, BTreeMap<String, Nested<U>>>) -> Vec<(&'a String, Table<'a, U>)> {
        let Some(Setting::Map(entries)) = self.find(key).map(|found| &found.setting) else {
            return Vec::new();
        };
        let table = |(name, setting): (&'a String, &'a Setting)| match setting {
            Setting::Table(values) => Some((name, Table::new(values))),
            _ => None,
        };
        entries.iter().filter_map(table).collect()
    }

    /// The tables of a list.
    pub(super) fn list<U>(self, key: &Key<S, Vec<Nested<U>>>) -> Vec<Table<'a, U>> {
        let Some(Setting::List(items)) = self.find(key).map(|found| &found.setting) else {
            return Vec::new();
        };
        let table = |setting: &'a Setting| match setting {
            Setting::Table(values) => Some(Table::new(values)),
            _ => None,
        };
        items.iter().filter_map(table).collect()
    }
}

const fn key<S, T>(name: &'static str, kind: Kind, default: T, shown: DefaultValue, doc: &'static str) -> Key<S, T> {
    Key {
        field: Field {
            default: shown,
            ..plain(name, kind, doc)
        },
        default,
        section: PhantomData,
    }
}

/// A field without a key: one of another program or version, or the only one of its section.
pub(super) const fn plain(name: &'static str, kind: Kind, doc: &'static str) -> Field {
    Field {
        name,
        aliases: &[],
        converted: &[],
        kind,
        default: DefaultValue::None,
        effect: Effect::Now,
        applies: Applies::All,
        doc,
    }
}

/// True or false.
pub(super) const fn flag<S>(name: &'static str, default: bool, doc: &'static str) -> Key<S, bool> {
    key(name, Kind::Bool, default, DefaultValue::Bool(default), doc)
}

/// True, false, or not set.
pub(super) const fn optional_flag<S>(name: &'static str, doc: &'static str) -> Key<S, Option<bool>> {
    key(name, Kind::Bool, None, DefaultValue::None, doc)
}

/// A whole number between `min` and `max`.
pub(super) const fn count<S>(
    name: &'static str,
    (min, max): (u64, u64),
    default: usize,
    doc: &'static str,
) -> Key<S, usize> {
    key(
        name,
        Kind::Count { min, max },
        default,
        DefaultValue::Count(default),
        doc,
    )
}

/// A whole number of at most 32 bits.
pub(super) const fn small<S>(
    name: &'static str,
    (min, max): (u64, u64),
    default: u32,
    doc: &'static str,
) -> Key<S, u32> {
    key(
        name,
        Kind::Count { min, max },
        default,
        DefaultValue::Count(default as usize),
        doc,
    )
}

/// A whole number, or none.
pub(super) const fn optional_count<S, T>(
    name: &'static str,
    (min, max): (u64, u64),
    doc: &'static str,
) -> Key<S, Option<T>> {
    key(name, Kind::Count { min, max }, None, DefaultValue::None, doc)
}

/// A number of bytes.
pub(super) const fn size<S>(
    name: &'static str,
    (min, max): (u64, u64),
    default: usize,
    doc: &'static str,
) -> Key<S, usize> {
    key(name, Kind::Size { min, max }, default, DefaultValue::Size(default), doc)
}

/// A number of bytes, or none.
pub(super) const fn optional_size<S, T>(
    name: &'static str,
    (min, max): (u64, u64),
    doc: &'static str,
) -> Key<S, Option<T>> {
    key(name, Kind::Size { min, max }, None, DefaultValue::None, doc)
}

/// The shortest and the longest timeout, in milliseconds.
pub(super) const LIMIT: Kind = Kind::Duration {
    min: 1,
    max: 24 * 3600 * 1000,
};

/// A wait that may be zero.
pub(super) const WAIT: Kind = Kind::Duration {
    min: 0,
    max: 24 * 3600 * 1000,
};

/// A time limit: a millisecond at least, a day at most.
pub(super) const fn limit<S>(name: &'static str, default: Duration, doc: &'static str) -> Key<S, Duration> {
    duration(name, LIMIT, default, doc)
}

/// A duration with other bounds.
pub(super) const fn duration<S>(
    name: &'static str,
    kind: Kind,
    default: Duration,
    doc: &'static str,
) -> Key<S, Duration> {
    key(name, kind, default, DefaultValue::Duration(default), doc)
}

/// A duration, or none.
pub(super) const fn optional_duration<S>(
    name: &'static str,
    kind: Kind,
    doc: &'static str,
) -> Key<S, Option<Duration>> {
    key(name, kind, None, DefaultValue::None, doc)
}

/// A text, or none.
pub(super) const fn text<S>(name: &'static str, doc: &'static str) -> Key<S, Option<String>> {
    key(name, Kind::Text, None, DefaultValue::None, doc)
}

/// A text with its written form and location.
pub(super) const fn located<S>(name: &'static str, doc: &'static str) -> Key<S, Option<Text>> {
    key(name, Kind::Text, None, DefaultValue::None, doc)
}

/// A text with a syntax of its own, or none. `T` parses it.
pub(super) const fn parsed<S, T>(name: &'static str, doc: &'static str) -> Key<S, Option<T>> {
    key(name, Kind::Text, None, DefaultValue::None, doc)
}

/// A text that is redacted wherever settings are shown.
pub(super) const fn secret<S>(name: &'static str, doc: &'static str) -> Key<S, Option<Text>> {
    key(name, Kind::Secret, None, DefaultValue::None, doc)
}

/// A list of texts.
pub(super) const fn texts<S>(name: &'static str, doc: &'static str) -> Key<S, Vec<String>> {
    key(name, TEXTS, Vec::new(), DefaultValue::EmptyList, doc)
}

/// A list of texts with their written form and location.
pub(super) const fn located_texts<S>(name: &'static str, doc: &'static str) -> Key<S, Vec<Text>> {
    key(name, TEXTS, Vec::new(), DefaultValue::EmptyList, doc)
}

pub(super) const TEXTS: Kind = Kind::List(&Kind::Text);

/// A table with keys of the user's choice.
pub(super) const fn map<S, T>(
    name: &'static str,
    kind: &'static Kind,
    doc: &'static str,
) -> Key<S, BTreeMap<String, T>> {
    key(name, Kind::Map(kind), BTreeMap::new(), DefaultValue::None, doc)
}

/// A list of values of one kind.
pub(super) const fn list<S, T>(name: &'static str, kind: &'static Kind, doc: &'static str) -> Key<S, Vec<T>> {
    key(name, Kind::List(kind), Vec::new(), DefaultValue::None, doc)
}

/// One of the words of `T`.
pub(super) const fn choice<S, T: Choice>(name: &'static str, doc: &'static str) -> Key<S, T> {
    let shown = DefaultValue::Text(T::DEFAULT_WORD);
    key(name, Kind::Word(T::WORDS), T::DEFAULT, shown, doc)
}

/// One of the words of `T`, or none.
pub(super) const fn optional_choice<S, T: Choice>(name: &'static str, doc: &'static str) -> Key<S, Option<T>> {
    key(name, Kind::Word(T::WORDS), None, DefaultValue::None, doc)
}

/// The words of `T` as a kind, for fields that take other values too.
pub(super) const fn words<T: Choice>() -> Kind {
    Kind::Word(T::WORDS)
}

/// A table of the section that `U` marks, or a short form of it.
pub(super) const fn nested<S, U>(name: &'static str, kind: Kind, doc: &'static str) -> Key<S, Nested<U>> {
    key(name, kind, Nested(PhantomData), DefaultValue::None, doc)
}

/// A field with several forms. `T` has a constructor for each of them.
pub(super) const fn either<S, T>(
    name: &'static str,
    kinds: &'static [Kind],
    default: T,
    shown: DefaultValue,
    doc: &'static str,
) -> Key<S, T> {
    key(name, Kind::Either(kinds), default, shown, doc)
}

pub(super) const fn word(name: &'static str) -> Word {
    Word { name, spellings: &[] }
}

impl<S, T> Key<S, T> {
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
}

impl Field {
    /// Other names for it, in snake case.
    pub(super) const fn aka(mut self, aliases: &'static [&'static str]) -> Self {
        self.aliases = aliases;
        self
    }

    /// Another description.
    pub(super) const fn doc(mut self, doc: &'static str) -> Self {
        self.doc = doc;
        self
    }

    /// It belongs to another program that reads the same file.
    pub(super) const fn foreign(mut self) -> Self {
        self.effect = Effect::Foreign;
        self
    }

    /// The same field at the top of a file, where it applies to every server that does not set it.
    pub(super) const fn for_all(&self) -> Self {
        Self {
            aliases: &[],
            converted: &[],
            default: DefaultValue::None,
            applies: Applies::All,
            doc: "The same for every server that does not say otherwise.",
            ..*self
        }
    }
}

/// Declares a section: its marker `In`, one key per field, and `SECTION`, which lists them and the fields that have no key.
macro_rules! section {
    (
        $module:ident = $name:literal
        unkeyed { $( $unkeyed:expr; )* }
    ) => {
        pub(crate) mod $module {
            use super::*;

            pub(crate) static SECTION: $crate::field::Section = $crate::field::Section {
                name: $name,
                fields: &[ $( &$unkeyed, )* ],
            };
        }
    };
    (
        $module:ident = $name:literal {
            $( $key:ident: $type:ty = $value:expr; )+
        }
        $( unkeyed { $( $unkeyed:expr; )* } )?
    ) => {
        pub(crate) mod $module {
            use super::*;

            /// Marks keys and values of this section.
            #[derive(Debug, Clone, Copy)]
            pub(crate) enum In {}

            $( pub(crate) static $key: $crate::key::Key<In, $type> = $value; )+

            pub(crate) static SECTION: $crate::field::Section = $crate::field::Section {
                name: $name,
                fields: &[ $( &$key.field, )+ $( $( &$unkeyed, )* )? ],
            };
        }
    };
}

pub(super) use section;
