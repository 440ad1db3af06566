//! [`Request`]: an outgoing request to a server, before it gets an id.

use std::{borrow::Cow, sync::Arc};

use pegboard_protocol::method;
use serde_json::value::RawValue;

use super::{
    host::{CallOwner, Offers},
    json_rpc::Params,
};

/// A request to a server.
#[derive(Debug, Clone)]
pub(crate) struct Request<'a> {
    pub(crate) method: Cow<'static, str>,
    pub(crate) params: Params,
    /// The name or URI of the item that it is about, which the newest era repeats in an HTTP header.
    pub(crate) name: Option<&'a str>,
    /// Arguments that are repeated in HTTP headers, by header.
    pub(crate) mirrored: &'a [(String, String)],
    /// The caller's fields of `_meta`, as JSON without braces.
    pub(crate) meta: &'a str,
    /// What the caller's host offers, if it is not the host of the connection. The newest era declares it with every request.
    pub(super) offers: Option<Offers>,
    /// The client capabilities in place of those of a host, an object.
    pub(super) capabilities: Option<&'a RawValue>,
    /// Whether the server may report progress.
    pub(super) takes_progress: bool,
    /// The caller, if the server may ask for input meanwhile.
    pub(super) owner: Option<&'a Arc<CallOwner>>,
}

impl<'a> Request<'a> {
    pub(crate) fn new(method: impl Into<Cow<'static, str>>, params: Params) -> Self {
        let method = method.into();
        Self {
            takes_progress: method == method::TOOLS_CALL,
            method,
            params,
            name: None,
            mirrored: &[],
            meta: "",
            offers: None,
            capabilities: None,
            owner: None,
        }
    }

    /// Sets the name or URI of the item that the request is about.
    pub(crate) fn about(mut self, name: &'a str) -> Self {
        self.name = Some(name);
        self
    }
}
