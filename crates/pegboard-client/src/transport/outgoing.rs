//! An outgoing message, and its envelope: the parts of it that HTTP repeats in headers.

use std::{borrow::Cow, sync::Arc};

use tokio::sync::oneshot;

use super::{delivery::Delivery, request_failure::WireFailure};

/// One message to be sent.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// The message without a final newline.
    pub(crate) body: Vec<u8>,
    /// The JSON-RPC id, if it is a request.
    pub(crate) id: Option<u64>,
    /// Its delivery stage.
    pub(crate) delivery: Arc<Delivery>,
    /// The parts that HTTP repeats in headers.
    pub(crate) envelope: Envelope,
    /// For a message that has no response: resolves when the server has accepted it, or it could not be sent.
    pub(crate) taken: Option<oneshot::Sender<Result<(), WireFailure>>>,
}

/// The parts of a message that HTTP repeats in headers. Other wires ignore them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Envelope {
    /// The negotiated protocol version.
    pub(crate) version: Option<Arc<str>>,
    /// Set in the modern era, which has no handshake.
    pub(crate) modern: Option<ModernEnvelope>,
}

/// The headers of a request in the modern era.
#[derive(Debug, Clone)]
pub(crate) struct ModernEnvelope {
    pub(crate) method: Cow<'static, str>,
    /// The name of the tool or prompt, or the URI of the resource, that the request is about.
    pub(crate) name: Option<String>,
    /// Arguments repeated as `Mcp-Param-…`.
    pub(crate) params: Vec<(String, String)>,
}
