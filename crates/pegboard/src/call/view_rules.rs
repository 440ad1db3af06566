//! The rules of one view: which tools it sees, which calls it may make, and which calls need approval.

use std::{fmt, sync::Arc, time::Duration};

use serde_json::{Map, Value};

use super::{
    approval::{Approvals, Approver, OpenQuestions},
    taint::TaintState,
};
use crate::server::ShownServers;
use pegboard_base::name::ServerName;
use pegboard_config::{Approval, Taint};
use pegboard_tools::{
    catalog::{Risk, Tool},
    filter::{Selection, fits},
    grant::Grants,
};

/// Whether a server is among those that globs name; no globs mean all.
fn is_among(servers: &[String], server: &str) -> bool {
    servers.is_empty() || servers.iter().any(|glob| fits(glob, server))
}

/// How long an approver may take by default.
const APPROVAL_TIMEOUT: Duration = Duration::from_secs(300);

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
pub(super) type CallCheck = dyn Fn(&Proposed<'_>) -> Result<(), String> + Send + Sync;

/// The rules of one view.
#[derive(Clone, Default)]
pub(crate) struct Rules {
    /// Globs of the servers that are shown; empty means all.
    pub(super) servers: Vec<String>,
    pub(super) allow: Vec<String>,
    pub(super) deny: Vec<String>,
    pub(super) selection: Option<Arc<Selection>>,
    pub(super) grants: Option<Grants>,
    /// Whether the client checks the capabilities that tools require.
    pub(super) trusts_client_grants: bool,
    pub(super) checks: Vec<Arc<CallCheck>>,
    pub(super) approver: Option<Arc<dyn Approver>>,
    pub(super) approval_timeout: Option<Duration>,
    /// Approvals for this view, and for all views by principal.
    pub(super) approved: Approvals,
    pub(super) approved_for_all: Approvals,
    pub(super) open_questions: Arc<OpenQuestions>,
    /// The untrusted servers whose output has reached the agent.
    pub(crate) taint: Arc<TaintState>,
    /// What happens to calls of high risk after that, if no server's config is stricter.
    pub(super) on_taint: Taint,
    /// Which calls need approval, if no server's config is stricter.
    pub(super) approval: Approval,
}

impl Rules {
    /// Resets the rules for a new view: no approvals yet, and the board's approver if it has none of its own.
    pub(crate) fn reset(&mut self, approver: Option<&Arc<dyn Approver>>, approved_for_all: &Approvals) {
        self.approved = Approvals::new();
        self.open_questions = Arc::default();
        self.approved_for_all = approved_for_all.clone();
        self.taint = Arc::default();
        if self.approver.is_none() {
            self.approver = approver.cloned();
        }
    }

    /// A copy with another selection.
    pub(crate) fn with_selection(&self, selection: Arc<Selection>) -> Self {
        Self {
            selection: Some(selection),
            ..self.clone()
        }
    }

    pub(crate) fn selection(&self) -> Option<&Selection> {
        self.selection.as_deref()
    }

    /// Whether a server is among those that the view shows.
    pub(crate) fn has_server(&self, server: &str) -> bool {
        is_among(&self.servers, server)
    }

    /// Whether the view shows a server: it is among those of the view, and of its selection.
    pub(crate) fn shows_server(&self, server: &str) -> bool {
        self.has_server(server) && self.selection().is_none_or(|selection| selection.has_server(server))
    }

    /// Decides whether the view shows a server; `None` if it shows all.
    pub(crate) fn shown_servers(&self) -> Option<ShownServers> {
        let is_limited = !self.servers.is_empty() || self.selection.is_some();
        let (servers, selection) = (self.servers.clone(), self.selection.clone());
        is_limited.then(|| -> ShownServers {
            Arc::new(move |server| {
                is_among(&servers, server) && selection.as_ref().is_none_or(|selection| selection.has_server(server))
            })
        })
    }

    /// The rules that decide which tools are shown. Every field is named, so that a new one is not forgotten here.
    pub(crate) fn to_shown_rules(&self) -> ShownRules {
        let Self {
            servers,
            allow,
            deny,
            selection,
            grants,
            trusts_client_grants,
            checks: _,
            approver: _,
            approval_timeout: _,
            approved: _,
            approved_for_all: _,
            open_questions: _,
            taint: _,
            on_taint: _,
            approval: _,
        } = self;
        ShownRules {
            servers: servers.clone(),
            allow: allow.clone(),
            deny: deny.clone(),
            selection: selection.clone(),
            grants: grants.clone(),
            trusts_client_grants: *trusts_client_grants,
        }
    }

    pub(super) fn approval_timeout(&self) -> Duration {
        self.approval_timeout.unwrap_or(APPROVAL_TIMEOUT)
    }
}

/// The rules that decide which tools a view shows.
#[derive(Debug)]
pub(crate) struct ShownRules {
    servers: Vec<String>,
    allow: Vec<String>,
    deny: Vec<String>,
    selection: Option<Arc<Selection>>,
    grants: Option<Grants>,
    trusts_client_grants: bool,
}

impl ShownRules {
    /// Whether these are the rules of a view.
    pub(crate) fn are_those_of(&self, rules: &Rules) -> bool {
        self.servers == rules.servers
            && self.allow == rules.allow
            && self.deny == rules.deny
            && self.selection == rules.selection
            && self.grants == rules.grants
            && self.trusts_client_grants == rules.trusts_client_grants
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules")
            .field("servers", &self.servers)
            .field("allow", &self.allow)
            .field("deny", &self.deny)
            .field("selection", &self.selection)
            .field("grants", &self.grants)
            .finish_non_exhaustive()
    }
}
