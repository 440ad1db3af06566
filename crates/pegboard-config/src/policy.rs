//! The policy of one server: sharing, queues, caching, approval, retries, health probes, masking and results.

mod call_limits;
mod results;

pub use call_limits::{Rate, Taint};
pub use results::{Images, Join, Results, Structured, Summarise, SummaryModel, TooLong};

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    duration_text,
    lifecycle::{BreakerPolicy, Health, IdleStop, Restart, Retry, RetryClass},
};
use pegboard_mask::Masking;

/// Who shares the connection to a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// All agents.
    #[default]
    Shared,
    /// None: each agent's session has its own connection.
    Session,
    /// All agents, over up to this many connections. Each call uses the least busy one.
    Pool(usize),
}

/// Which calls a person must approve.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Approval {
    /// None.
    #[default]
    Auto,
    /// Calls of tools that do not declare that they only read.
    Writes,
    /// All calls.
    Always,
    /// All calls are refused.
    Never,
}

/// What happens when the arguments of a call contain a secret of another server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnCrossing {
    /// The call is made, and its reply has a warning.
    Warn,
    /// The call is made with the secret masked.
    Mask,
    /// The call is refused.
    #[default]
    Block,
    /// The call is made. The arguments are not searched.
    Allow,
}

/// What happens when a tool's definition changes after it was first listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pins {
    /// Nothing. Definitions are not pinned.
    Off,
    /// Definitions are pinned when they are first listed, and a changed one is reported.
    #[default]
    Warn,
    /// Like `Warn`, and changed and new tools of a known server are held until a person accepts them.
    Block,
    /// Like `Block`, and the tools of a new server are held as well.
    Approve,
}

impl Pins {
    /// Whether tools can be held. Such a server is not started without a place for its pins.
    #[doc(hidden)]
    pub fn holds(self) -> bool {
        matches!(self, Self::Block | Self::Approve)
    }
}

/// What happens when a definition looks like an attack on the model that reads it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Scan {
    /// Nothing. Definitions are not scanned.
    Off,
    /// Findings are reported.
    #[default]
    Warn,
    /// Findings are reported, and definitions with findings of high severity are held until a person accepts them.
    Block,
}

/// What is listed besides tools, if the server declares the capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// Resources and resource templates.
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

/// How text is parsed into the arguments of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reading {
    /// The text must be a JSON object.
    #[default]
    Json,
    /// A JSON object in which common mistakes are repaired: trailing commas, code fences, single quotes, Python literals.
    Repair,
    /// The first that parses of: a JSON object, other JSON, nested YAML, `key: value` or `key=value` pairs; else the whole text as `input`.
    Cascade,
    /// Like `Cascade`, guided by the tool's schema: mistakes are repaired, values may contain commas, and values get the declared types.
    Guided,
}

/// How arguments are validated against the tool's schema before a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Check {
    /// Not at all.
    Off,
    /// Only that required arguments are present.
    Required,
    /// Like `Coerce`, but unknown arguments are allowed.
    Relaxed,
    /// Types are converted where that makes a value valid (`"5"` for an integer); then everything must be valid.
    #[default]
    Coerce,
    /// Everything must be valid as it is.
    Strict,
}

/// How the arguments of a call are parsed and validated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ArgumentRules {
    /// How text is parsed.
    pub read: Reading,
    /// How the arguments are validated.
    pub check: Check,
}

/// What happens when structured content does not match the tool's output schema.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum OutputCheck {
    /// It is not validated.
    Off,
    /// The result carries a warning.
    #[default]
    Warn,
    /// The call fails.
    Error,
}

/// Settings of one tool, or of the tools that a glob matches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolPolicy {
    /// Whether the tool may be used; `Some(false)` hides it.
    pub enabled: Option<bool>,
    /// Whether a person must approve its calls; overrides [`Policy::approval`].
    pub approval: Option<Approval>,
    /// Instructions for the model about the tool.
    pub instructions: Option<String>,
    /// Capabilities that a view must all be granted to see the tool.
    pub requires: Vec<String>,
    /// How often one view may call the tool.
    pub rate: Option<Rate>,
    /// The most identical calls; overrides [`Policy::loop_limit`].
    pub loop_limit: Option<usize>,
}

impl ToolPolicy {
    /// Fills the fields that are not set from `other`.
    #[doc(hidden)]
    pub fn or(&mut self, other: &Self) {
        self.enabled = self.enabled.or(other.enabled);
        self.approval = self.approval.or(other.approval);
        self.rate = self.rate.or(other.rate);
        self.loop_limit = self.loop_limit.or(other.loop_limit);
        if self.instructions.is_none() {
            self.instructions.clone_from(&other.instructions);
        }
        // Requirements of all matching rules add up.
        let more = other.requires.iter().filter(|word| !self.requires.contains(word));
        let more: Vec<String> = more.cloned().collect();
        self.requires.extend(more);
    }
}

/// How the calls and results of a server are handled. Loading warns about settings that have no effect yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// Who shares the connection.
    pub scope: Scope,
    /// What is listed besides tools.
    pub capabilities: Capabilities,
    /// The queue that calls wait in; `None` for the default queue.
    pub queue: Option<String>,
    /// Queues of individual tools, by name or glob; they override `queue`.
    pub tool_queues: BTreeMap<String, String>,
    /// Whether calls run one at a time.
    pub serial: bool,
    /// How long results of tools with `readOnlyHint` are cached, if the server is trusted; `None` for not at all.
    #[serde(with = "duration_text")]
    pub cache: Option<Duration>,
    /// How long results of individual tools are cached, by name or glob; `None` for not at all.
    #[serde(with = "duration_text")]
    pub tools_cache: BTreeMap<String, Option<Duration>>,
    /// Globs of the tools that are listed even when there are too many to list all.
    pub always_load: Vec<String>,
    /// Which calls a person must approve.
    pub approval: Approval,
    /// Globs of the tools that never need approval.
    pub approval_exempt: Vec<String>,
    /// Settings of individual tools, by name or glob.
    pub tools: BTreeMap<String, ToolPolicy>,
    /// How often one view may call tools of the server; `None` for no limit.
    pub rate: Option<Rate>,
    /// The most calls of one view with the same tool, the same arguments and the same kind of outcome within ten minutes; zero for no limit.
    pub loop_limit: usize,
    /// What happens to calls of high risk after the agent has read output of an untrusted server.
    pub taint: Taint,
    /// Whether `allow` and `deny` ignore case.
    pub case_insensitive: bool,
    /// What happens when the arguments of a call contain a secret of another server.
    pub crossing: OnCrossing,
    /// What happens when a tool's definition changes.
    pub pins: Pins,
    /// What happens when a definition looks like an attack.
    pub scan: Scan,
    /// Whether calls of individual tools can be retried, by name or glob.
    pub tool_retry: BTreeMap<String, RetryClass>,
    /// Which calls are retried, and how often.
    pub retry: Retry,
    /// When the server is stopped because it is idle.
    pub idle_stop: IdleStop,
    /// How the server is restarted.
    pub restart: Restart,
    /// How the health of the server is probed.
    pub health: Health,
    /// When calls are rejected because the server keeps failing; `None` for the board's policy.
    pub breaker: Option<BreakerPolicy>,
    /// Whether the annotations of tools are trusted.
    pub trust: bool,
    /// How arguments are parsed and validated.
    pub call_arguments: ArgumentRules,
    /// What happens when structured content does not match the tool's output schema.
    pub output_check: OutputCheck,
    /// What is masked in the server's output.
    pub masking: Masking,
    /// How results are limited and formatted.
    pub result: Results,
    /// How results of individual tools are limited and formatted, by name or glob.
    pub tool_results: BTreeMap<String, Results>,
    /// When long results are summarised; `None` for never.
    pub summarise: Option<Summarise>,
}

impl Policy {
    /// The settings of a tool. Each one is taken from the entry with its name, else from the first glob that `fits` it.
    #[doc(hidden)]
    pub fn of_tool(&self, name: &str, fits: impl Fn(&str, &str) -> bool) -> ToolPolicy {
        let mut merged = self.tools.get(name).cloned().unwrap_or_default();
        for (glob, more) in &self.tools {
            if fits(glob, name) {
                merged.or(more);
            }
        }
        merged
    }
}

/// A queue that calls wait in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredQueue")]
#[non_exhaustive]
pub struct Queue {
    /// The most calls in flight at once.
    pub concurrent: usize,
}

impl Queue {
    /// Creates a queue for this many calls in flight, at least one.
    pub fn new(concurrent: usize) -> Self {
        Self {
            concurrent: concurrent.max(1),
        }
    }
}

/// A queue as it is read: without a place it would block every call.
#[derive(Deserialize)]
struct StoredQueue {
    concurrent: usize,
}

impl From<StoredQueue> for Queue {
    fn from(stored: StoredQueue) -> Self {
        Self::new(stored.concurrent)
    }
}
