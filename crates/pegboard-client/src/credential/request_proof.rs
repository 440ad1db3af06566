//! [`RequestProof`]: a header that a credential needs anew for each request.

use std::{fmt, sync::Arc};

use http::{HeaderMap, HeaderValue, Method, StatusCode};
use url::Url;

/// The header of a proof (RFC 9449).
#[cfg(any(feature = "http", feature = "websocket"))]
pub const PROOF_HEADER: http::HeaderName = http::HeaderName::from_static("dpop");

/// Proves for each request that its sender has the key of the credential.
pub trait RequestProof: fmt::Debug + Send + Sync {
    /// Names the key. Credentials with other keys are other credentials.
    fn key_id(&self) -> &str;

    /// The header for one request. The error says why there is none, and has no secret.
    fn header(&self, method: &Method, url: &Url) -> Result<HeaderValue, String>;

    /// Takes from a response what the next proof needs. Returns whether the request was refused for its proof alone, so that it may succeed with
    /// another one.
    fn learn(&self, url: &Url, status: StatusCode, response: &HeaderMap) -> bool;
}

/// A proof as a part of a credential.
#[derive(Debug, Clone)]
pub(super) struct AttachedProof(pub(super) Arc<dyn RequestProof>);

impl PartialEq for AttachedProof {
    fn eq(&self, other: &Self) -> bool {
        self.0.key_id() == other.0.key_id()
    }
}

impl Eq for AttachedProof {}
