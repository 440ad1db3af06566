//! The result of loading: the config, its problems, and the origin of its settings.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Serialize;

use super::{board::Config, problem::Problem, setting::Values};
use crate::name::ServerName;

/// A loaded config, its problems, and the origin of its settings.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Loaded {
    /// The config, without the settings that have errors.
    pub config: Config,
    /// All errors and warnings, by file and line.
    pub problems: Vec<Problem>,
    /// Where each server was written.
    pub origins: BTreeMap<ServerName, Origin>,
    /// The sources, in order.
    pub sources: Vec<String>,
    /// The sources that could not be read: a missing file, or a text that does not parse. Their restrictions are not in effect, so a
    /// program should stop rather than continue without them.
    pub unreadable: Vec<String>,
    /// The project files that are not used because their content is not approved.
    pub pending_trust: Vec<PendingTrust>,
    /// The settings of each server as written, for display.
    pub(super) written: BTreeMap<ServerName, Values>,
    pub(super) top: Values,
}

impl Loaded {
    /// Returns the config, or an error if a source could not be read. A config without that source lacks its restrictions, and
    /// [`Pegboard::apply`](crate::Pegboard::apply) would remove its servers.
    ///
    /// Errors of individual servers are no error here: they are in `problems`, and such servers are `misconfigured`.
    pub fn readable(self) -> Result<Config, Unreadable> {
        if self.unreadable.is_empty() {
            return Ok(self.config);
        }
        let of_source = |problem: &&Problem| self.unreadable.contains(&problem.file);
        let problems = self.problems.iter().filter(of_source).map(ToString::to_string);
        Err(Unreadable {
            problems: problems.collect(),
            sources: self.unreadable,
        })
    }
}

/// A source of a config could not be read: a missing file, or a text that does not parse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the config cannot be read: {}", .problems.join("; "))]
#[non_exhaustive]
pub struct Unreadable {
    /// The sources.
    pub sources: Vec<String>,
    /// The errors.
    pub problems: Vec<String>,
}

/// A project file that is not used because its content is not approved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PendingTrust {
    /// The file.
    pub file: PathBuf,
    /// The servers that are not started because of it.
    pub servers: Vec<ServerName>,
    /// Whether other content of it was approved before.
    pub has_changed: bool,
}

/// Where a server was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Origin {
    /// The file, or the name of the text.
    pub file: String,
    /// The line of its name.
    pub line: u32,
}

impl Loaded {
    /// The problems that make a server or setting unusable.
    pub fn errors(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|problem| problem.is_error())
    }

    /// The problems that do not make anything unusable.
    pub fn warnings(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|problem| !problem.is_error())
    }
}
