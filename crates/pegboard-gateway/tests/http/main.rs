//! The gateway over real sockets: both eras, sessions, resumption, the door and the limits.

mod client;
mod door;
mod legacy;
mod limits;
mod modern;
mod resumption;
mod service;
mod sse;
mod websocket;
