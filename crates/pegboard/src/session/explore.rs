//! A session without a server, for those who explore what is done with sessions.

use super::*;
use crate::transport::{Boxed, EndReason, Inbox, Outgoing, Wire};

/// A wire whose other end never says anything.
struct Silence(Arc<pending_requests::PendingRequests>);

impl Wire for Silence {
    fn send(&self, _message: Outgoing) {}

    fn close(&self) -> Boxed<'_, ()> {
        self.0.ended(WireEnd::new(EndReason::Closed));
        Box::pin(std::future::ready(()))
    }
}

impl Session {
    /// A session with a server that never says anything. It needs a runtime around it, but none that is driven.
    pub(crate) fn silent() -> Self {
        let (pending, requests) = pending_requests::PendingRequests::new();
        let host = no_host();
        let answering = host::Answering {
            requests,
            responder: host.clone(),
        };
        let wire = Arc::new(Silence(pending.clone()));
        Self {
            facts: Facts {
                era: Era::Legacy,
                version: "2025-11-25".into(),
                info: None,
                capabilities: Map::new(),
                instructions: None,
            },
            connection: RpcConnection::new(pending, wire, answering, &tokio_util::task::TaskTracker::new()),
            server: host.server.clone(),
            limits: Limits::default(),
            has_offered_roots: false,
            host,
            kept: reconcile::Reconciled::default(),
        }
    }

    /// The server goes.
    pub(crate) fn end(&self) {
        self.connection.pending().ended(WireEnd::new(EndReason::Eof));
    }
}

/// Offers nothing to the server.
pub(super) fn no_host() -> Arc<host::Responder> {
    let name = ServerName::parse("one").unwrap();
    let desired_state = DesiredState::new(&[]);
    Arc::new(host::Responder::new(
        name,
        Arc::new(NoHost),
        desired_state,
        ServerMasker::default(),
    ))
}
