//! The result of loading: the config, its problems, and the origin of its settings.

use std::{collections::BTreeMap, fmt, path::PathBuf};

use serde::Serialize;

use super::{board::Config, problem::Problem, setting::Values};
use pegboard_base::name::ServerName;

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
    /// The files that hold nothing but white space. An editor that is about to write a file may have truncated it a moment ago, so a
    /// program that reloads should not take such a file for a config without servers.
    pub blank: Vec<String>,
    /// The project files that are not used because their content is not approved.
    pub pending_trust: Vec<PendingTrust>,
    /// The settings of each server as written, for display.
    pub(super) written: BTreeMap<ServerName, Values>,
    pub(super) top: Values,
}

impl Loaded {
    /// Returns the config, or an error if a source could not be read. A config without that source lacks its restrictions, and
    /// `Pegboard::apply` would remove its servers.
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

impl Loaded {
    /// Returns the config, or all its errors. Warnings are no errors; read [`Loaded::problems`] before to show them.
    ///
    /// A program that serves with the servers that work uses [`Loaded::config`] instead, or [`Loaded::readable`].
    ///
    /// ```
    /// # mod pegboard { pub use pegboard_config::*; pub use pegboard_config as config; pub use serde_json; }
    /// use pegboard::{Config, Env, Format};
    ///
    /// let text = "[servers.time]\ncommand = 'uvx'\n[servers.docs]\nurl = 'ftp://example.com'\n[servers.k8s]\nstart = 'soon'\n";
    /// let bad = Config::from_text(text, Format::Toml, &Env::process()).into_result().unwrap_err();
    /// assert!(bad.problems.len() >= 2);
    /// assert_eq!(bad.to_string().lines().count(), bad.problems.len());
    ///
    /// let config = Config::from_text("[servers.time]\ncommand = 'uvx'\n", Format::Toml, &Env::process()).into_result()?;
    /// assert!(config.servers.contains_key("time"));
    /// # Ok::<(), pegboard::config::ConfigErrors>(())
    /// ```
    pub fn into_result(self) -> Result<Config, ConfigErrors> {
        let problems: Vec<Problem> = self.problems.into_iter().filter(Problem::is_error).collect();
        if problems.is_empty() {
            return Ok(self.config);
        }
        Err(ConfigErrors { problems })
    }
}

/// All errors of a config, one per line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConfigErrors {
    /// The errors, by file and line.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            // A message may quote a parser that uses several lines.
            let problem = problem.to_string();
            f.write_str(&problem.lines().map(str::trim).collect::<Vec<_>>().join(" "))?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problems.first().map(|problem| problem as _)
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
