//! Validated and expanded settings, the input of `resolve`.

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

use super::{
    expand,
    tree::{Location, Node},
};

/// A validated value.
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
    Any(Unchecked),
}

/// A text, as written and expanded. `Debug` prints neither: both may be secret.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Text {
    pub(super) value: String,
    pub(super) written: String,
    pub(super) at: Location,
}

impl Text {
    /// Whether it refers to a variable.
    pub(super) fn is_from_variable(&self) -> bool {
        expand::has_variables(&self.written)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(pegboard_base::secret::HIDDEN)
    }
}

/// A value that is not validated: its structure belongs to a tool, another version or another program.
#[derive(Clone)]
pub(super) struct Unchecked(pub(super) Node);

impl fmt::Debug for Unchecked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.kind())
    }
}

/// The settings of one table, by the names of their fields.
#[derive(Debug, Clone, Default)]
pub(super) struct Values(pub(super) BTreeMap<&'static str, Found>);

/// A setting and its origin.
#[derive(Debug, Clone)]
pub(super) struct Found {
    pub(super) setting: Setting,
    pub(super) at: Location,
    /// The key as it was written.
    pub(super) key: String,
    pub(super) rank: Rank,
    /// The file, or the preset's name.
    pub(super) file: Arc<str>,
    /// The variables it refers to.
    pub(super) variables: Vec<String>,
}

impl Found {
    /// Another setting with the same origin.
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
    /// From a preset.
    Preset,
    /// From the top of a file, for all servers.
    Top,
    /// From a server's own table.
    Server,
}
