//! [`BoardEndpoints`]: the endpoints of a board by path.

use std::{collections::HashMap, sync::Arc};

use pegboard::{Pegboard, Principal, ServerName, board::GatewaySettings};
use pegboard_base::sync::RwLock;

use super::{board::BoardEndpoint, options::BoardOptions, scope::EndpointTarget, server::ServerEndpoint};
use crate::{
    door::Caller,
    protocol::{Endpoint, Limits, Sealer, Service},
    sign_in::SignInLinks,
    wire::{Endpoints, NoEndpoint, PathTarget},
};

/// The endpoints of a board: `/mcp`, `/mcp/view/{name}` for each view of its config, and `/mcp/{server}` for each server. They follow the
/// board when its config changes.
#[derive(Debug)]
pub struct BoardEndpoints {
    board: Pegboard,
    sealer: Arc<Sealer>,
    links: SignInLinks,
    options: BoardOptions,
    known: RwLock<KnownEndpoints>,
}

/// The endpoints that were used so far.
#[derive(Debug)]
struct KnownEndpoints {
    /// The settings that they were checked with.
    settings: Arc<GatewaySettings>,
    board: Arc<Endpoint>,
    views: HashMap<String, Arc<Endpoint>>,
    servers: HashMap<String, Arc<Endpoint>>,
    /// Those of servers for clients that have asked for approval themselves.
    approved: HashMap<String, Arc<Endpoint>>,
}

impl BoardEndpoints {
    /// Creates the endpoints of a board, which should have [`GatewayHost`](crate::GatewayHost) as its host.
    pub fn new(board: Pegboard, sealer: impl Into<Arc<Sealer>>) -> Self {
        let (sealer, links): (Arc<Sealer>, _) = (sealer.into(), SignInLinks::default());
        let options = BoardOptions::default();
        let whole = BoardEndpoint::new(board.clone(), EndpointTarget::Board(options.clone()), links.clone());
        let whole = endpoint("/mcp", whole, &sealer);
        let known = RwLock::new(KnownEndpoints {
            settings: board.gateway_settings(),
            board: whole,
            views: HashMap::new(),
            servers: HashMap::new(),
            approved: HashMap::new(),
        });
        Self {
            board,
            sealer,
            links,
            options,
            known,
        }
    }

    /// The links that clients get where a person must sign in.
    pub(crate) fn sign_in_links(&self) -> SignInLinks {
        self.links.clone()
    }

    /// What the program sets for the clients of the board.
    pub(crate) fn options(&self) -> BoardOptions {
        self.options.clone()
    }

    fn find(&self, target: PathTarget<'_>) -> Option<Arc<Endpoint>> {
        {
            let known = self.known.read();
            if Arc::ptr_eq(&known.settings, &self.board.gateway_settings()) {
                let found = match target {
                    PathTarget::Board => Some(&known.board),
                    PathTarget::View(name) => known.views.get(name),
                    // A server can be removed while the settings stay.
                    PathTarget::Server(name) => known.servers.get(name).filter(|_| self.board.has_server(name)),
                    PathTarget::Approved(name) => known.approved.get(name).filter(|_| self.board.has_server(name)),
                };
                if let Some(found) = found {
                    return Some(found.clone());
                }
            }
        }
        self.create(target)
    }

    /// Creates an endpoint, and drops those of views and servers that are gone.
    fn create(&self, target: PathTarget<'_>) -> Option<Arc<Endpoint>> {
        let settings = self.board.gateway_settings();
        let mut known = self.known.write();
        let known = &mut *known;
        let views = known.views.extract_if(|name, _| !settings.views.contains_key(name));
        let servers = known.servers.extract_if(|name, _| !self.board.has_server(name));
        let approved = known.approved.extract_if(|name, _| !self.board.has_server(name));
        for (_, endpoint) in views.chain(servers).chain(approved) {
            endpoint.stop();
        }
        known.settings = settings.clone();
        match target {
            PathTarget::Board => Some(known.board.clone()),
            PathTarget::View(name) if settings.views.contains_key(name) => {
                let create = || {
                    let service = BoardEndpoint::new(
                        self.board.clone(),
                        EndpointTarget::View(name.to_owned()),
                        self.links.clone(),
                    );
                    endpoint(&format!("/mcp/view/{name}"), service, &self.sealer)
                };
                Some(known.views.entry(name.to_owned()).or_insert_with(create).clone())
            }
            PathTarget::Server(name) if self.board.has_server(name) => {
                let server = ServerName::parse(name).ok()?;
                let create = || {
                    let service = ServerEndpoint::new(self.board.clone(), server, self.links.clone());
                    endpoint(&format!("/mcp/{name}"), service, &self.sealer)
                };
                Some(known.servers.entry(name.to_owned()).or_insert_with(create).clone())
            }
            PathTarget::Approved(name) if self.board.has_server(name) => {
                let server = ServerName::parse(name).ok()?;
                let create = || {
                    let service = ServerEndpoint::new_approved(self.board.clone(), server);
                    endpoint(&format!("/approved/mcp/{name}"), service, &self.sealer)
                };
                Some(known.approved.entry(name.to_owned()).or_insert_with(create).clone())
            }
            PathTarget::View(_) | PathTarget::Server(_) | PathTarget::Approved(_) => None,
        }
    }

    fn each(&self, act: impl Fn(&Endpoint)) {
        let known = self.known.read();
        let servers = known.servers.values().chain(known.approved.values());
        let others = known.views.values().chain(servers);
        let all: Vec<_> = others.chain([&known.board]).cloned().collect();
        drop(known);
        all.iter().for_each(|endpoint| act(endpoint));
    }

    /// The names of the board's servers.
    fn servers(&self) -> Vec<String> {
        let names = self.board.server_names();
        names.iter().map(ToString::to_string).collect()
    }
}

fn endpoint(path: &str, service: impl Service, sealer: &Arc<Sealer>) -> Arc<Endpoint> {
    Endpoint::new(path, Arc::new(service), sealer.clone(), Limits::default())
}

impl Endpoints for BoardEndpoints {
    fn endpoint(&self, target: PathTarget<'_>, _: &Caller) -> Result<Arc<Endpoint>, NoEndpoint> {
        if self.options.has_view() && !matches!(target, PathTarget::Board) {
            // It would show more than the program shows the caller.
            return Err(NoEndpoint { known: Vec::new() });
        }
        self.find(target).ok_or_else(|| NoEndpoint {
            known: match target {
                PathTarget::View(_) => self.board.gateway_settings().views.keys().cloned().collect(),
                PathTarget::Board | PathTarget::Server(_) | PathTarget::Approved(_) => self.servers(),
            },
        })
    }

    fn end_calls_of(&self, principal: Option<&Principal>) {
        self.each(|endpoint| endpoint.end_calls_of(principal));
    }

    fn stop(&self) {
        self.each(|endpoint| endpoint.stop());
    }

    fn halt(&self) {
        self.each(|endpoint| endpoint.halt());
    }

    fn is_short_of_buffers(&self) -> bool {
        self.board.is_short_of_buffers()
    }
}
