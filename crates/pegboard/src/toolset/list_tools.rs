//! Lists the tools of a view, and why others are missing.

use std::{sync::Arc, time::Duration};

use tokio::task::JoinSet;

use super::{
    listing::{ListedTool, Listing, Unavailable},
    toolset_handle::Toolset,
};
use crate::{
    call::{Route, Visibility},
    server::{Phase, Server},
};
use pegboard_base::{deadline::Deadline, name::ServerName};
use pegboard_tools::{
    catalog::{
        Catalog, Tool,
        sanitize::{has_invisible, is_invisible},
    },
    outcome::Failure,
    provider::Provider,
};

impl Toolset {
    /// Lists the tools of all servers. Servers that are not ready are started and waited for, concurrently and at most for `patience`.
    ///
    /// The listing of a closed view is empty.
    pub async fn list(&self, patience: Duration) -> Listing {
        if self.is_closed() {
            return Listing::of([]).for_provider(self.view.dialect().0);
        }
        let unavailable = self.start_servers(patience).await;
        let (tools, left_out) = self.tools();
        let mut warnings = self.warnings();
        warnings.extend(left_out);
        Listing {
            unavailable,
            tools,
            warnings,
            quarantined: self.table().quarantined().to_vec(),
            provider: self.view.dialect().0,
        }
    }

    /// Starts the servers that are not ready and waits for them, concurrently and at most for `patience`. Returns those that stayed
    /// unavailable.
    pub(super) async fn start_servers(&self, patience: Duration) -> Vec<Unavailable> {
        if self.is_closed() {
            return Vec::new();
        }
        let deadline = Deadline::within(patience);
        let servers = self.selected_servers();
        let mut waiting = JoinSet::new();
        let mut unavailable = Vec::new();
        for (at, server) in servers.iter().enumerate() {
            if self.view.catalog_only && server.catalog().is_some() {
                if let Phase::Down(outage) = server.reported_phase() {
                    unavailable.push((at, Some(outage)));
                }
            } else if server.is_enabled() && !server.is_ready() && !is_listed_while_idle(server) {
                let server = server.clone();
                waiting.spawn(async move { (at, server.live(deadline).await.err()) });
            }
        }
        let mut outages: Vec<_> = waiting.join_all().await;
        outages.extend(unavailable);
        self.recheck_held();
        outages.sort_by_key(|(at, _)| *at);
        let unavailable = outages.into_iter().filter_map(|(at, outage)| {
            let outage = outage?;
            Some(Unavailable::of(&servers[at], &outage))
        });
        unavailable.collect()
    }

    /// The tools that are known now and fit into the view's budget, and a warning about tools that should always be shown but do not fit.
    pub(super) fn tools(&self) -> (Vec<ListedTool>, Option<String>) {
        self.within_budget(self.all_tools())
    }

    /// The tools that are known now, without waiting.
    pub(super) fn all_tools(&self) -> Vec<ListedTool> {
        let routes = self.table();
        let is_defined = |route: &Route| route.definition.is_some() || self.view.dialect().0 == Provider::Mcp;
        let is_whole = self.view.catalog_only;
        let is_there =
            |route: &Route| is_whole || route.server.phase().live().is_some() || is_listed_while_idle(&route.server);
        let listed = routes
            .routes()
            .iter()
            .filter(|route| is_defined(route) && is_there(route));
        // Asked of the current servers: the table may have one that a view has taken over and closed since.
        let down: Vec<ServerName> = match is_whole {
            true => self.unoffered_servers(),
            false => Vec::new(),
        };
        let listed = listed.map(|route| ListedTool {
            available: !down.contains(&route.tool.server),
            ..ListedTool::of(route)
        });
        let listed = listed.chain(self.listed_read_output());
        listed.chain(self.listed_resource_tools()).collect()
    }

    /// The servers whose tools cannot be called now, as far as is known.
    fn unoffered_servers(&self) -> Vec<ServerName> {
        let servers = self.servers();
        let down = servers.iter().filter(|server| !server.is_offered());
        down.map(|server| server.name().clone()).collect()
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        let routes = self.table();
        let mut warnings = routes.quarantined().to_vec();
        warnings.extend(self.selection_warnings());
        warnings.extend(routes.routes().iter().filter_map(|route| unseen_in_name(route)));
        let unchecked = |tool: &Arc<Tool>| tool.unchecked();
        for server in self.selected_servers() {
            let flagged = server.definition_warnings().into_iter();
            warnings.extend(flagged.map(|warning| format!("{}: {warning}", server.name())));
            if let Phase::Ready(live) = server.phase() {
                if live.catalog().is_empty() && server.held_tools().is_empty() {
                    warnings.push(format!(
                        "{}: the server offers no tools, and nothing else",
                        server.name()
                    ));
                }
                warnings.extend(
                    live.catalog()
                        .warnings
                        .iter()
                        .cloned()
                        .chain(live.catalog().tools.iter().filter_map(unchecked))
                        .map(|warning| format!("{}: {warning}", server.name())),
                );
            }
        }
        warnings
    }

    /// Starts the view's servers as [`Toolset::list`] does. Returns the catalogues of the visible ones, the servers that stayed unavailable, and
    /// the warnings of a listing.
    pub(super) async fn list_catalogs(&self, patience: Duration) -> (Vec<Arc<Catalog>>, Vec<Unavailable>, Vec<String>) {
        let unavailable = self.start_servers(patience).await;
        (self.known_catalogs(), unavailable, self.warnings())
    }

    /// The catalogues of the visible servers that are known now, without waiting.
    pub(super) fn known_catalogs(&self) -> Vec<Arc<Catalog>> {
        let all = self.servers();
        let visibility = Visibility::new(&self.view, &all);
        let is_listed = |server: &Server| self.view.catalog_only || server.is_ready() || is_listed_while_idle(server);
        let mut servers = self.selected_servers();
        servers.retain(|server| is_listed(server) && visibility.check_resources_and_prompts(server.name()).is_ok());
        servers.iter().filter_map(Server::catalog).collect()
    }

    /// The tool that `name` means. Its server is started and waited for if needed.
    pub async fn tool(&self, name: &str, patience: Duration) -> Result<Arc<Tool>, Failure> {
        let (route, _) = self.route(name, Deadline::within(patience)).await?;
        Ok(route.tool.clone())
    }
}

/// Whether an idle server is listed with its known catalogue. Its first call starts it.
pub(super) fn is_listed_while_idle(server: &Server) -> bool {
    matches!(server.phase(), Phase::Idle) && server.catalog().is_some()
}

/// A warning about a tool whose name has invisible characters, with which it could impersonate another tool.
fn unseen_in_name(route: &Route) -> Option<String> {
    let name = &route.tool.name;
    if !has_invisible(name) {
        return None;
    }
    let shown: String = name
        .chars()
        .flat_map(|c| {
            let (plain, escaped) = match is_invisible(c) {
                true => (None, Some(c.escape_unicode())),
                false => (Some(c), None),
            };
            plain.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect();
    Some(format!(
        "{}: the name of the tool `{shown}` has invisible characters; it is called as `{}`",
        route.tool.server, route.name
    ))
}
