//! Serves endpoints over HTTP: routes, listeners, limits on connections, and shutdown.
//!
//! A connection's requests go through the [`Door`](crate::door::Door), then to the wire of their path.

mod activity;
mod board_gateway;
mod browser_admission;
mod certificate;
mod connection;
mod cors;
mod direct;
mod expiry;
mod gateway;
mod halt;
mod listener;
mod listeners;
mod monitor;
mod protected_resource;
mod request_head;
mod request_id;
mod rewound_stream;
mod routes;
mod site;
mod tls;
mod traffic;
mod watched_stream;

pub use gateway::{Gateway, GatewayBuilder, ServeError};
pub use listeners::{Listeners, LocalClient};
pub use monitor::{GatewayLimits, GatewayMetrics, Monitor};
pub use tls::{Tls, TlsError};
pub use traffic::TrafficCounts;
