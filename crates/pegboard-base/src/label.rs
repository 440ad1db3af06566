//! Labels: enum values as the words that text, JSON, config files and metrics have for them.

use std::fmt;

/// The error for a text that is none of the words of a type.
///
/// ```
/// # use pegboard_base::label::UnknownWord;
/// let unknown = UnknownWord::new("server state", "asleep", ["ready", "down"]);
/// assert_eq!(unknown.to_string(), "`asleep` is no server state; there are ready, down");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord {
    what: &'static str,
    word: String,
    known: Vec<&'static str>,
}

impl UnknownWord {
    /// The error for `word`, which is no `what`.
    #[doc(hidden)]
    pub fn new(what: &'static str, word: &str, known: impl IntoIterator<Item = &'static str>) -> Self {
        Self {
            what,
            word: word.to_owned(),
            known: known.into_iter().collect(),
        }
    }
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, known) = (self.word.escape_debug(), self.known.join(", "));
        write!(f, "`{word}` is no {}; there are {known}", self.what)
    }
}

impl std::error::Error for UnknownWord {}

#[macro_export]
/// Implements `Display` and `AsRef<str>` by a type's `as_str`.
macro_rules! label_text {
    ($type:ty) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl AsRef<str> for $type {
            fn as_ref(&self) -> &str {
                self.as_str()
            }
        }
    };
}

#[macro_export]
/// Implements `Display`, `AsRef<str>` and `FromStr` by a type's `as_str`. The list must have every value. Without it, the type's `ALL` has them.
macro_rules! label {
    ($type:ty, $what:literal, [$($variant:ident),+ $(,)?]) => {
        $crate::label!($type, $what, &[$(<$type>::$variant),+]);
    };
    ($type:ty, $what:literal) => {
        $crate::label!($type, $what, &<$type>::ALL);
    };
    ($type:ty, $what:literal, $all:expr) => {
        $crate::label_text!($type);

        impl std::str::FromStr for $type {
            type Err = $crate::label::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                const ALL: &[$type] = $all;
                let found = ALL.iter().find(|value| value.as_str() == word);
                let known = || ALL.iter().map(|value| value.as_str());
                found.copied().ok_or_else(|| $crate::label::UnknownWord::new($what, word, known()))
            }
        }
    };
}

#[macro_export]
/// Implements `Serialize` by `Display` and `Deserialize` by `FromStr`.
macro_rules! serde_as_text {
    ($type:ty) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

#[doc(inline)]
pub use crate::{label, label_text, serde_as_text};
