//! What a server's calls and results are subject to: sharing, queues, approval, masking and the like.

use std::{collections::BTreeMap, time::Duration};

use crate::mask::Masking;

/// Who shares a server's connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Scope {
    /// Everyone.
    #[default]
    Shared,
    /// Each agent's session has its own.
    Session,
}

/// Whether a call of a tool that may have run can be made again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryClass {
    /// It cannot.
    Never,
    /// The tool only reads.
    Safe,
    /// The second time changes nothing more.
    Idempotent,
    /// The server knows a repeated call by this argument.
    Key(String),
}

/// Which calls a person must agree to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
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

/// When long results are summarised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summarise {
    /// From this size on, in estimated tokens.
    pub threshold_tokens: usize,
    /// The size of a summary, in tokens.
    pub max_tokens: usize,
}

impl Default for Summarise {
    fn default() -> Self {
        Self {
            threshold_tokens: 5000,
            max_tokens: 1000,
        }
    }
}

/// What a server's calls and results are subject to. The parts that nothing acts on yet are warned about at load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// Who shares the connection.
    pub scope: Scope,
    /// The queue that calls wait in; the default one when not set.
    pub queue: Option<String>,
    /// Whether calls run one after the other.
    pub serial: bool,
    /// How long results of read-only tools are kept; not at all when not set.
    pub cache: Option<Duration>,
    /// Which calls a person must agree to.
    pub approval: Approval,
    /// Globs of the tools that never need a person's agreement.
    pub approval_exempt: Vec<String>,
    /// What happens when a tool's definition changes.
    pub pins: Pins,
    /// What the operator says about repeating calls, by name or glob of the tool.
    pub retry: BTreeMap<String, RetryClass>,
    /// Whether the hints that tools give about themselves are believed.
    pub trust: bool,
    /// What is hidden in results.
    pub masking: Masking,
    /// When long results are summarised; never when not set.
    pub summarise: Option<Summarise>,
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
