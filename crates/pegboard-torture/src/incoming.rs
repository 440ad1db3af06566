//! [`Incoming`]: what arrives from the server under test, and the bounds on it.

use serde_json::Value;

/// How many messages may wait to be read. A server that sends more waits.
pub(super) const QUEUE: usize = 4096;
/// The longest message that is read.
pub(super) const MAX_MESSAGE: usize = 32 << 20;

/// What arrived from the server.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A JSON value.
    Message(Value),
    /// A line on stdout, or a body, that is not JSON.
    Noise(String),
    /// An HTTP status without a JSON-RPC message.
    Status(u16, String),
    /// The connection ended; the text says how.
    Closed(String),
}

/// A text as what arrived: JSON or not.
pub(super) fn read(text: &str) -> Incoming {
    match serde_json::from_str(text) {
        Ok(value) => Incoming::Message(value),
        Err(_) => Incoming::Noise(text.chars().take(200).collect()),
    }
}
