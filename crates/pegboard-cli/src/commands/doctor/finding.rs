//! What `doctor` found in one run, as values.

use std::path::PathBuf;

use pegboard::diagnosis::Diagnosis;
use serde_json::{Value, json};

use super::kinds::{FindingKind, Level, ReachStep};
use crate::output::one_line;

/// One line of the report.
#[derive(Debug, Clone)]
pub(crate) enum ReportLine {
    /// A step that went well.
    Fine {
        step: ReachStep,
        found: String,
    },
    Found(Finding),
}

/// Something that is wrong.
#[derive(Debug, Clone)]
pub(crate) struct Finding {
    pub(crate) kind: &'static FindingKind,
    /// What was seen.
    pub(crate) found: String,
    /// What to do: a command, or a line of the config.
    pub(crate) fix: Option<String>,
    /// What `--fix` does.
    pub(crate) remedy: Option<Remedy>,
    /// The secrets that a server asked for before it ended. `--fix` asks the user for them.
    pub(crate) asked_for: Vec<String>,
    /// What the library says is wrong, as data.
    pub(crate) diagnosis: Option<Box<Diagnosis>>,
}

/// A change that `--fix` makes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Remedy {
    /// Sets values in a config file.
    Set {
        file: PathBuf,
        values: Vec<(Vec<String>, Value)>,
    },
    /// Gives a setting in a config file another name.
    Rename {
        file: PathBuf,
        path: Vec<String>,
        to: String,
    },
    /// Takes the byte order mark of a config file away.
    Unmark { file: PathBuf },
    /// Changes the permissions of a file: those to add and those to take away.
    Mode { path: PathBuf, add: u32, remove: u32 },
    /// Removes a file that nothing uses.
    Remove { path: PathBuf },
}

/// What `--fix` did, or would do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fixes {
    pub(crate) fixed: Vec<String>,
    pub(crate) would: Vec<String>,
}

impl Fixes {
    /// A line for each of them.
    pub(crate) fn text(&self) -> String {
        let fixed = self.fixed.iter().map(|done| format!("fixed {}\n", one_line(done)));
        let would = self.would.iter().map(|would| format!("{}\n", one_line(would)));
        let ending = (!self.would.is_empty()).then(|| "nothing was changed\n".to_owned());
        fixed.chain(would).chain(ending).collect()
    }
}

/// The part of the report about one server, or about the machine.
#[derive(Debug, Clone)]
pub(crate) struct ReportSection {
    /// The server; `None` for what concerns all of them.
    pub(crate) server: Option<String>,
    pub(crate) title: String,
    /// Whether the server is disabled, so that nothing was tried.
    pub(crate) is_off: bool,
    pub(crate) lines: Vec<ReportLine>,
}

impl ReportLine {
    pub(crate) fn level(&self) -> Level {
        match self {
            Self::Fine { .. } => Level::Ok,
            Self::Found(finding) => finding.kind.level,
        }
    }

    pub(crate) fn step(&self) -> ReachStep {
        match self {
            Self::Fine { step, .. } => *step,
            Self::Found(finding) => finding.kind.step,
        }
    }

    pub(crate) fn json(&self) -> Value {
        match self {
            Self::Fine { step, found } => json!({"step": step.as_str(), "level": "ok", "found": found}),
            Self::Found(finding) => {
                let mut found = json!({
                    "step": finding.kind.step.as_str(),
                    "level": finding.kind.level.as_str(),
                    "id": finding.kind.id,
                    "found": finding.found,
                    "fix": finding.fix,
                    "fixable": finding.remedy.is_some(),
                });
                if let Some(diagnosis) = &finding.diagnosis {
                    found["diagnosis"] = json!(diagnosis);
                }
                found
            }
        }
    }
}

impl Finding {
    pub(crate) fn new(kind: &'static FindingKind, found: impl Into<String>) -> Self {
        Self {
            kind,
            found: found.into(),
            fix: None,
            remedy: None,
            asked_for: Vec::new(),
            diagnosis: None,
        }
    }

    pub(crate) fn asks_for(mut self, secrets: Vec<String>) -> Self {
        self.asked_for = secrets;
        self
    }

    pub(crate) fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    pub(crate) fn with_diagnosis(mut self, diagnosis: Diagnosis) -> Self {
        self.diagnosis = Some(Box::new(diagnosis));
        self
    }

    pub(crate) fn remedy(mut self, remedy: Remedy) -> Self {
        self.remedy = Some(remedy);
        self
    }

    pub(crate) fn remedy_if_any(mut self, remedy: Option<Remedy>) -> Self {
        self.remedy = remedy;
        self
    }
}

impl ReportSection {
    pub(crate) fn for_server(name: &str, title: String) -> Self {
        Self {
            server: Some(name.to_owned()),
            title,
            is_off: false,
            lines: Vec::new(),
        }
    }

    pub(crate) fn for_machine() -> Self {
        Self {
            server: None,
            title: "this machine".to_owned(),
            is_off: false,
            lines: Vec::new(),
        }
    }

    pub(crate) fn add_fine(&mut self, step: ReachStep, found: impl Into<String>) {
        self.lines.push(ReportLine::Fine {
            step,
            found: found.into(),
        });
    }

    pub(crate) fn add_finding(&mut self, finding: Finding) {
        self.lines.push(ReportLine::Found(finding));
    }

    /// The findings, in the order of the steps.
    pub(crate) fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.lines.iter().filter_map(|line| match line {
            ReportLine::Found(finding) => Some(finding),
            ReportLine::Fine { .. } => None,
        })
    }

    /// The worst level of its lines.
    pub(crate) fn level(&self) -> Level {
        let levels = || self.findings().map(|finding| finding.kind.level);
        match levels().any(|level| level == Level::Problem) {
            true => Level::Problem,
            false if levels().next().is_some() => Level::Warning,
            false => Level::Ok,
        }
    }

    /// Whether a step failed, so that the next ones cannot be tried.
    pub(crate) fn is_blocked(&self) -> bool {
        self.findings().any(|finding| finding.kind.level == Level::Problem)
    }

    pub(crate) fn json(&self) -> Value {
        let steps: Vec<Value> = self.lines.iter().map(ReportLine::json).collect();
        match &self.server {
            Some(name) => json!({"name": name, "runs": self.title, "steps": steps}),
            None => json!({"steps": steps}),
        }
    }
}
