//! [`Traffic`]: counts connections and requests, so that operators see what clients do, and a program can end when none needs it any more.
//!
//! The labels are fixed: no path, name or header of a client becomes one.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use http::StatusCode;
use pegboard_base::sync::Mutex;

/// The connections of a gateway at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrafficCounts {
    /// How many are open.
    pub open: usize,
    /// How many were accepted so far.
    pub accepted: u64,
    /// The clients that are connected: processes of this user at the local socket, each once, and connections over the network.
    pub clients: usize,
}

/// What a request asked for, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathLabel {
    Mcp,
    Sse,
    Live,
    Ready,
    Metrics,
    Health,
    Api,
    OpenApi,
    SignIn,
    Other,
}

impl PathLabel {
    const ALL: [(Self, &'static str); 10] = [
        (Self::Mcp, "mcp"),
        (Self::Sse, "sse"),
        (Self::Live, "livez"),
        (Self::Ready, "readyz"),
        (Self::Metrics, "metrics"),
        (Self::Health, "health"),
        (Self::Api, "api"),
        (Self::OpenApi, "openapi"),
        (Self::SignIn, "signin"),
        (Self::Other, "other"),
    ];

    pub(super) fn from_path(path: &str) -> Self {
        let is_below = |prefix: &str| {
            let rest = path.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match path {
            _ if is_below("/mcp") => Self::Mcp,
            _ if is_below("/api") => Self::Api,
            "/livez" => Self::Live,
            "/readyz" => Self::Ready,
            "/metrics" => Self::Metrics,
            "/health" => Self::Health,
            "/openapi.json" => Self::OpenApi,
            _ if is_below("/signin") && !path.ends_with("/sse") && !path.ends_with("/messages") => Self::SignIn,
            _ if path.ends_with("/sse") || path.ends_with("/messages") => Self::Sse,
            _ => Self::Other,
        }
    }
}

/// The classes of status codes.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// The head of a request was too long.
pub(super) const TOO_LONG: &str = "too_long";
/// Too many requests were in flight.
pub(super) const BUSY: &str = "busy";
/// The token was for another view.
pub(super) const VIEW: &str = "view";

/// Why requests are refused before they are handled. The first ones are those of [`Rejection`](crate::door::Rejection).
const REASONS: [&str; 13] = [
    "host",
    "origin",
    "header",
    "no_token",
    "program",
    "token",
    "oauth_token",
    "oauth_expired",
    "oauth_scope",
    "oauth_unavailable",
    TOO_LONG,
    BUSY,
    VIEW,
];

/// Counts connections and requests.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    open: AtomicUsize,
    accepted: AtomicU64,
    requests: [[AtomicU64; CLASSES.len()]; PathLabel::ALL.len()],
    refused: [AtomicU64; REASONS.len()],
    undelivered: AtomicU64,
    is_draining: AtomicBool,
    /// The processes at the local socket, with the number of their connections. The connections are bounded.
    processes: Mutex<BTreeMap<u32, usize>>,
}

impl Traffic {
    /// Counts a connection that is open until the returned value is dropped. `process` is the process at the other end of a local socket.
    pub(super) fn count_connection(self: &Arc<Self>, process: Option<u32>) -> OpenConnection {
        self.accepted.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        if let Some(process) = process {
            *self.processes.lock().entry(process).or_default() += 1;
        }
        OpenConnection {
            traffic: self.clone(),
            process,
        }
    }

    pub(super) fn counts(&self) -> TrafficCounts {
        let open = self.open.load(Ordering::Relaxed);
        let processes = self.processes.lock();
        let local: usize = processes.values().sum();
        TrafficCounts {
            open,
            accepted: self.accepted.load(Ordering::Relaxed),
            clients: processes.len() + open.saturating_sub(local),
        }
    }

    /// Counts a response.
    pub(super) fn count_response(&self, path: PathLabel, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).clamp(1, CLASSES.len()) - 1;
        self.requests[path as usize][class].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that was refused for one of [`REASONS`].
    pub(super) fn count_rejection(&self, reason: &'static str) {
        if let Some(at) = REASONS.iter().position(|known| *known == reason) {
            self.refused[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a connection that was closed because its client did not read what was sent.
    pub(super) fn count_undelivered(&self) {
        self.undelivered.fetch_add(1, Ordering::Relaxed);
    }

    /// How many connections were closed because their clients did not read.
    pub(super) fn undelivered_count(&self) -> u64 {
        self.undelivered.load(Ordering::Relaxed)
    }

    /// The responses so far, by path and class of status.
    pub(super) fn requests(&self) -> Vec<(&'static str, &'static str, u64)> {
        let mut counts = Vec::with_capacity(PathLabel::ALL.len() * CLASSES.len());
        for ((_, path), classes) in PathLabel::ALL.iter().zip(&self.requests) {
            for (class, count) in CLASSES.iter().zip(classes) {
                counts.push((*path, *class, count.load(Ordering::Relaxed)));
            }
        }
        counts
    }

    /// The refused requests so far, by reason.
    pub(super) fn refusals(&self) -> Vec<(&'static str, u64)> {
        let counts = REASONS.iter().zip(&self.refused);
        counts
            .map(|(reason, count)| (*reason, count.load(Ordering::Relaxed)))
            .collect()
    }

    /// Notes that the gateway stops.
    pub(super) fn set_draining(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }
}

/// A connection that counts as open.
#[derive(Debug)]
pub(super) struct OpenConnection {
    traffic: Arc<Traffic>,
    process: Option<u32>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.traffic.open.fetch_sub(1, Ordering::Relaxed);
        let Some(process) = self.process else { return };
        let mut processes = self.traffic.processes.lock();
        if let Some(connections) = processes.get_mut(&process) {
            *connections -= 1;
            if *connections == 0 {
                processes.remove(&process);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_counted_under_a_few_labels() {
        for (path, label) in [
            ("/mcp", "mcp"),
            ("/mcp/time", "mcp"),
            ("/mcpx", "other"),
            ("/sse", "sse"),
            ("/time/messages", "sse"),
            ("/livez", "livez"),
            ("/api/v1/mcp/tools", "api"),
            ("/openapi.json", "openapi"),
            ("/signin", "signin"),
            ("/signin/server/x", "signin"),
            ("/signin/sse", "sse"),
            ("/", "other"),
            ("", "other"),
            ("/metrics/x", "other"),
        ] {
            let found = PathLabel::from_path(path);
            let (known, name) = PathLabel::ALL[found as usize];
            assert_eq!((known, name), (found, label), "{path}");
        }
    }

    #[test]
    fn a_process_with_several_connections_is_one_client() {
        let traffic = Arc::new(Traffic::default());
        let first = traffic.count_connection(Some(7));
        let others = [Some(7), Some(8), None, None].map(|process| traffic.count_connection(process));
        assert_eq!((traffic.counts().open, traffic.counts().clients), (5, 4));
        drop(others);
        assert_eq!((traffic.counts().open, traffic.counts().clients), (1, 1));
        drop(first);
        assert_eq!((traffic.counts().open, traffic.counts().clients), (0, 0));
        assert_eq!(traffic.counts().accepted, 5);
    }

    #[test]
    fn any_status_has_a_class() {
        let traffic = Traffic::default();
        for code in [100, 200, 204, 301, 404, 503, 600, 999] {
            traffic.count_response(PathLabel::Mcp, StatusCode::from_u16(code).unwrap());
        }
        let counted: u64 = traffic.requests().iter().map(|(_, _, count)| count).sum();
        assert_eq!(counted, 8);
    }

    #[test]
    fn every_reason_of_a_rejection_is_counted() {
        use crate::door::{Rejection, TokenFault};
        use Rejection::{CrossSite, Doubled, Host, NoHost, NoToken, NotText, Origin, Token};
        let all = [NoHost, Host, Origin, CrossSite, Doubled, NotText, NoToken, Token];
        let faults = TokenFault::ALL.map(Rejection::AccessToken);
        let traffic = Traffic::default();
        for rejection in all.iter().chain(&faults) {
            traffic.count_rejection(rejection.label());
        }
        let counted: u64 = traffic.refusals().iter().map(|(_, count)| count).sum();
        assert_eq!(counted, (all.len() + faults.len()) as u64);
    }
}
