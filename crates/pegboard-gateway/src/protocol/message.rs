//! The messages of clients. They are parsed as an envelope with raw params, so that a payload is never parsed into a tree.

use super::params::Params;

/// A request of a client.
#[derive(Debug)]
#[non_exhaustive]
pub struct Request {
    /// The id as the client wrote it: JSON text of a string or an integer.
    pub id: Box<str>,
    /// The method.
    pub method: Box<str>,
    /// The params.
    pub params: Params,
}

/// A notification of a client.
#[derive(Debug)]
#[non_exhaustive]
pub struct Notification {
    /// The method.
    pub method: Box<str>,
    /// The params.
    pub params: Params,
}
