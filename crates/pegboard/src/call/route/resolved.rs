//! The results of routing a name: a route, a hidden or ambiguous tool, or the reason why there is none.

use std::{borrow::Cow, sync::Arc};

use super::super::audience::Audience;
use crate::{audit::AuditRule, server::Server};
use pegboard_base::name::ServerName;
use pegboard_config::Policy;
use pegboard_tools::{
    catalog::{Tool, ToolKind},
    outcome::Failure,
    provider::Definition,
};

/// The server and tool that a call goes to.
#[derive(Debug)]
pub(crate) struct Route {
    /// The name that models see.
    pub(crate) name: String,
    pub(crate) server: Server,
    pub(crate) tool: Arc<Tool>,
    /// The definition compiled for the view's provider. `None` if the server's own definition is used, or if the tool cannot be offered to
    /// the provider.
    pub(crate) definition: Option<Arc<Definition>>,
    /// Decides which tool gets a name that several tools have.
    pub(crate) precedence: Precedence,
    /// Whether the tool comes from a configured server, from this program or is built in.
    pub(crate) kind: ToolKind,
}

impl Route {
    /// Creates the route of a built-in tool that acts on `server`, such as `read_resource`.
    pub(crate) fn through(listed: &str, tool: &Tool, server: Server) -> Self {
        let mut tool = tool.clone();
        tool.server = server.name().clone();
        Self {
            name: listed.to_owned(),
            server,
            tool: Arc::new(tool),
            definition: None,
            precedence: Precedence::View,
            kind: ToolKind::BuiltIn,
        }
    }

    /// The name of the tool in texts for an audience.
    pub(crate) fn name_for(&self, audience: Audience) -> Cow<'_, str> {
        match audience.knows_listed_names() {
            true => Cow::Borrowed(&self.name),
            false => Cow::Owned(self.tool.dotted_name()),
        }
    }

    /// Returns whether the tool's annotations are trusted when they claim that it does no harm, under its server's settings.
    pub(crate) fn is_believed(&self, policy: &Policy) -> bool {
        self.kind.is_believed(policy.trust)
    }
}

/// The failure for a name that resolves to no tool that the caller may use.
#[derive(Debug)]
pub(crate) struct Unroutable {
    pub(crate) failure: Failure,
    /// The server and tool that the name identifies, if any.
    pub(crate) identified: Option<(ServerName, String)>,
    /// Whether the server lists the identified tool. Otherwise its name is any text that a caller wrote.
    pub(crate) is_listed: bool,
    /// The rule behind it, for the audit log.
    pub(crate) rule: AuditRule,
}

impl Unroutable {
    /// Creates the failure for a name that identifies this tool, which its server lists.
    pub(crate) fn for_tool(tool: &Tool, rule: AuditRule, failure: Failure) -> Self {
        Self {
            failure,
            identified: Some((tool.server.clone(), tool.name.clone())),
            is_listed: true,
            rule,
        }
    }

    /// Adds the server and the tool that the name identifies, whether the server has that tool or not.
    pub(crate) fn with_identified_tool(self, server: &ServerName, tool: &str) -> Self {
        Self {
            identified: Some((server.clone(), tool.to_owned())),
            ..self
        }
    }

    pub(crate) fn by(self, rule: AuditRule) -> Self {
        Self { rule, ..self }
    }
}

impl From<Failure> for Unroutable {
    fn from(failure: Failure) -> Self {
        Self {
            rule: AuditRule::from_kind(failure.kind),
            failure,
            identified: None,
            is_listed: false,
        }
    }
}

impl From<Unroutable> for Failure {
    fn from(unroutable: Unroutable) -> Self {
        let server = unroutable.identified.as_ref().map(|(server, _)| server);
        unroutable.rule.explain(unroutable.failure, server)
    }
}

/// Whose tool it is, from the lowest precedence to the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Precedence {
    /// A tool of a configured server.
    Server,
    /// A tool of a server inside this program.
    Program,
    /// A tool that belongs to the view.
    View,
}

/// The result of looking a name up.
#[derive(Debug)]
pub(crate) enum Routed {
    To(Arc<Route>),
    /// No tool has this name, but exactly one has a similar one.
    Repaired(Arc<Route>),
    /// Several tools match.
    Ambiguous(Vec<Arc<Route>>),
    /// The tool exists, as `server.tool`, but the view hides it.
    Hidden(String),
    Nowhere,
}
