//! The gateway over real sockets: both eras, sessions, resumption, the door and the limits.

mod access_rules;
mod access_tokens;
mod callers;
mod client;
mod direct;
mod door;
mod in_a_program;
mod introspection;
mod issuer;
mod legacy;
mod limits;
#[cfg(unix)]
mod local;
mod modern;
mod removal;
mod resumption;
mod revocation;
mod scopes;
mod service;
mod shutdown;
mod sign_in_links;
mod signer;
mod sse;
mod starting;
mod tls;
mod token_limits;
mod websocket;
