//! Decides which tools a view shows: every layer must let a tool pass, and the first that does not gives the reason.

use std::{collections::HashMap, sync::Arc};

use super::{
    route::{
        explain::{list_names, may_belong_to, tool_part},
        resolved::Unroutable,
    },
    view::View,
    view_rules::Rules,
};
use crate::{
    audit::AuditRule,
    pin::command_name,
    server::{ConfigFilter, HeldTool, Server},
};
use pegboard_base::name::{ServerName, dunder, format_dotted};
use pegboard_tools::{
    catalog::Tool,
    filter::{Case, Filter, Selection, fits},
    grant::{Granted, Grants, Offer},
    outcome::{Failure, Kind},
};

/// What one view shows of the servers at one moment.
#[derive(Debug)]
pub(crate) struct Visibility<'a> {
    rules: &'a Rules,
    selection: Option<&'a Selection>,
    /// The in-process server that holds the view's own tools.
    home: Option<&'a ServerName>,
    allow: Filter,
    deny: Filter,
    granted: Option<Granted>,
    grants: Option<&'a Grants>,
    servers: HashMap<ServerName, ConfigFilter>,
}

/// Why a tool is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hidden {
    /// The tool's own metadata excludes models.
    NotForModels,
    /// The server's config excludes it.
    ByConfig,
    /// The view's filter excludes it.
    ByView,
    NotSelected,
    NotGranted,
    /// The server's config requires a capability that the view's grants do not have.
    MissingCapability,
}

impl Hidden {
    fn rule(self) -> AuditRule {
        match self {
            Self::NotForModels => AuditRule::NotForModels,
            Self::ByConfig => AuditRule::Config,
            Self::ByView => AuditRule::View,
            Self::NotSelected => AuditRule::Selection,
            Self::NotGranted | Self::MissingCapability => AuditRule::Grants,
        }
    }
}

impl<'a> Visibility<'a> {
    /// Takes a snapshot of what `view` shows of all servers of its board.
    pub(crate) fn new(view: &'a View, servers: &[Server]) -> Self {
        let rules = &view.rules;
        let one = |server: &Server| (server.name().clone(), ConfigFilter::new(server));
        Self {
            rules,
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

    /// Returns whether a tool is shown; the answer is the same for listings and for calls.
    pub(crate) fn sees(&self, tool: &Tool) -> bool {
        self.check(tool).is_ok()
    }

    /// Problems in the rules themselves.
    pub(crate) fn warnings(&self) -> &[String] {
        self.granted
            .as_ref()
            .map(|granted| granted.warnings.as_slice())
            .unwrap_or_default()
    }

    fn check(&self, tool: &Tool) -> Result<(), Hidden> {
        let Some(server) = self.servers.get(&tool.server) else {
            return Err(Hidden::ByConfig);
        };
        let name = tool.name.as_str();
        if !tool.for_model {
            return Err(Hidden::NotForModels);
        }
        let (mut names, policy) = (server.names(name), server.policy_of(name));
        if !server.allows(name, &policy) {
            return Err(Hidden::ByConfig);
        }
        let server = tool.server.as_str();
        let denies = |name: &str| self.deny.denies(name) || self.deny.denies(&format_dotted(server, name));
        if self.deny.denies_any() && names.any(denies) {
            return Err(Hidden::ByView);
        }
        if self.home == Some(&tool.server) {
            return Ok(());
        }
        if !self.has_server(server) || !self.view_allows(server, name) {
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
        if !self.rules.trusts_client_grants && !policy.requires.iter().all(has) {
            return Err(Hidden::MissingCapability);
        }
        Ok(())
    }

    /// Whether a server is among those that the view shows.
    fn has_server(&self, server: &str) -> bool {
        self.rules.has_server(server)
    }

    fn view_allows(&self, server: &str, tool: &str) -> bool {
        // A tool's own name may contain dots, so it is matched only by globs without one: otherwise `git.*` would also match a tool `git.…`
        // of another server.
        self.allow.allows_where(|glob| {
            let name = format_dotted(server, tool);
            if glob.contains('.') {
                fits(glob, &name)
            } else {
                fits(glob, tool)
            }
        })
    }

    /// Returns why `name` must not be used if it is the name of something hidden. While not all servers are listed, a bare tool name may
    /// still belong to another server, so only names that include the server count.
    pub(crate) fn refusal(&self, name: &str, servers: &[Server], all_known: bool) -> Option<Unroutable> {
        for server in servers {
            let held = server.listing().held_tools();
            let means = |held: &&HeldTool| is_spelled(name, &held.tool) || (all_known && name == held.tool.name);
            if let Some(held) = held.iter().find(means) {
                let (rule, failure) = match self.check(&held.tool) {
                    Ok(()) => (AuditRule::Held, self.held_refusal(held, servers)),
                    Err(hidden) => (hidden.rule(), self.failure(&held.tool, hidden, servers)),
                };
                return Some(Unroutable::for_tool(&held.tool, rule, failure));
            }
            let Some(catalog) = server.catalog() else { continue };
            let means = |tool: &&Arc<Tool>| is_spelled(name, tool) || (all_known && name == tool.name);
            let hidden = catalog.tools.iter().filter(means);
            if let Some((tool, hidden)) = hidden.filter_map(|tool| Some((tool, self.check(tool).err()?))).next() {
                let failure = self.failure(tool, hidden, servers);
                return Some(Unroutable::for_tool(tool, hidden.rule(), failure));
            }
        }
        let selection = self.selection?;
        let (chosen, left): (Vec<&Server>, Vec<&Server>) = servers
            .iter()
            .filter(|server| may_belong_to(name, server.name()))
            .partition(|server| selection.has_server(server.name().as_str()));
        let (true, Some(server)) = (chosen.is_empty(), left.first()) else {
            return None;
        };
        let failure = self.selection_refusal(server.name(), None, servers);
        let refusal = Unroutable::from(failure).by(AuditRule::Selection);
        Some(match (left.len(), tool_part(name, server.name())) {
            (1, Some(tool)) => refusal.with_identified_tool(server.name(), tool),
            _ => refusal,
        })
    }

    /// Returns whether a server may have visible tools. A server that was never listed may, unless the selection or the grants exclude it.
    pub(crate) fn may_see_tools_of(&self, server: &Server) -> bool {
        let name = server.name();
        match server.catalog() {
            Some(catalog) => catalog.tools.iter().any(|tool| self.sees(tool)),
            None => {
                let is_home = self.home == Some(name);
                (is_home || self.has_server(name.as_str()))
                    && self
                        .selection
                        .is_none_or(|selection| selection.has_server(name.as_str()))
                    && self.granted.as_ref().is_none_or(|granted| granted.may_cover(name))
            }
        }
    }

    /// A sentence for a model on what to call in place of a tool of `server`: the server's other tools, or other servers.
    fn suggest_alternatives(&self, server: &ServerName, servers: &[Server]) -> String {
        let catalog = servers
            .iter()
            .find(|other| other.name() == server)
            .and_then(Server::catalog);
        let tools = catalog.iter().flat_map(|catalog| &catalog.tools);
        let mut tools = tools.filter(|tool| self.sees(tool)).map(|tool| tool.name.as_str());
        match tools.next() {
            Some(first) => {
                let tools = list_names(std::iter::once(first).chain(tools));
                format!("Available tools of server `{server}`: {tools}.")
            }
            None => self.other_servers(servers),
        }
    }

    /// A sentence for a model that lists the servers whose tools may be called.
    fn other_servers(&self, servers: &[Server]) -> String {
        let offered = servers
            .iter()
            .filter(|server| server.is_enabled() && self.may_see_tools_of(server));
        let names = list_names(offered.map(|server| server.name().as_str()));
        format!("Available servers: {names}.")
    }

    /// Returns an error if the resources and prompts of a server may not be used.
    pub(crate) fn check_resources_and_prompts(&self, server: &ServerName) -> Result<(), Failure> {
        if !self.has_server(server.as_str()) {
            let message = format!("server `{server}` is not part of this view");
            return Err(self.resources_refusal(&message));
        }
        if self
            .selection
            .is_some_and(|selection| !selection.has_server(server.as_str()))
        {
            let message = format!("server `{server}` is not part of the selection");
            return Err(self.resources_refusal(&message));
        }
        if self
            .granted
            .as_ref()
            .is_some_and(|granted| !granted.covers_all_of(server))
        {
            let message = format!("resources and prompts of server `{server}` may not be used: they are not granted");
            return Err(self
                .resources_refusal(&message)
                .hint(format!("the grants `mcp_integration` and `mcp_{server}` cover them")));
        }
        Ok(())
    }

    /// The refusal of resources or prompts of a server, with the servers whose resources and prompts may be used.
    fn resources_refusal(&self, message: &str) -> Failure {
        let is_open = |name: &&ServerName| {
            let is_selected = self
                .selection
                .is_none_or(|selection| selection.has_server(name.as_str()));
            self.has_server(name.as_str())
                && is_selected
                && self.granted.as_ref().is_none_or(|granted| granted.covers_all_of(name))
        };
        let mut open: Vec<&str> = self.servers.keys().filter(is_open).map(ServerName::as_str).collect();
        open.sort_unstable();
        let open = list_names(open.into_iter());
        Failure::new(Kind::NotPermitted, format!("{message}. Available servers: {open}."))
    }

    /// Returns an error if a model may not use a server's resources: besides [`Visibility::check_resources_and_prompts`], the view must show
    /// one of the server's tools or allow all of them, and must not deny all of them.
    pub(crate) fn check_resources(&self, server: &ServerName, tools: &[Arc<Tool>]) -> Result<(), Failure> {
        self.check_resources_and_prompts(server)?;
        let every = format_dotted(server.as_str(), "*");
        let is_denied = self.deny.denies("*") || self.deny.denies(&every);
        let is_allowed = || self.view_allows(server.as_str(), "*") || tools.iter().any(|tool| self.sees(tool));
        if is_denied || !is_allowed() {
            let message = format!("resources of server `{server}` may not be used: it is not among those of this view");
            return Err(Failure::new(Kind::NotPermitted, message));
        }
        Ok(())
    }

    /// The refusal of a tool that is held, with the command that accepts it.
    fn held_refusal(&self, held: &HeldTool, servers: &[Server]) -> Failure {
        let (name, server) = (held.tool.dotted_name(), &held.tool.server);
        let what = command_name(server, &held.tool.name);
        let message = format!(
            "tool `{name}` is held: {}. A person must accept it first. {}",
            held.reason,
            self.suggest_alternatives(server, servers)
        );
        Failure::new(Kind::NotPermitted, message).hint(format!(
            "`pegboard pins diff {what}` shows the definition, `pegboard pins accept {what}` accepts it"
        ))
    }

    fn failure(&self, tool: &Tool, hidden: Hidden, servers: &[Server]) -> Failure {
        let (name, server) = (tool.dotted_name(), &tool.server);
        let refused = |why: &str| {
            let instead = self.suggest_alternatives(server, servers);
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
            Hidden::NotSelected => self.selection_refusal(server, Some(&tool.name), servers),
            Hidden::NotGranted => refused("it is not granted").hint(format!(
                "the grants `mcp_integration`, `mcp_{server}` and `mcp_{server}_{}` cover it",
                tool.name
            )),
            Hidden::MissingCapability => refused("it needs a capability that was not granted").hint(format!(
                "`tools` of server `{server}` says with `requires` which words `Grants` must have for it"
            )),
        }
    }

    /// The refusal of something outside the selection, with what the selection contains.
    fn selection_refusal(&self, server: &ServerName, tool: Option<&str>, servers: &[Server]) -> Failure {
        let is_selected = self
            .selection
            .is_some_and(|selection| selection.has_server(server.as_str()));
        let message = match tool {
            Some(tool) if is_selected => format!(
                "tool `{tool}` of server `{server}` is not part of the selection. {}",
                self.suggest_alternatives(server, servers)
            ),
            _ => format!(
                "server `{server}` is not part of the selection. {}",
                self.other_servers(servers)
            ),
        };
        Failure::new(Kind::NotPermitted, message)
    }
}

/// Returns whether `name` is the tool's name with its server's, in any style.
fn is_spelled(name: &str, tool: &Tool) -> bool {
    let (server, own) = (tool.server.as_str(), tool.name.as_str());
    name == format_dotted(server, own)
        || name == dunder(server, own)
        || name == dunder("mcp", &dunder(server, own))
        || name == format!("mcp_{server}_{own}")
}
