//! [`Monitor`]: what a gateway counts, for those who watch it.

use std::sync::{Arc, OnceLock, Weak};

use crate::replicas::{ReplicaCounts, Replicas};

use super::{
    halt::Halt,
    site::Site,
    traffic::{Traffic, TrafficCounts},
};

/// Reads what a gateway counts. It can be handed to the gateway's own router, because it does not keep the gateway alive. Clones share
/// everything.
#[derive(Clone, Debug, Default)]
pub struct Monitor {
    pub(super) traffic: Arc<Traffic>,
    pub(super) halt: Halt,
    /// Set when the gateway is built.
    pub(super) site: Arc<OnceLock<Weak<Site>>>,
}

/// What a gateway has counted. The labels are fixed, whatever clients send.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GatewayMetrics {
    /// Its connections.
    pub connections: TrafficCounts,
    /// Its legacy sessions that are open.
    pub sessions: usize,
    /// The requests that are being handled. Streams on which a client only listens do not count.
    pub in_flight: usize,
    /// The most connections, sessions and requests in flight; `None` once the gateway has ended.
    pub limits: Option<GatewayLimits>,
    /// The responses so far: the label of their path, the class of their status (`2xx`), and how many.
    pub requests: Vec<(&'static str, &'static str, u64)>,
    /// The requests that were refused before they were handled, by reason.
    pub refused: Vec<(&'static str, u64)>,
    /// The connections that were closed with what was not sent yet, because their clients did not read.
    pub undelivered: u64,
    /// The records of the access log that were lost.
    pub access_log_lost: u64,
    /// What it has done together with other replicas; `None` if it has none.
    pub replicas: Option<ReplicaCounts>,
}

/// What a gateway may have open at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewayLimits {
    /// Connections.
    pub connections: usize,
    /// Legacy sessions.
    pub sessions: usize,
    /// Requests that are being handled.
    pub in_flight: usize,
}

impl Monitor {
    /// Reads all counters.
    pub fn read(&self) -> GatewayMetrics {
        let site = self.site.get().and_then(Weak::upgrade);
        GatewayMetrics {
            connections: self.traffic.counts(),
            sessions: site.as_ref().map_or(0, |site| site.http.open_sessions()),
            in_flight: site.as_ref().map_or(0, |site| site.in_flight()),
            limits: site.as_ref().map(|site| GatewayLimits {
                connections: site.max_connections,
                sessions: site.max_sessions,
                in_flight: site.max_in_flight,
            }),
            requests: self.traffic.requests(),
            refused: self.traffic.refusals(),
            undelivered: self.traffic.undelivered_count(),
            access_log_lost: site
                .as_ref()
                .and_then(|site| site.access_log.as_ref())
                .map_or(0, |log| log.lost()),
            replicas: site
                .as_ref()
                .and_then(|site| site.replicas.as_ref())
                .map(Replicas::counts),
        }
    }

    /// Completes when the requests in flight get no more time at a shutdown. A handler that ends by then can still answer.
    pub async fn halted(&self) {
        self.halt.wait().await;
    }

    /// Returns `true` once the gateway stops: it takes no new connections, and answers the requests in flight.
    pub fn is_draining(&self) -> bool {
        self.traffic.is_draining()
    }
}
