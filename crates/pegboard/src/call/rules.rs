//! What one view may do: which tools it sees, which calls it may make, and which calls need approval.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value};

use super::{Approvals, Approver, View, approval::OpenQuestions};
use crate::{
    catalog::{Risk, Tool},
    filter::Selection,
    grant::Grants,
    name::ServerName,
};

/// How long an approver may take by default.
const PATIENCE: Duration = Duration::from_secs(300);

/// A call that is about to be made, as checks see it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Proposed<'a> {
    /// The server that would be called.
    pub server: &'a ServerName,
    /// The tool that would be called.
    pub tool: &'a Tool,
    /// How much harm the call may do, under the settings of its server.
    pub risk: Risk,
    /// The arguments as they would be sent. No key occurs twice.
    pub arguments: &'a Map<String, Value>,
}

/// Returns the reason if a call must not be made.
pub(super) type Check = dyn Fn(&Proposed<'_>) -> Result<(), String> + Send + Sync;

/// What one view may do.
#[derive(Clone, Default)]
pub(crate) struct Rules {
    pub(super) allow: Vec<String>,
    pub(super) deny: Vec<String>,
    pub(super) selection: Option<Arc<Selection>>,
    pub(super) grants: Option<Grants>,
    pub(super) checks: Vec<Arc<Check>>,
    pub(super) approver: Option<Arc<dyn Approver>>,
    patience: Option<Duration>,
    /// Approvals for this view, and for all views of the board.
    pub(super) agreed: Approvals,
    pub(super) agreed_for_all: Approvals,
    pub(super) asking: Arc<OpenQuestions>,
    /// Set when output of an untrusted server has reached the agent; `None` unless the view tracks that.
    taint: Option<Arc<AtomicBool>>,
}

impl View {
    /// Adds globs of tools that may be used; without any, all may. A glob with a dot matches `server.tool`, one without matches the tool's
    /// own name. Tools that the servers' own filters hide stay hidden.
    pub fn allow(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.rules.allow.extend(globs.into_iter().map(Into::into));
        self
    }

    /// Adds globs of tools that must not be used, even if they are allowed: for `server.tool` or for the tool's own name.
    pub fn deny(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.rules.deny.extend(globs.into_iter().map(Into::into));
        self
    }

    /// Restricts the view to these servers and tools. [`Selection::check`] finds out early whether they exist.
    pub fn selection(mut self, selection: Selection) -> Self {
        self.rules.selection = Some(Arc::new(selection));
        self
    }

    /// Restricts the view to what is granted.
    pub fn grants(mut self, grants: Grants) -> Self {
        self.rules.grants = Some(grants);
        self
    }

    /// Adds a check that may forbid a call because of its arguments, with the reason. It runs before approval is requested, and must be
    /// fast.
    pub fn check(mut self, check: impl Fn(&Proposed<'_>) -> Result<(), String> + Send + Sync + 'static) -> Self {
        self.rules.checks.push(Arc::new(check));
        self
    }

    /// Sets the approver of this view, in place of the board's.
    pub fn approver(mut self, approver: impl Approver) -> Self {
        self.rules.approver = Some(Arc::new(approver));
        self
    }

    /// Sets how long an approver may take; five minutes by default.
    pub fn approval_timeout(mut self, limit: Duration) -> Self {
        self.rules.patience = Some(limit);
        self
    }

    /// Requests approval for every call of high risk once an untrusted server has answered: its output may steer the model.
    pub fn ask_after_untrusted(mut self) -> Self {
        self.rules.taint = Some(Arc::default());
        self
    }
}

impl Rules {
    /// Resets the rules for a new view: no approvals yet, and the board's approver if it has none of its own.
    pub(crate) fn begin(&mut self, approver: Option<&Arc<dyn Approver>>, agreed_for_all: &Approvals) {
        self.agreed = Approvals::new();
        self.asking = Arc::default();
        self.agreed_for_all = agreed_for_all.clone();
        self.taint = self.taint.take().map(|_| Arc::default());
        if self.approver.is_none() {
            self.approver = approver.cloned();
        }
    }

    /// A copy with another selection.
    pub(crate) fn selecting(&self, selection: Arc<Selection>) -> Self {
        Self {
            selection: Some(selection),
            ..self.clone()
        }
    }

    pub(crate) fn selection(&self) -> Option<&Selection> {
        self.selection.as_deref()
    }

    pub(super) fn patience(&self) -> Duration {
        self.patience.unwrap_or(PATIENCE)
    }

    /// Records that output of an untrusted server has reached the agent.
    pub(super) fn taint(&self) {
        if let Some(taint) = &self.taint {
            taint.store(true, Ordering::Release);
        }
    }

    pub(super) fn is_tainted(&self) -> bool {
        self.taint.as_ref().is_some_and(|taint| taint.load(Ordering::Acquire))
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules")
            .field("allow", &self.allow)
            .field("deny", &self.deny)
            .field("selection", &self.selection)
            .field("grants", &self.grants)
            .finish_non_exhaustive()
    }
}
