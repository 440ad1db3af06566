//! [`ConfigFilter`]: which tools of a server its own config shows to all views.

use std::sync::Arc;

use pegboard_config::{Policy, ServerConfig, ToolPolicy};
use pegboard_tools::{
    catalog::{FormerNames, Tool},
    filter::{Case, Filter, fits},
};

use super::server_handle::Server;

/// The filter in a server's own config.
#[derive(Debug)]
pub(crate) struct ConfigFilter {
    filter: Filter,
    pub(crate) config: Arc<ServerConfig>,
    former: FormerNames,
}

impl ConfigFilter {
    /// Takes a snapshot of a server's filter.
    pub(crate) fn new(server: &Server) -> Self {
        let config = server.config_snapshot();
        let case = match config.policy.case_insensitive {
            true => Case::Ignored,
            false => Case::Matters,
        };
        Self {
            filter: Filter::new(&config.allow, &config.deny, case),
            former: server.listing().former_names(),
            config,
        }
    }

    /// Whether models may see the tool, as far as its own metadata and the config decide.
    pub(crate) fn shows(&self, tool: &Tool) -> bool {
        tool.for_model && self.allows(&tool.name, &self.policy_of(&tool.name))
    }

    /// Whether the config allows a tool of this name, which has these settings.
    pub(crate) fn allows(&self, name: &str, policy: &ToolPolicy) -> bool {
        let is_denied = self.names(name).any(|name| self.filter.denies(name));
        !is_denied && policy.enabled != Some(false) && self.filter.allows(name)
    }

    /// The config's settings for a tool.
    pub(crate) fn policy_of(&self, name: &str) -> ToolPolicy {
        tool_policy(&self.config.policy, name, self.former.get(name))
    }

    /// A tool's name and its former names.
    pub(crate) fn names<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let former = self.former.get(name).iter().map(String::as_str);
        std::iter::once(name).chain(former)
    }
}

/// The config's settings for a tool, under its name and its former names.
pub(crate) fn tool_policy(policy: &Policy, name: &str, former: &[String]) -> ToolPolicy {
    let mut of_tool = policy.for_tool(name, fits);
    for name in former {
        of_tool.or(&policy.for_tool(name, fits));
    }
    of_tool
}
