//! Puts a [`Pegboard`](pegboard::Pegboard) behind one MCP endpoint, for clients of both eras on every transport.
//!
//! A message takes the path `serve` → `door` → `wire` → `protocol` → a [`Service`], and its response the same way back. The endpoints
//! of a board are services; a program can serve its own with the same wires.

/// The programs in the guide for Rust programs are compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/rust.md")]
struct RustDoctests;

/// The programs in the page for users of rmcp are compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/coming-from/rmcp.md")]
struct RmcpDoctests;

mod cryptography;
mod dashboard;
mod door;
mod endpoints;
mod protocol;
mod replicas;
mod serve;
mod sign_in;
mod wire;

pub use dashboard::{BrowserSession, BrowserSessions, NoSession};
pub use door::{AuthError, CallLimits, Caller, Owner, PrincipalQuota, QuotaPermit, Scope, Scopes, Token};
pub use endpoints::{BoardEndpoints, BoardPart, CachedToolset, GatewayHost, ToolsetCache, board_service};
pub use protocol::{
    Answer, CacheScope, Client, Description, Event, Exchange, Filter, LogLevel, Notification, Params, RawResult,
    Request, RequestId, RpcError, Sealer, Service, Version,
};
pub use replicas::{BadReplicaAddress, ReplicaCounts, Replicas};
pub use serve::{
    Gateway, GatewayBuilder, GatewayLimits, GatewayMetrics, Listeners, LocalClient, Monitor, ServeError, Tls, TlsError,
    TrafficCounts,
};
pub use sign_in::{NoSignInPage, OpenedLink, SignInLink, SignInLinks, SignInVisit};
pub use wire::{AccessLog, AccessRecord, AnswersCall, InMemory, Peer, serve_stdio};
