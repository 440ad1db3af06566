//! What one view sees: every layer must let a tool through, and the one that does not says why.

use std::{collections::HashMap, sync::Arc};

use super::{
    View,
    route::{Unroutable, listed, may_be_of, tool_of},
};
use crate::{
    catalog::{FormerNames, Tool},
    config::{Policy, ServerConfig, ToolPolicy},
    filter::{Case, Filter, Selection, fits},
    grant::{Granted, Grants, Offer},
    name::{ServerName, dotted, dunder},
    outcome::{Failure, Kind},
    server::Server,
};

/// What one view sees of the servers at one moment.
#[derive(Debug)]
pub(crate) struct Visibility<'a> {
    selection: Option<&'a Selection>,
    /// Where the tools stand that the view brings along.
    home: Option<&'a ServerName>,
    allow: Filter,
    deny: Filter,
    granted: Option<Granted>,
    grants: Option<&'a Grants>,
    servers: HashMap<ServerName, OneServer>,
}

/// What a server's own config lets through.
#[derive(Debug)]
struct OneServer {
    filter: Filter,
    config: Arc<ServerConfig>,
    former: FormerNames,
}

/// Why a tool is not to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hidden {
    /// It says itself that it is not for models.
    NotForModels,
    /// Its server's config leaves it out.
    ByConfig,
    /// The view's filter leaves it out.
    ByView,
    NotSelected,
    NotGranted,
    /// Its server's config asks for a capability that the view's grants do not have.
    NotCapable,
}

impl<'a> Visibility<'a> {
    /// What `view` sees of all the servers of its board.
    pub(crate) fn new(view: &'a View, servers: &[Server]) -> Self {
        let rules = &view.rules;
        let one = |server: &Server| {
            let config = server.config_snapshot();
            let case = if config.policy.case_insensitive {
                Case::Ignored
            } else {
                Case::Matters
            };
            let filter = Filter::new(&config.allow, &config.deny, case);
            let former = server.former_names();
            (server.name().clone(), OneServer { filter, config, former })
        };
        Self {
            selection: rules.selection(),
            home: view.home.as_ref(),
            allow: Filter::new(&rules.allow, &[], Case::Matters),
            deny: Filter::new(&[], &rules.deny, Case::Matters),
            grants: rules.grants.as_ref(),
            granted: rules.grants.as_ref().map(|grants| {
                let tools = servers.iter().map(|server| {
                    let catalog = server.catalog()?;
                    Some(catalog.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>())
                });
                let tools: Vec<_> = tools.collect();
                let offers = servers.iter().zip(&tools).map(|(server, tools)| Offer {
                    server: server.name(),
                    tools: tools.as_deref(),
                });
                grants.among(&offers.collect::<Vec<_>>())
            }),
            servers: servers.iter().map(one).collect(),
        }
    }

    /// Whether a tool is to be seen, in listings and by calls alike.
    pub(crate) fn sees(&self, tool: &Tool) -> bool {
        self.look(tool).is_ok()
    }

    /// What is wrong with the rules themselves.
    pub(crate) fn warnings(&self) -> &[String] {
        self.granted
            .as_ref()
            .map(|granted| granted.warnings.as_slice())
            .unwrap_or_default()
    }

    fn look(&self, tool: &Tool) -> Result<(), Hidden> {
        let Some(server) = self.servers.get(&tool.server) else {
            return Err(Hidden::ByConfig);
        };
        let name = tool.name.as_str();
        if !tool.for_model {
            return Err(Hidden::NotForModels);
        }
        let former = server.former.of(name);
        let mut names = std::iter::once(name).chain(former.iter().map(String::as_str));
        let is_denied = names.clone().any(|name| server.filter.denies(name));
        let said = said_about(&server.config.policy, name, former);
        let is_off = said.enabled == Some(false);
        if is_denied || is_off || !server.filter.allows(name) {
            return Err(Hidden::ByConfig);
        }
        let server = tool.server.as_str();
        let denies = |name: &str| self.deny.denies(name) || self.deny.denies(&dotted(server, name));
        if self.deny.denies_any() && names.any(denies) {
            return Err(Hidden::ByView);
        }
        if self.home == Some(&tool.server) {
            return Ok(());
        }
        if !self.view_allows(server, name) {
            return Err(Hidden::ByView);
        }
        if self
            .selection
            .is_some_and(|selection| !selection.has_tool(server, name))
        {
            return Err(Hidden::NotSelected);
        }
        if self
            .granted
            .as_ref()
            .is_some_and(|granted| !granted.covers(&tool.server, name))
        {
            return Err(Hidden::NotGranted);
        }
        let has = |word: &String| self.grants.is_some_and(|grants| grants.has_word(word));
        if !said.requires.iter().all(has) {
            return Err(Hidden::NotCapable);
        }
        Ok(())
    }

    fn view_allows(&self, server: &str, tool: &str) -> bool {
        // A tool's own name may have dots too, so it counts only for globs without any: otherwise `git.*` would let through whatever
        // another server calls `git.…`.
        self.allow.allows_where(|glob| {
            let name = dotted(server, tool);
            if glob.contains('.') {
                fits(glob, &name)
            } else {
                fits(glob, tool)
            }
        })
    }

    /// Why `name` must not be used, when it is the name of something that is hidden. While not all servers are known, a tool's own name
    /// may still be that of another server's tool, so then it must come with its server's.
    pub(crate) fn refusal(&self, name: &str, servers: &[Server], all_known: bool) -> Option<Unroutable> {
        for server in servers {
            let Some(catalog) = server.catalog() else { continue };
            let means = |tool: &&Arc<Tool>| is_spelled(name, tool) || (all_known && name == tool.name);
            let hidden = catalog.tools.iter().filter(means);
            if let Some((tool, hidden)) = hidden.filter_map(|tool| Some((tool, self.look(tool).err()?))).next() {
                let failure = self.failure(tool, hidden, servers);
                return Some(Unroutable::meaning(&tool.server, &tool.name, failure));
            }
        }
        let selection = self.selection?;
        let (chosen, left): (Vec<&Server>, Vec<&Server>) = servers
            .iter()
            .filter(|server| may_be_of(name, server.name()))
            .partition(|server| selection.has_server(server.name().as_str()));
        let (true, Some(server)) = (chosen.is_empty(), left.first()) else {
            return None;
        };
        let failure = self.not_selected(server.name(), None, servers);
        Some(match (left.len(), tool_of(name, server.name())) {
            (1, Some(tool)) => Unroutable::meaning(server.name(), tool, failure),
            _ => failure.into(),
        })
    }

    /// Whether a server may have tools that are to be seen. One that was never listed may, unless the rules leave out all of it.
    pub(crate) fn may_see_tools_of(&self, server: &Server) -> bool {
        let name = server.name();
        match server.catalog() {
            Some(catalog) => catalog.tools.iter().any(|tool| self.sees(tool)),
            None => {
                self.selection
                    .is_none_or(|selection| selection.has_server(name.as_str()))
                    && self.granted.as_ref().is_none_or(|granted| granted.may_cover(name))
            }
        }
    }

    /// What can be called in place of a tool of `server`, in a sentence for a model: the server's other tools, or else other servers.
    fn instead(&self, server: &ServerName, servers: &[Server]) -> String {
        let catalog = servers
            .iter()
            .find(|other| other.name() == server)
            .and_then(Server::catalog);
        let tools = catalog.iter().flat_map(|catalog| &catalog.tools);
        let mut tools = tools.filter(|tool| self.sees(tool)).map(|tool| tool.name.as_str());
        match tools.next() {
            Some(first) => {
                let tools = listed(std::iter::once(first).chain(tools));
                format!("Available tools of server `{server}`: {tools}.")
            }
            None => self.other_servers(servers),
        }
    }

    /// The servers whose tools may be called, in a sentence for a model.
    fn other_servers(&self, servers: &[Server]) -> String {
        let offered = servers
            .iter()
            .filter(|server| server.is_enabled() && self.may_see_tools_of(server));
        let names = listed(offered.map(|server| server.name().as_str()));
        format!("Available servers: {names}.")
    }

    /// Whether the resources and prompts of a server may be used, or why not.
    pub(crate) fn sees_server(&self, server: &ServerName) -> Result<(), Failure> {
        if self
            .selection
            .is_some_and(|selection| !selection.has_server(server.as_str()))
        {
            let message = format!("server `{server}` is not part of the selection");
            return Err(self.beside_tools_elsewhere(&message));
        }
        if self
            .granted
            .as_ref()
            .is_some_and(|granted| !granted.covers_all_of(server))
        {
            let message = format!("resources and prompts of server `{server}` may not be used: they are not granted");
            return Err(self
                .beside_tools_elsewhere(&message)
                .hint(format!("the grants `mcp_integration` and `mcp_{server}` cover them")));
        }
        Ok(())
    }

    /// The refusal of what a server offers beside its tools, with the servers whose resources and prompts may be used.
    fn beside_tools_elsewhere(&self, message: &str) -> Failure {
        let is_open = |name: &&ServerName| {
            let is_selected = self
                .selection
                .is_none_or(|selection| selection.has_server(name.as_str()));
            is_selected && self.granted.as_ref().is_none_or(|granted| granted.covers_all_of(name))
        };
        let mut open: Vec<&str> = self.servers.keys().filter(is_open).map(ServerName::as_str).collect();
        open.sort_unstable();
        let open = listed(open.into_iter());
        Failure::new(Kind::NotPermitted, format!("{message}. Available servers: {open}."))
    }

    /// Whether a model may use what a server offers beside its tools: it must see some of the tools, or would see all that come.
    pub(crate) fn sees_beside_tools(&self, server: &ServerName, tools: &[Arc<Tool>]) -> Result<(), Failure> {
        self.sees_server(server)?;
        let every = dotted(server.as_str(), "*");
        let is_denied = self.deny.denies("*") || self.deny.denies(&every);
        let is_allowed = || self.view_allows(server.as_str(), "*") || tools.iter().any(|tool| self.sees(tool));
        if is_denied || !is_allowed() {
            let message = format!("resources of server `{server}` may not be used: it is not among those of this view");
            return Err(Failure::new(Kind::NotPermitted, message));
        }
        Ok(())
    }

    fn failure(&self, tool: &Tool, hidden: Hidden, servers: &[Server]) -> Failure {
        let (name, server) = (tool.dotted_name(), &tool.server);
        let refused = |why: &str| {
            let instead = self.instead(server, servers);
            Failure::new(
                Kind::NotPermitted,
                format!("tool `{name}` may not be used: {why}. {instead}"),
            )
        };
        match hidden {
            Hidden::NotForModels => refused("its server keeps it from models"),
            Hidden::ByConfig => refused("the config hides it").hint(format!(
                "`allow`, `deny` and `tools` of server `{server}` say which of its tools are shown"
            )),
            Hidden::ByView => refused("it is not among the tools of this view"),
            Hidden::NotSelected => self.not_selected(server, Some(&tool.name), servers),
            Hidden::NotGranted => refused("it is not granted").hint(format!(
                "the grants `mcp_integration`, `mcp_{server}` and `mcp_{server}_{}` cover it",
                tool.name
            )),
            Hidden::NotCapable => refused("it needs a capability that was not granted").hint(format!(
                "`tools` of server `{server}` says with `requires` which words `Grants` must have for it"
            )),
        }
    }

    /// The refusal of what a selection leaves out, with what it has instead.
    fn not_selected(&self, server: &ServerName, tool: Option<&str>, servers: &[Server]) -> Failure {
        let is_selected = self
            .selection
            .is_some_and(|selection| selection.has_server(server.as_str()));
        let message = match tool {
            Some(tool) if is_selected => format!(
                "tool `{tool}` of server `{server}` is not part of the selection. {}",
                self.instead(server, servers)
            ),
            _ => format!(
                "server `{server}` is not part of the selection. {}",
                self.other_servers(servers)
            ),
        };
        Failure::new(Kind::NotPermitted, message)
    }
}

/// What a server's config says about a tool, under its name and under those that it had before.
pub(super) fn said_about(policy: &Policy, name: &str, former: &[String]) -> ToolPolicy {
    let mut said = policy.of_tool(name, fits);
    for name in former {
        said.or(&policy.of_tool(name, fits));
    }
    said
}

/// Whether `name` is the tool's with its server's, in any style.
fn is_spelled(name: &str, tool: &Tool) -> bool {
    let (server, own) = (tool.server.as_str(), tool.name.as_str());
    name == dotted(server, own)
        || name == dunder(server, own)
        || name == dunder("mcp", &dunder(server, own))
        || name == format!("mcp_{server}_{own}")
}
