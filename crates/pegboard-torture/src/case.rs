//! [`Case`]: one thing that a server must do right.

use futures_util::future::BoxFuture;
use pegboard_protocol::Era;

use super::{bench::Bench, stop::Stop};

/// One thing that a server must do right.
#[derive(Debug)]
pub(super) struct Case {
    /// Its name for `--only` and in reports.
    pub(super) id: &'static str,
    pub(super) group: &'static str,
    /// What is expected of the server.
    pub(super) title: &'static str,
    pub(super) applies: Applies,
    /// The section of the specification, of each era.
    pub(super) spec: Spec,
    /// What to change in a server that fails it.
    pub(super) mend: &'static str,
    pub(super) run: Run,
}

/// The implementation of a case.
pub(super) type Run = for<'a> fn(&'a Bench<'a>) -> BoxFuture<'a, Result<(), Stop>>;

/// Where a case applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Applies {
    Always,
    Legacy,
    Stdio,
    Http,
}

/// Where the specification says it: one section of it, or one for each era.
#[derive(Debug, Clone, Copy)]
pub(super) enum Spec {
    /// The same path in both versions.
    Both(&'static str),
    /// The paths in 2025-11-25 and in 2026-07-28.
    Each(&'static str, &'static str),
    /// Not of MCP itself.
    Other(&'static str),
}

impl Case {
    /// Whether the case is tried in this era and over this transport.
    pub(super) fn is_for(&self, era: Era, is_stdio: bool) -> bool {
        match self.applies {
            Applies::Always => true,
            Applies::Legacy => era == Era::Legacy,
            Applies::Stdio => is_stdio,
            Applies::Http => !is_stdio,
        }
    }

    /// Whether `--only` with this word means the case.
    pub(super) fn is_named(&self, word: &str) -> bool {
        self.id == word || self.group == word
    }
}

impl Spec {
    /// The version and the section, for people.
    pub(super) fn for_era(self, era: Era) -> String {
        let version = era.latest_version().as_str();
        match (self, era) {
            (Self::Both(path), _) => format!("MCP {version}, {path}"),
            (Self::Each(path, _), Era::Legacy) | (Self::Each(_, path), Era::Modern) => format!("MCP {version}, {path}"),
            (Self::Other(text), _) => text.to_owned(),
        }
    }
}
