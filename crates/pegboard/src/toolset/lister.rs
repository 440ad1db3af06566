//! [`Lister`]: lists the tools of a view, and why others are missing.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use tokio::{task::JoinSet, time::Instant};

use super::{
    builtin_list::list_builtin,
    listing::{ListedTool, Listing, Unavailable},
    listing_warnings::collect_warnings,
    open_view::OpenView,
    search::ServerCost,
    tool_budget::fit_budget,
};
use crate::{
    call::{Route, Visibility},
    server::{Kept, Phase, Server},
};
use pegboard_base::{deadline::Deadline, diagnosis::Code, name::ServerName};
use pegboard_tools::{
    catalog::{Catalog, ListWarning},
    provider::Provider,
};

/// Lists what a view offers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lister<'a> {
    open: &'a OpenView,
}

impl<'a> Lister<'a> {
    pub(super) fn new(open: &'a OpenView) -> Self {
        Self { open }
    }

    /// Lists the tools of all servers, after those that are not ready were started. The listing of a closed view is empty.
    pub(super) fn list(self, patience: Duration) -> BoxFuture<'a, Listing> {
        Box::pin(async move {
            if self.open.is_closed() {
                return Listing::from_tools([]).for_provider(self.open.view.dialect().0);
            }
            let unavailable = self.start_servers(patience).await;
            let (tools, left_out) = self.list_tools();
            let mut problems = collect_warnings(self.open);
            problems.extend(left_out.map(|warning| ListWarning::new(Code::ListWarning, warning)));
            Listing {
                unavailable,
                tools,
                warnings: problems.iter().map(ToString::to_string).collect(),
                problems,
                quarantined: self.open.table().quarantined().to_vec(),
                provider: self.open.view.dialect().0,
            }
        })
    }

    /// Starts the servers that are not ready and waits for them, concurrently and at most for `patience`, unless the view lists them meanwhile.
    /// Returns those that stayed unavailable.
    pub(super) async fn start_servers(self, patience: Duration) -> Vec<Unavailable> {
        if self.open.is_closed() {
            return Vec::new();
        }
        let deadline = Deadline::within(patience);
        let servers = self.open.selected_servers();
        let mut waiting = JoinSet::new();
        let mut unavailable = Vec::new();
        for (at, server) in servers.iter().enumerate() {
            if self.open.view.is_catalog_only() && server.catalog().is_some() && server.listing().is_believed() {
                if let Phase::Down(outage) = server.reported_phase() {
                    unavailable.push((at, Some(outage)));
                }
            } else if !server.is_enabled() || server.is_ready() || is_listed_while_idle(server) {
                // There is nothing to wait for.
            } else if self.is_kept(server) {
                unavailable.push((at, Some(server.request_start())));
            } else {
                let server = server.clone();
                waiting.spawn(async move { (at, server.ensure_live(deadline).await.err()) });
            }
        }
        let mut outages: Vec<_> = waiting.join_all().await;
        outages.extend(unavailable);
        self.open.recheck_held();
        outages.sort_by_key(|(at, _)| *at);
        let unavailable = outages.into_iter().filter_map(|(at, outage)| {
            let outage = outage?;
            Some(Unavailable::from_outage(&servers[at], &outage))
        });
        unavailable.collect()
    }

    /// The tools that are known now and fit into the view's budget, and a warning about tools that should always be shown but do not fit.
    pub(super) fn list_tools(self) -> (Vec<ListedTool>, Option<String>) {
        fit_budget(self.open, self.list_all_tools())
    }

    /// The tools that are known now, without waiting.
    pub(super) fn list_all_tools(self) -> Vec<ListedTool> {
        let routes = self.open.table();
        let is_defined = |route: &Route| route.definition.is_some() || self.open.view.dialect().0 == Provider::Mcp;
        let is_whole = self.open.view.is_catalog_only();
        let is_there = |route: &Route| is_whole || self.is_listed(&route.server);
        let listed = routes
            .routes()
            .iter()
            .filter(|route| is_defined(route) && is_there(route));
        // Asked of the current servers: the table may have one that a view has taken over and closed since.
        let down: Vec<ServerName> = match is_whole || self.open.view.lists_known() {
            true => self.find_unoffered(),
            false => Vec::new(),
        };
        let listed = listed.map(|route| ListedTool {
            available: !down.contains(&route.tool.server),
            ..ListedTool::from_route(route)
        });
        listed.chain(list_builtin(self.open)).collect()
    }

    /// The servers whose tools cannot be called now, as far as is known.
    fn find_unoffered(self) -> Vec<ServerName> {
        let servers = self.open.servers();
        let down = servers.iter().filter(|server| !server.reported_phase().is_offered());
        down.map(|server| server.name().clone()).collect()
    }

    /// Starts the view's servers as [`Lister::list`] does. Returns the catalogues of the visible ones, the servers that stayed unavailable, and
    /// the warnings of a listing.
    pub(super) async fn list_catalogs(self, patience: Duration) -> (Vec<Arc<Catalog>>, Vec<Unavailable>, Vec<String>) {
        let unavailable = self.start_servers(patience).await;
        let warnings = collect_warnings(self.open).iter().map(ToString::to_string).collect();
        (self.find_catalogs(), unavailable, warnings)
    }

    /// The catalogues of the visible servers that are known now, without waiting.
    pub(super) fn find_catalogs(self) -> Vec<Arc<Catalog>> {
        let all = self.open.servers();
        let visibility = Visibility::new(&self.open.view, &all);
        let is_there = |server: &Server| self.open.view.is_catalog_only() || self.is_listed(server);
        let mut servers = self.open.selected_servers();
        servers.retain(|server| is_there(server) && visibility.check_resources_and_prompts(server.name()).is_ok());
        servers.iter().filter_map(Server::catalog).collect()
    }

    /// Whether the view lists a server now: it is ready or idle, or the view keeps what was last known of it.
    pub(super) fn is_listed(self, server: &Server) -> bool {
        server.is_ready() || is_listed_while_idle(server) || self.is_kept(server)
    }

    /// Whether the view lists what was last known of a server that is not ready.
    fn is_kept(self, server: &Server) -> bool {
        self.open.view.lists_known() && server.phase().keeps_listing().is_listed() && server.catalog().is_some()
    }

    /// When the first server that is down is not listed any more, if the view lists such servers.
    pub(super) fn next_removal(self) -> Option<Instant> {
        if !self.open.view.lists_known() {
            return None;
        }
        let servers = self.open.selected_servers();
        let ends = servers
            .iter()
            .filter_map(|server| match server.phase().keeps_listing() {
                Kept::Until(end) if Instant::now() < end => Some(end),
                Kept::Until(_) | Kept::WhileItLasts | Kept::Not => None,
            });
        ends.min()
    }

    /// Estimates the tokens of each server's definitions, by server.
    pub(super) fn estimate_costs(self) -> Vec<ServerCost> {
        let mut costs: BTreeMap<ServerName, ServerCost> = BTreeMap::new();
        for listed in self.list_all_tools() {
            let server = listed.tool.server.clone();
            let cost = costs.entry(server.clone()).or_insert_with(|| ServerCost {
                server,
                tools: 0,
                tokens: 0,
            });
            cost.tools += 1;
            cost.tokens += listed.tokens();
        }
        costs.into_values().collect()
    }
}

/// Whether an idle server is listed with its known catalogue. Its first call starts it.
fn is_listed_while_idle(server: &Server) -> bool {
    matches!(server.phase(), Phase::Idle) && server.catalog().is_some() && server.listing().is_believed()
}
