//! What a server's calls and results are subject to: sharing, queues, approval, masking and the like.

mod results;

pub use results::{Images, Join, Results, Structured, Summarise, SummaryModel, TooLong};

use std::{collections::BTreeMap, time::Duration};

use super::life::{BreakerPolicy, Health, IdleStop, Restart, Retry, RetryClass};
use crate::mask::Masking;

/// Who shares a server's connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// Everyone.
    #[default]
    Shared,
    /// Each agent's session has its own.
    Session,
    /// Everyone, over up to so many connections. Each call takes the least busy one.
    Pool(usize),
}

/// Which calls a person must agree to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approval {
    /// None.
    #[default]
    Auto,
    /// Those of tools that do not say they only read.
    Writes,
    /// All.
    Always,
    /// All are refused.
    Never,
}

/// What happens when a tool's definition changes after it was first seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pins {
    /// Nothing.
    #[default]
    Off,
    /// It is said.
    Warn,
    /// The tool is held back until somebody accepts the change.
    Block,
}

/// What a server is asked for when it is listed, as far as it says that it has such things. Tools are always asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Resources and their templates.
    pub resources: bool,
    /// Prompts.
    pub prompts: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            resources: true,
            prompts: true,
        }
    }
}

/// How a text becomes the arguments of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reading {
    /// It must be a JSON object.
    #[default]
    Json,
    /// The same, but common slips are mended: a trailing comma, a code fence, single quotes, literals of Python.
    Repair,
    /// A JSON object, other JSON, nested YAML, `key: value` or `key=value` pairs, or else the text itself as `input`.
    Cascade,
    /// The same with a look at the tool's schema: slips are mended, commas may stand inside values, and values become what is declared.
    Guided,
}

/// How arguments are compared with a tool's schema before the call is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Check {
    /// Not at all.
    Off,
    /// Only whether everything is there that must be.
    Required,
    /// As `Coerce`, but arguments that the schema does not know may pass.
    Relaxed,
    /// Types are changed where that makes a value fit (`"5"` for an integer); then everything must fit.
    #[default]
    Coerce,
    /// Everything must fit as it is.
    Strict,
}

/// What happens to a call's arguments before it is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArgumentRules {
    /// How a text becomes arguments.
    pub reading: Reading,
    /// How they are compared with the tool's schema.
    pub check: Check,
}

/// What happens when a structured answer does not fit the schema that its tool promised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputCheck {
    /// It is not looked at.
    Off,
    /// It is said beside the answer.
    #[default]
    Warn,
    /// The call counts as failed.
    Error,
}

/// What the config says about one tool, or about those whose names fit a glob.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolPolicy {
    /// Whether it may be used; `Some(false)` hides it.
    pub enabled: Option<bool>,
    /// Whether a person must agree to its calls, in place of what the server's policy says.
    pub approval: Option<Approval>,
    /// Words for the model about it.
    pub instructions: Option<String>,
    /// Capabilities that a view needs to see it: words that its grants must all have.
    pub requires: Vec<String>,
}

impl ToolPolicy {
    /// What is left open here is taken from `other`.
    pub(crate) fn or(&mut self, other: &Self) {
        self.enabled = self.enabled.or(other.enabled);
        self.approval = self.approval.or(other.approval);
        if self.instructions.is_none() {
            self.instructions.clone_from(&other.instructions);
        }
        // Each rule that fits may ask for more.
        let more = other.requires.iter().filter(|word| !self.requires.contains(word));
        let more: Vec<String> = more.cloned().collect();
        self.requires.extend(more);
    }
}

/// What a server's calls and results are subject to. The parts that nothing acts on yet are warned about at load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// Who shares the connection.
    pub scope: Scope,
    /// What it is asked for besides its tools.
    pub capabilities: Capabilities,
    /// The queue that calls wait in; the default one when not set.
    pub queue: Option<String>,
    /// The queues of single tools, by name or glob; they take the place of the server's.
    pub tool_queues: BTreeMap<String, String>,
    /// Whether calls run one after the other.
    pub serial: bool,
    /// How long results of read-only tools are kept; not at all when not set.
    pub cache: Option<Duration>,
    /// The same for single tools, by name or glob; `None` means not at all.
    pub tools_cache: BTreeMap<String, Option<Duration>>,
    /// Globs of the tools that are listed even when there are too many to list all.
    pub always_load: Vec<String>,
    /// Which calls a person must agree to.
    pub approval: Approval,
    /// Globs of the tools that never need a person's agreement.
    pub approval_exempt: Vec<String>,
    /// What is said about single tools, by name or glob.
    pub tools: BTreeMap<String, ToolPolicy>,
    /// Whether `allow` and `deny` disregard upper and lower case.
    pub case_insensitive: bool,
    /// What happens when a tool's definition changes.
    pub pins: Pins,
    /// What the operator says about repeating calls, by name or glob of the tool.
    pub retry: BTreeMap<String, RetryClass>,
    /// Which calls are made again, and how often.
    pub retries: Retry,
    /// When it is stopped because nobody uses it.
    pub idle_stop: IdleStop,
    /// How it is started again.
    pub restart: Restart,
    /// How it is asked whether it is well.
    pub health: Health,
    /// When callers are turned away from it; as the board says when not set.
    pub breaker: Option<BreakerPolicy>,
    /// Whether the hints that tools give about themselves are believed.
    pub trust: bool,
    /// What happens to arguments.
    pub args: ArgumentRules,
    /// What happens when a structured answer is not as promised.
    pub output_check: OutputCheck,
    /// What is hidden in results.
    pub masking: Masking,
    /// What becomes of results.
    pub results: Results,
    /// The same for single tools, by name or glob of the tool.
    pub tool_results: BTreeMap<String, Results>,
    /// When long results are summarised; never when not set.
    pub summarise: Option<Summarise>,
}

impl Policy {
    /// What is said about a tool, setting by setting: under its name, else under the first glob that `fits` it.
    pub(crate) fn of_tool(&self, name: &str, fits: impl Fn(&str, &str) -> bool) -> ToolPolicy {
        let mut said = self.tools.get(name).cloned().unwrap_or_default();
        for (glob, more) in &self.tools {
            if fits(glob, name) {
                said.or(more);
            }
        }
        said
    }
}

/// A queue that calls wait in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Queue {
    /// The most calls under way at once.
    pub concurrent: usize,
}

impl Queue {
    /// A queue for so many calls at once; at least one.
    pub fn new(concurrent: usize) -> Self {
        Self {
            concurrent: concurrent.max(1),
        }
    }
}
