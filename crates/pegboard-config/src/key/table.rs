//! The values of a table, read by their keys.

use std::{collections::BTreeMap, marker::PhantomData};

use super::{Key, Nested};
use crate::{
    field::Field,
    from_setting::{FromSetting as _, one_or_more},
    setting::{Found, Rank, Setting, Text, Values},
    tree::Location,
};

/// Values of the section that `S` marks.
#[derive(Debug)]
pub(crate) struct Table<'a, S> {
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
    pub(crate) fn new(values: &'a Values) -> Self {
        Self {
            values,
            section: PhantomData,
        }
    }

    /// The value in effect: the one that is set, or the default.
    pub(crate) fn get<T: Clone>(self, key: &Key<S, T>) -> T {
        self.set(key).unwrap_or_else(|| key.default())
    }

    /// The value, if it is set.
    pub(crate) fn set<T>(self, key: &Key<S, T>) -> Option<T> {
        (key.read)(&self.find(key)?.setting)
    }

    /// The setting with its origin.
    pub(crate) fn find<T>(self, key: &Key<S, T>) -> Option<&'a Found> {
        self.values.find(&key.field)
    }

    /// The same by a field of the table, for code that treats all fields alike.
    pub(crate) fn find_field(self, field: &Field) -> Option<&'a Found> {
        self.values.find(field)
    }

    /// A text with its written form and location, whatever the key reads it as.
    pub(crate) fn text<T>(self, key: &Key<S, T>) -> Option<Text> {
        Text::from_setting(&self.find(key)?.setting)
    }

    /// The texts of a list or the only one, likewise.
    pub(crate) fn texts<T>(self, key: &Key<S, T>) -> Vec<Text> {
        let found = self.find(key);
        found.and_then(|found| one_or_more(&found.setting)).unwrap_or_default()
    }

    /// Where it is set.
    pub(crate) fn at<T>(self, key: &Key<S, T>) -> Option<Location> {
        self.find(key).map(|found| found.at)
    }

    /// The rank of a setting; `None`, which is less than any, if it is not set.
    pub(crate) fn rank<T>(self, key: &Key<S, T>) -> Option<Rank> {
        self.find(key).map(|found| found.rank)
    }

    /// The table, if it is set and not in a short form.
    pub(crate) fn table<U>(self, key: &Key<S, Nested<U>>) -> Option<Table<'a, U>> {
        self.values.table(&key.field).map(Table::new)
    }

    /// The tables of a map, by their keys.
    pub(crate) fn tables<U>(self, key: &Key<S, BTreeMap<String, Nested<U>>>) -> Vec<(&'a String, Table<'a, U>)> {
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
    pub(crate) fn list<U>(self, key: &Key<S, Vec<Nested<U>>>) -> Vec<Table<'a, U>> {
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
