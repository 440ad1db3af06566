//! Values, and what becomes of a conditional change: [`Value`], [`PutNew`], [`Replaced`], [`Listing`].

use bytes::Bytes;

use crate::key::Key;

/// A value and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// What was put.
    pub bytes: Bytes,
    /// Which of the values under its key it is.
    pub version: Version,
}

impl Value {
    /// A value that is stored as it is.
    pub(crate) fn plain(bytes: Bytes) -> Self {
        Self {
            version: Version(bytes.clone()),
            bytes,
        }
    }
}

/// Which of the values under a key one is, for [`Store::replace`](crate::Store::replace). Two equal values may have the same version.
#[derive(Clone, PartialEq, Eq)]
pub struct Version(pub(crate) Bytes);

impl std::fmt::Debug for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Version").finish_non_exhaustive()
    }
}

/// What became of [`Store::put_new`](crate::Store::put_new).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PutNew {
    /// There was no value, and now there is this one.
    Stored(Version),
    /// There is another value, which stays.
    Exists(Value),
}

/// What became of [`Store::replace`](crate::Store::replace).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replaced {
    /// The value was that of the version, and now there is the new one.
    Stored(Version),
    /// The value is another one, which stays; or there is none.
    Lost(Option<Value>),
}

/// What became of [`Store::put_fenced`](crate::Store::put_fenced).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutFenced {
    /// The value is stored.
    Stored,
    /// Nothing is stored: the lease was given to another holder since, or the store does not know it any more.
    Refused,
}

/// Some of the values under one key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// The values, ordered by their keys.
    pub values: Vec<(Key, Value)>,
    /// How many more values were found and left out because they are damaged.
    pub damaged: usize,
    /// Whether there are more than were asked for.
    pub more: bool,
}
