//! A value on its way from text to JSON. Numbers stay as they were written, so that none loses digits.

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::Arguments;

/// A JSON value that is put together here.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// Anything that was JSON already.
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

    /// The text as the JSON that it is, if it is.
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

    /// The whole as arguments; only for what is an object.
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
