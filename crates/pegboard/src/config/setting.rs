//! Settings after they were checked against the table of fields and expanded, before they are put together.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use super::tree::{Node, Place};

/// A checked value.
#[derive(Debug, Clone)]
pub(super) enum Setting {
    Bool(bool),
    Count(u64),
    Duration(Duration),
    Size(u64),
    Word(&'static str),
    Text(Text),
    Secret(Text),
    List(Vec<Self>),
    Map(BTreeMap<String, Self>),
    Table(Values),
    Any(Whatever),
}

impl Setting {
    pub(super) fn word(&self) -> Option<&'static str> {
        match self {
            Self::Word(word) => Some(word),
            _ => None,
        }
    }
}

/// A text, as it was written and as it is meant. It prints as neither: either may be secret.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) value: String,
    pub(super) written: String,
    pub(super) at: Place,
}

impl Text {
    /// Whether a variable took part in it.
    pub(super) fn is_from_variable(&self) -> bool {
        super::expand::has_variables(&self.written)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(crate::secret::HIDDEN)
    }
}

/// A value that only a later version or another program reads.
#[derive(Clone)]
pub(super) struct Whatever(pub(super) Node);

impl fmt::Debug for Whatever {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.kind())
    }
}

/// The settings of one table, by the names of their fields.
#[derive(Debug, Clone, Default)]
pub(super) struct Values(BTreeMap<&'static str, Found>);

/// A setting and where it was found.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) setting: Setting,
    pub(super) at: Place,
    /// The key as it was written.
    pub(super) key: String,
    pub(super) rank: Rank,
    /// The file, or the preset's name.
    pub(super) file: Arc<str>,
    /// The variables that took part in it.
    pub(super) variables: Vec<String>,
}

impl Found {
    /// Another setting that was found in the same place.
    pub(super) fn beside(&self, setting: Setting) -> Self {
        Self {
            setting,
            at: self.at,
            key: self.key.clone(),
            rank: self.rank,
            file: self.file.clone(),
            variables: self.variables.clone(),
        }
    }
}

/// Which of two settings wins: the later variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// The preset's.
    Preset,
    /// What the top of a file says for all servers.
    Top,
    /// What a server's own table says.
    Server,
}

impl Values {
    pub(super) fn find(&self, name: &str) -> Option<&Found> {
        self.0.get(name)
    }

    pub(super) fn insert(&mut self, name: &'static str, found: Found) {
        self.0.insert(name, found);
    }

    pub(super) fn find_mut(&mut self, name: &str) -> Option<&mut Found> {
        self.0.get_mut(name)
    }

    pub(super) fn remove(&mut self, name: &str) -> Option<Found> {
        self.0.remove(name)
    }

    /// The rank of a setting; `None`, which is less than any, if it is not set.
    pub(super) fn rank(&self, name: &str) -> Option<Rank> {
        self.find(name).map(|found| found.rank)
    }

    pub(super) fn into_iter(self) -> impl Iterator<Item = (&'static str, Found)> {
        self.0.into_iter()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'static str, &Found)> {
        self.0.iter().map(|(name, found)| (*name, found))
    }

    /// Where `name` was set.
    pub(super) fn at(&self, name: &str) -> Option<Place> {
        self.find(name).map(|found| found.at)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Setting> {
        self.find(name).map(|found| &found.setting)
    }

    pub(super) fn bool(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            Setting::Bool(value) => Some(*value),
            _ => None,
        }
    }

    pub(super) fn count(&self, name: &str) -> Option<usize> {
        match self.get(name)? {
            Setting::Count(value) | Setting::Size(value) => usize::try_from(*value).ok(),
            _ => None,
        }
    }

    pub(super) fn duration(&self, name: &str) -> Option<Duration> {
        match self.get(name)? {
            Setting::Duration(value) => Some(*value),
            Setting::Count(millis) => Some(Duration::from_millis(*millis)),
            _ => None,
        }
    }

    pub(super) fn word(&self, name: &str) -> Option<&'static str> {
        match self.get(name)? {
            Setting::Word(value) => Some(value),
            _ => None,
        }
    }

    pub(super) fn text(&self, name: &str) -> Option<&Text> {
        match self.get(name)? {
            Setting::Text(text) | Setting::Secret(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn value(&self, name: &str) -> Option<String> {
        self.text(name).map(|text| text.value.clone())
    }

    pub(super) fn texts(&self, name: &str) -> Vec<&Text> {
        match self.get(name) {
            Some(Setting::List(items)) => items.iter().filter_map(as_text).collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn strings(&self, name: &str) -> Vec<String> {
        self.texts(name).into_iter().map(|text| text.value.clone()).collect()
    }

    pub(super) fn map(&self, name: &str) -> Vec<(&String, &Text)> {
        match self.get(name) {
            Some(Setting::Map(entries)) => entries
                .iter()
                .filter_map(|(key, setting)| Some((key, as_text(setting)?)))
                .collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn table(&self, name: &str) -> Option<&Self> {
        match self.get(name)? {
            Setting::Table(values) => Some(values),
            _ => None,
        }
    }
}

fn as_text(setting: &Setting) -> Option<&Text> {
    match setting {
        Setting::Text(text) | Setting::Secret(text) => Some(text),
        _ => None,
    }
}
