//! [`Session`]: an initialised session with one server, its capabilities, health probe and end.

use std::{sync::Arc, time::Duration};

use arc_swap::Guard;
use pegboard_protocol::method;
use tokio::time::Instant;

use super::{
    applied_state::AppliedState, connection::RpcConnection, fault::Fault, host::Responder, json_rpc::Params,
    patience::Patience, peer_info::PeerInfo, request::Request,
};
use crate::session::Era;
use crate::transport::{Inbox as _, WireEnd};
use pegboard_base::{deadline::Deadline, name::ServerName};
use pegboard_config::Limits;
use pegboard_mask::{Masker, ServerMasker};

/// An initialised session with a server.
#[derive(Debug)]
pub struct Session {
    /// What the server declared about itself in the handshake.
    pub peer: PeerInfo,
    pub(super) connection: RpcConnection,
    pub(super) server: ServerName,
    pub(super) limits: Limits,
    pub(super) responder: Arc<Responder>,
    /// Whether the handshake declared the `roots` capability.
    pub(super) has_offered_roots: bool,
    /// Whether another session lists the server and subscribes to its resources.
    pub(super) is_for_questions: bool,
    /// The part of the desired state that this session has applied.
    pub(super) applied: AppliedState,
}

impl Session {
    /// Whether servers may not be read at the moment, because large messages wait for room.
    pub fn is_held_up(&self) -> bool {
        self.connection.dispatcher().is_held_up()
    }

    /// Whether the session is for calls only, because another one lists the server.
    pub fn is_for_questions(&self) -> bool {
        self.is_for_questions
    }

    /// Waits until the server notifies us that its tools, resources or prompts have changed.
    pub async fn list_changed(&self) {
        self.connection.dispatcher().list_changed.notified().await;
    }

    /// Returns `true` if the server declares list change notifications, and has not rejected a request for them.
    pub fn sends_list_changed(&self) -> bool {
        self.applied.may_listen() && self.peer.declares_any_list_changed()
    }

    /// Probes the server within `limit`: with `ping`, or with `server/discover` in the era without `ping`. If that fails, the probe lists the
    /// tools instead; if it has no response after half of the time, the probe lists them too, and either result suffices. A server without tools
    /// only has to respond, even with an error.
    pub async fn probe(&self, limit: Duration) -> Result<(), Fault> {
        let deadline = Deadline::within(limit);
        let ping = self.probe_with(
            match self.peer.era {
                Era::Legacy => method::PING,
                Era::Modern => method::SERVER_DISCOVER,
            },
            deadline,
        );
        if !self.peer.offers("tools") {
            return match ping.await {
                Err(fault) if fault.is_response() => Ok(()),
                result => result,
            };
        }
        tokio::pin!(ping);
        let first = tokio::select! {
            biased;
            result = &mut ping => Some(result),
            () = tokio::time::sleep(limit / 2) => None,
        };
        match first {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) => self.probe_with(method::TOOLS_LIST, deadline).await,
            None => {
                let listing = self.probe_with(method::TOOLS_LIST, deadline);
                tokio::pin!(listing);
                let either = futures_util::future::select_ok([ping, listing]).await;
                either.map(|((), _)| ())
            }
        }
    }

    /// Sends a request without params, and ignores its result.
    async fn probe_with(&self, method: &'static str, deadline: Deadline) -> Result<(), Fault> {
        let request = Request::new(method, Params::default());
        let result = self.connection.request(request, Patience::until(deadline)).await;
        result.map(|_| ()).map_err(|fault| fault.into_masked(self.masker()))
    }

    /// The masker for this server's messages.
    pub fn masker(&self) -> &ServerMasker {
        self.connection.dispatcher().masker()
    }

    /// Masks on a blocking thread, for at most as long as a call may take.
    pub(super) async fn mask_blocking<T: Send + 'static>(
        &self,
        mask: impl FnOnce(&Masker) -> T + Send + 'static,
    ) -> Result<T, Fault> {
        mask_blocking(self.masker(), self.patience().total, mask).await
    }

    /// The timeouts of a call, by the server's config.
    pub(super) fn patience(&self) -> Patience {
        Patience::for_call(&self.limits)
    }

    /// Returns the time since the last message of the server.
    pub fn idle_for(&self) -> Duration {
        self.connection.dispatcher().liveness().idle_for()
    }

    /// Notes that a request failed on its way to the server or back.
    pub fn note_failure(&self) {
        self.connection.dispatcher().liveness().note_failure();
    }

    /// Whether a request has failed on its way since the last message of the server, so that the server may be gone.
    pub fn is_in_doubt(&self) -> bool {
        self.connection.dispatcher().liveness().is_in_doubt()
    }

    /// Waits for the end of the session.
    pub async fn ended(&self) -> WireEnd {
        self.connection.dispatcher().pending_requests().until_ended().await
    }

    /// Accepts no more requests, and fails those in flight with `reason`. Those that were not sent can be retried in the next session.
    pub fn abort(&self, reason: WireEnd) {
        self.connection.dispatcher().report_end(reason);
    }

    /// Closes the session, and waits until its tasks and processes have ended.
    pub async fn close(&self) {
        self.connection.close().await;
    }

    /// The sandbox of the server's process, if it has one.
    pub fn sandbox(&self) -> Option<crate::shim::SandboxStatus> {
        self.connection.wire().sandbox()
    }

    /// The id of the server's process, if the transport started one.
    pub fn pid(&self) -> Option<u32> {
        self.connection.wire().pid()
    }
}

/// Masks on a blocking thread: resources, prompts and catalogs may be megabytes long. Content that is not masked in time is withheld.
pub(super) async fn mask_blocking<T: Send + 'static>(
    masker: &ServerMasker,
    deadline: Deadline,
    mask: impl FnOnce(&Masker) -> T + Send + 'static,
) -> Result<T, Fault> {
    let masker = Guard::into_inner(masker.current());
    let started = Instant::now();
    match deadline.run(tokio::task::spawn_blocking(move || mask(&masker))).await {
        Ok(Ok(masked)) => Ok(masked),
        Ok(Err(_)) => Err(Fault::unreadable("hiding the secrets in it failed, so it is withheld")),
        Err(_) => Err(Fault::timed_out(started)),
    }
}
