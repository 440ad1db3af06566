//! Sends read-only requests to one server of a view. They are retried once if the session is lost.

use std::future::Future;

use super::{routing::LOOKUP_TIMEOUT, toolset_handle::Toolset};
use crate::{
    call::{self, Visibility},
    deadline::Deadline,
    name::ServerName,
    outcome::{Failure, Kind},
    server::{Live, Server},
    session::Fault,
};

impl Toolset {
    /// The name of a server. A text that can be no name is the name of no server.
    pub(super) fn server_name(&self, name: &str) -> Result<ServerName, Failure> {
        ServerName::parse(name).map_err(|_| {
            let servers = self.servers();
            no_such_server(name, &servers, &Visibility::new(&self.view, &servers))
        })
    }

    pub(super) fn server(&self, name: &ServerName) -> Result<Server, Failure> {
        let servers = self.servers();
        let visibility = Visibility::new(&self.view, &servers);
        visibility.check_resources_and_prompts(name)?;
        if let Some(server) = servers.iter().find(|server| server.name() == name) {
            return Ok(server.clone());
        }
        Err(no_such_server(name.as_str(), &servers, &visibility))
    }

    /// Returns a ready session of a server.
    pub(super) async fn ready_server(&self, name: &ServerName) -> Result<(Server, Live), Failure> {
        self.check_open()?;
        self.check_selection()?;
        let server = self.server(name)?;
        let live = server.live(Deadline::within(LOOKUP_TIMEOUT)).await;
        let live = live.map_err(|outage| call::unavailable(name.as_str(), &outage))?;
        Ok((server, live))
    }

    /// Sends a read-only request to a server, and retries it once in a new session if the session is lost. `what` describes the request in
    /// errors.
    pub(super) async fn read_request<T, F>(
        &self,
        name: &ServerName,
        capability: &str,
        what: &str,
        ask: impl Fn(Live) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Fault>>,
    {
        let (server, live) = self.ready_server(name).await?;
        must_offer(&live, name, capability)?;
        // Completions are for the person who types; everything else is for the model.
        if capability != "completions" && !server.config().policy.trust {
            self.view.rules.taint.mark(name);
        }
        let generation = live.generation;
        let fault = match ask(live).await {
            Ok(answer) => return Ok(answer),
            Err(fault) => fault,
        };
        if fault.loses_session() {
            server.replace(generation);
            let again = server.live_after(generation, Deadline::within(LOOKUP_TIMEOUT)).await;
            if let Ok(live) = again {
                return ask(live).await.map_err(|fault| failed(&fault, &server, what));
            }
        }
        Err(failed(&fault, &server, what))
    }
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
fn failed(fault: &Fault, server: &Server, what: &str) -> Failure {
    call::failure_of(fault, what).masked(&server.masker().current())
}

/// Fails if the server does not declare the capability.
pub(super) fn must_offer(live: &Live, server: &ServerName, capability: &str) -> Result<(), Failure> {
    if live.session.offers(capability) {
        return Ok(());
    }
    let message = format!("server `{server}` does not offer {capability}");
    Err(Failure::new(Kind::Unavailable, message))
}
