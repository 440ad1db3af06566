//! The problems of a config: all of them, each with its file, line and field.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use super::tree::Location;
use pegboard_base::{
    diagnosis::{self, Cause, Code, Diagnosis, Edit, Step},
    hint::Hint,
    label::label,
};

/// The severity of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Severity {
    /// The server or setting cannot be used.
    Error,
    /// Everything is used as written.
    Warning,
}

impl Severity {
    /// The name in text and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

label!(Severity, "severity", [Error, Warning]);

/// An error or warning about a config. Values of variables never appear in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Problem {
    /// The severity.
    pub severity: Severity,
    /// The file, or the name of the text.
    pub file: String,
    /// The line, counted from one.
    pub line: Option<u32>,
    /// The setting, such as `servers.github.url`; empty for the file as a whole.
    pub field: String,
    /// What is wrong.
    pub message: String,
    /// How to fix it.
    pub hint: Option<String>,
    /// The stable word for what is wrong, such as `unknown-setting`.
    #[serde(default = "unnamed")]
    pub code: Code,
    /// A change of the file that mends it, if one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit: Option<Edit>,
    /// The environment variable that is not set, if that is what is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
}

/// The code of a problem that was stored without one.
fn unnamed() -> Code {
    Code::ConfigError
}

impl Problem {
    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// What is wrong, as data.
    pub fn diagnosis(&self) -> Diagnosis {
        let place = match self.server() {
            Some(server) => diagnosis::Place::server(server),
            None => diagnosis::Place::default(),
        };
        let place = place.setting(&self.file, self.line, &self.field);
        let cause = match &self.variable {
            Some(name) => Cause::Variable { name: name.clone() },
            None => Cause::Setting,
        };
        let mut diagnosis = Diagnosis::new(self.code, Step::Config, cause).at(place);
        diagnosis.edit.clone_from(&self.edit);
        diagnosis
    }

    /// The name of the server that the problem is about.
    pub fn server(&self) -> Option<&str> {
        self.field.strip_prefix("servers.")?.split('.').next()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        f.write_str(": ")?;
        if !self.field.is_empty() {
            write!(f, "{}: ", self.field)?;
        }
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Problem {}

impl Hint for Problem {
    fn hint(&self) -> Option<String> {
        self.hint.clone()
    }
}

/// The problems found so far in one file.
#[derive(Debug)]
pub(super) struct Report {
    file: Arc<str>,
    problems: Vec<Problem>,
    errors: usize,
    /// The number of problems beyond `MAX_PROBLEMS`, which are only counted: a hostile file could cause millions.
    left_out: usize,
}

/// The most problems that are reported for one file.
pub(super) const MAX_PROBLEMS: usize = 1000;

impl Report {
    pub(super) fn new(file: impl Into<Arc<str>>) -> Self {
        Self {
            file: file.into(),
            problems: Vec::new(),
            errors: 0,
            left_out: 0,
        }
    }

    /// The file, or the name of the text.
    pub(super) fn file_name(&self) -> Arc<str> {
        self.file.clone()
    }

    pub(super) fn error(&mut self, at: Location, field: &str, message: impl Into<String>) {
        self.add(Severity::Error, Some(at), field, message.into(), None);
    }

    pub(super) fn error_with(
        &mut self,
        at: Location,
        field: &str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.add(Severity::Error, Some(at), field, message.into(), Some(hint.into()));
    }

    pub(super) fn warn(&mut self, at: Location, field: &str, message: impl Into<String>) {
        self.add(Severity::Warning, Some(at), field, message.into(), None);
    }

    pub(super) fn warn_with(&mut self, at: Location, field: &str, message: impl Into<String>, hint: impl Into<String>) {
        self.add(Severity::Warning, Some(at), field, message.into(), Some(hint.into()));
    }

    /// A problem of the file as a whole.
    pub(super) fn file(&mut self, severity: Severity, message: impl Into<String>, hint: Option<String>) {
        self.add(severity, None, "", message.into(), hint);
    }

    /// Names the problem that was reported last, with the change that mends it.
    pub(super) fn name_last(&mut self, code: Code, edit: Option<Edit>) {
        // The last one may have been left out.
        if self.left_out == 0
            && let Some(last) = self.problems.last_mut()
        {
            (last.code, last.edit) = (code, edit);
        }
    }

    /// Names the variable that is not set in the problem that was reported last.
    pub(super) fn name_variable(&mut self, variable: &str) {
        self.name_last(Code::VariableUnset, None);
        if self.left_out == 0
            && let Some(last) = self.problems.last_mut()
        {
            last.variable = Some(variable.to_owned());
        }
    }

    /// The number of errors so far. A server is not used if it rises while the server is read.
    pub(super) fn errors(&self) -> usize {
        self.errors
    }

    /// The number of problems so far.
    pub(super) fn len(&self) -> usize {
        self.problems.len()
    }

    /// The errors that came after the first `len` problems.
    pub(super) fn errors_from(&self, len: usize) -> impl Iterator<Item = &Problem> {
        self.problems.iter().skip(len).filter(|problem| problem.is_error())
    }

    /// The problems in the order of their lines.
    pub(super) fn into_problems(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|problem| problem.line);
        if self.left_out > 0 {
            self.problems.push(Problem {
                severity: Severity::Error,
                file: self.file.to_string(),
                line: None,
                field: String::new(),
                message: format!("{} more problems are not shown", self.left_out),
                hint: None,
                code: Code::ConfigError,
                edit: None,
                variable: None,
            });
        }
        self.problems
    }

    fn add(&mut self, severity: Severity, at: Option<Location>, field: &str, message: String, hint: Option<String>) {
        self.errors += usize::from(severity == Severity::Error);
        if self.problems.len() >= MAX_PROBLEMS {
            self.left_out += 1;
            return;
        }
        self.problems.push(Problem {
            severity,
            file: self.file.to_string(),
            line: at.map(|at| at.line),
            field: field.to_owned(),
            message,
            hint,
            code: match severity {
                Severity::Error => Code::ConfigError,
                Severity::Warning => Code::ConfigWarning,
            },
            edit: None,
            variable: None,
        });
    }
}

/// Joins `servers` and `github` to `servers.github`.
pub(super) fn join(path: &str, key: &str) -> String {
    // Keys are printed, so control characters are replaced: a terminal would interpret them.
    let key: String = key
        .chars()
        .take(80)
        .map(|c| if c.is_control() { '?' } else { c })
        .collect();
    if path.is_empty() { key } else { format!("{path}.{key}") }
}
