//! Whole boards over the network: streamable HTTP in both eras, HTTP+SSE and WebSocket, healthy and broken; sign-in, credentials and many
//! principals; the fault matrix and the simulation of an unreliable network.
//!
//! Everything runs on loopback, which is never reached through a proxy, whatever the environment says.

#![expect(clippy::unwrap_used, reason = "fixtures panic like the tests that use them")]
#![expect(
    clippy::field_reassign_with_default,
    reason = "a test names what it changes, line by line"
)]

#[path = "../support/mod.rs"]
mod support;

mod fixtures;
mod raw;
#[cfg_attr(
    not(target_os = "linux"),
    expect(dead_code, reason = "the fault matrix uses the rest")
)]
mod tls_front;

mod bounds;
mod cancel;
mod credentials;
mod eras;
mod every_wire;
mod headers;
mod http_2;
mod malformed;
#[cfg(target_os = "linux")]
mod matrix;
mod outages;
mod principals;
mod redirects;
mod refusals;
mod secrets;
mod sessions;
#[cfg(feature = "oauth")]
mod sign_in;
mod simulation;
mod sse;
mod streams;
mod tls;
mod tls_identity;
mod tls_settings;
mod websocket;
mod websocket_frames;
