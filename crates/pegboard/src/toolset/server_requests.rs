//! [`ServerRequests`]: sends read-only requests to one server of a view. They are retried once if the session is lost.

use std::future::Future;

use serde_json::{Map, Value};

use super::{open_view::OpenView, resolver::LOOKUP_TIMEOUT};
use crate::{
    call::{self, InFlightSlot, Visibility},
    server::{Live, Permit, Server},
};
use pegboard_base::{deadline::Deadline, name::ServerName};
use pegboard_client::session::{Fault, OnBehalf};
use pegboard_tools::outcome::{Failure, Kind};

/// Sends requests that are no tool calls to the servers of a view.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerRequests<'a> {
    open: &'a OpenView,
}

impl<'a> ServerRequests<'a> {
    pub(super) fn new(open: &'a OpenView) -> Self {
        Self { open }
    }

    /// The name of a server. A text that can be no name is the name of no server.
    pub(super) fn parse_name(self, name: &str) -> Result<ServerName, Failure> {
        ServerName::parse(name).map_err(|_| {
            let servers = self.open.servers();
            no_such_server(name, &servers, &Visibility::new(&self.open.view, &servers))
        })
    }

    pub(super) fn find_server(self, name: &ServerName) -> Result<Server, Failure> {
        let servers = self.open.servers();
        let visibility = Visibility::new(&self.open.view, &servers);
        visibility.check_resources_and_prompts(name)?;
        if let Some(server) = servers.iter().find(|server| server.name() == name) {
            return Ok(server.clone());
        }
        Err(no_such_server(name.as_str(), &servers, &visibility))
    }

    /// Returns a ready session of a server.
    pub(super) async fn connect(self, name: &ServerName) -> Result<(Server, Live), Failure> {
        let server = self.find_usable(name)?;
        let live = ensure_live(&server).await?;
        Ok((server, live))
    }

    fn find_usable(self, name: &ServerName) -> Result<Server, Failure> {
        self.open.check_open()?;
        self.open.check_selection()?;
        self.find_server(name)
    }

    /// Waits until the server may be asked for something that is no tool call.
    pub(super) async fn enter_queue<'s>(self, server: &'s Server) -> Result<Permit<'s>, Failure> {
        let deadline = Deadline::within(LOOKUP_TIMEOUT);
        let queued = server.admission().permit_read(&self.open.view.owner, deadline);
        queued.await.map_err(|refused| call::queue_failure(&refused))
    }

    /// Begins a request that is no tool call, within the limits of the view.
    pub(super) async fn begin(self) -> Result<ViewRequest, Failure> {
        Ok(ViewRequest {
            slot: self.open.view.begin_request().await?,
            ..ViewRequest::within_call(call::generate_id().1)
        })
    }

    /// Sends a read-only request to a server, and retries it once in a new session if the session is lost. `what` describes the request in
    /// errors.
    pub(super) async fn read<T, F>(
        self,
        name: &ServerName,
        capability: &str,
        what: &str,
        ask: impl Fn(Live) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let server = self.find_usable(name)?;
        let _permit = self.enter_queue(&server).await?;
        let live = ensure_live(&server).await?;
        must_offer(&live, name, capability)?;
        // Completions are for the person who types; everything else is for the model.
        if capability != "completions" && !server.config().policy.trust {
            self.open.view.rules.taint.mark(name);
        }
        let generation = live.generation;
        let fault = match ask(live).await {
            Ok(answer) => return Ok(answer),
            Err(fault) => fault,
        };
        if fault.loses_session() {
            server.connections().replace(generation);
            let again = server
                .ensure_live_after(generation, Deadline::within(LOOKUP_TIMEOUT))
                .await;
            if let Ok(live) = again {
                return ask(live)
                    .await
                    .map_err(|fault| server_request_failure(&fault, &server, what));
            }
        }
        Err(server_request_failure(&fault, &server, what))
    }
}

/// A request that is no tool call, in flight until this is dropped.
pub(super) struct ViewRequest {
    /// The id that callbacks see.
    id: String,
    meta: Map<String, Value>,
    #[expect(dead_code, reason = "it is held, not read")]
    slot: Option<InFlightSlot>,
}

impl ViewRequest {
    /// A request that is part of a call, whose limits cover it.
    pub(super) fn within_call(id: String) -> Self {
        Self {
            id,
            meta: Map::new(),
            slot: None,
        }
    }

    /// The same request under the id that the caller gave it.
    pub(super) fn with_id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.id);
        self
    }

    /// For whom the request is sent.
    pub(super) fn on_behalf<'a>(&'a self, open: &'a OpenView) -> OnBehalf<'a> {
        open.view.on_behalf_of(&self.id, &self.meta)
    }
}

async fn ensure_live(server: &Server) -> Result<Live, Failure> {
    let live = server.ensure_live(Deadline::within(LOOKUP_TIMEOUT)).await;
    live.map_err(|outage| call::outage_failure(server.name().as_str(), &outage))
}

/// Creates the failure for a name that no server of the view has.
fn no_such_server(name: &str, servers: &[Server], visibility: &Visibility<'_>) -> Failure {
    let seen = servers
        .iter()
        .map(Server::name)
        .filter(|name| visibility.check_resources_and_prompts(name).is_ok());
    let seen = call::list_names(seen.map(ServerName::as_str));
    let message = format!(
        "there is no server `{}`. Available servers: {seen}.",
        name.escape_debug()
    );
    Failure::new(Kind::Unavailable, message)
}

/// Creates the failure of a request. It is masked, because the requested name may contain a secret.
fn server_request_failure(fault: &Fault, server: &Server, what: &str) -> Failure {
    call::request_failure(server, fault, what)
}

/// Fails if the server does not declare the capability.
pub(super) fn must_offer(live: &Live, server: &ServerName, capability: &str) -> Result<(), Failure> {
    if live.session.peer.offers(capability) {
        return Ok(());
    }
    let message = format!("server `{server}` does not offer {capability}");
    Err(Failure::new(Kind::Unavailable, message))
}
