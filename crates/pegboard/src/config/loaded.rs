//! What loading a config yields: the config, its problems, and where everything was written.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{board::Config, problem::Problem, setting::Values};
use crate::name::ServerName;

/// A config and what is worth knowing about it.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Loaded {
    /// The config, without what could not be read.
    pub config: Config,
    /// Everything that is wrong or worth a warning, file by file and line by line.
    pub problems: Vec<Problem>,
    /// Where each server was written.
    pub origins: BTreeMap<ServerName, Origin>,
    /// The sources, in order.
    pub sources: Vec<String>,
    /// The sources of which nothing could be read: a file that is not there, or a text that does not parse. Whatever they
    /// forbid is not forbidden, so a program should rather stop than go on without them.
    pub unreadable: Vec<String>,
    /// What was written for each server, for showing.
    pub(super) written: BTreeMap<ServerName, Values>,
    pub(super) top: Values,
}

impl Loaded {
    /// The config, unless a source could not be read. A config without that source allows what the source forbids, and
    /// [`Pegboard::apply`](crate::Pegboard::apply) would take the servers away that it names.
    ///
    /// Problems of single servers are no error here: they are in `problems`, and such servers are `misconfigured`.
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

/// A source of a config could not be read: a file that is not there, or a text that does not parse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the config cannot be read: {}", .problems.join("; "))]
#[non_exhaustive]
pub struct Unreadable {
    /// The sources.
    pub sources: Vec<String>,
    /// What is wrong with them.
    pub problems: Vec<String>,
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
    /// The problems that keep something from being used.
    pub fn errors(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|problem| problem.is_error())
    }

    /// The problems that keep nothing from being used.
    pub fn warnings(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|problem| !problem.is_error())
    }
}
