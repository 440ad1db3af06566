//! A session without a server, for tests that explore thread orders.

use pegboard_base::BoxFuture;
use std::sync::Arc;

use serde_json::Map;

use super::{
    applied_state::AppliedState,
    connection::RpcConnection,
    desired_state::DesiredState,
    dispatch::Dispatcher,
    host::{NoHost, Responder, ResponderTask},
    mcp_session::Session,
    peer_info::PeerInfo,
};
use crate::session::Era;
use crate::transport::{EndReason, Inbox, Outgoing, Wire, WireEnd};
use pegboard_base::name::ServerName;
use pegboard_config::Limits;
use pegboard_mask::ServerMasker;

/// A wire whose peer never sends anything.
struct Silence(Arc<Dispatcher>);

impl Wire for Silence {
    fn send(&self, _message: Outgoing) {}

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.report_end(WireEnd::new(EndReason::Closed));
        Box::pin(std::future::ready(()))
    }
}

impl Session {
    /// Creates a session with a server that never sends anything. It needs a runtime context, but none that is driven.
    #[doc(hidden)]
    pub fn silent() -> Self {
        let (dispatcher, requests) = Dispatcher::for_tests();
        let responder = no_host();
        let responding = ResponderTask {
            requests,
            responder: responder.clone(),
        };
        let wire = Arc::new(Silence(dispatcher.clone()));
        Self {
            peer: PeerInfo {
                era: Era::Legacy,
                version: "2025-11-25".into(),
                info: None,
                info_fields: Default::default(),
                capabilities: Map::new(),
                instructions: None,
            },
            connection: RpcConnection::new(dispatcher, wire, responding, &tokio_util::task::TaskTracker::new()),
            server: responder.server.clone(),
            limits: Limits::default(),
            has_offered_roots: false,
            is_for_questions: false,
            responder,
            applied: AppliedState::default(),
        }
    }

    /// Ends the connection, as if the server had closed it.
    #[doc(hidden)]
    pub fn end(&self) {
        self.connection.dispatcher().report_end(WireEnd::new(EndReason::Eof));
    }
}

/// A responder that offers no capabilities.
pub(super) fn no_host() -> Arc<Responder> {
    let name = ServerName::parse("one").expect("a valid name");
    let desired_state = DesiredState::new(&[]);
    Arc::new(Responder::new(
        name,
        Arc::new(NoHost),
        desired_state,
        ServerMasker::default(),
    ))
}
