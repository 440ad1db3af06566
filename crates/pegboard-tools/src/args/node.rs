//! A JSON value under construction. Numbers keep their source text, so that none loses digits.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::arguments::Arguments;

/// The most fields in one map that is not read from plain JSON. Names are compared pairwise.
pub(super) const MAX_PAIRS: usize = 1000;

/// A JSON value that a reader builds.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// Text that is JSON already.
    Raw(Box<RawValue>),
    Text(String),
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
}

impl Node {
    pub(super) fn null() -> Self {
        Self::Raw(RawValue::NULL.to_owned())
    }

    pub(super) fn bool(value: bool) -> Self {
        Self::Raw(if value { RawValue::TRUE } else { RawValue::FALSE }.to_owned())
    }

    /// Wraps the text if it is valid JSON.
    pub(super) fn json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self::Raw)
    }

    /// An object with one field.
    pub(super) fn field(name: &str, value: Self) -> Self {
        Self::Map(vec![(name.to_owned(), value)])
    }

    pub(super) fn is_collection(&self) -> bool {
        match self {
            Self::Raw(raw) => raw.get().starts_with(['{', '[']),
            Self::Text(_) => false,
            Self::List(_) | Self::Map(_) => true,
        }
    }

    /// Serialises the value as arguments. It must be an object.
    pub(super) fn into_arguments(self) -> Arguments {
        let raw = serde_json::value::to_raw_value(&self);
        raw.map_or_else(|_| Arguments::default(), Arguments::new)
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Raw(raw) => raw.serialize(serializer),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(items) => serializer.collect_seq(items),
            Self::Map(fields) => serializer.collect_map(fields.iter().map(|(name, value)| (name, value))),
        }
    }
}
