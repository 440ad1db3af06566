//! Whole boards over the network: streamable HTTP in both eras, HTTP+SSE and WebSocket, healthy and broken.
//!
//! Everything runs on loopback, which is never reached through a proxy, whatever the environment says.

#![expect(clippy::unwrap_used, reason = "fixtures panic like the tests that use them")]

#[path = "../support/mod.rs"]
mod support;

mod fixtures;
mod raw;

mod bounds;
mod cancel;
mod eras;
mod headers;
mod http_2;
mod malformed;
mod outages;
mod redirects;
mod refusals;
mod secrets;
mod sessions;
mod sse;
mod streams;
mod tls;
mod tls_identity;
mod tls_settings;
mod websocket;
mod websocket_frames;
