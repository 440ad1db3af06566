//! [`RawResult`]: the `result` of a response, as JSON text.

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use pegboard_protocol::{RpcError, code};
use serde::Serialize;

/// The `result` of a response: a JSON object as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawResult {
    json: Bytes,
    /// Whether the object has a `resultType`.
    has_type: bool,
    /// How long a modern client may keep it, and for whom.
    cache: Option<(Duration, CacheScope)>,
}

/// For whom a result may be cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheScope {
    /// For all clients.
    Public,
    /// For the client's own principal.
    Private,
}

impl RawResult {
    /// Wraps the text of a JSON object. `has_type` says whether it has a `resultType`, which modern clients require and this adds
    /// otherwise.
    pub fn from_text(mut json: Bytes, has_type: bool) -> Self {
        json.advance(json.iter().take_while(|byte| byte.is_ascii_whitespace()).count());
        Self {
            json,
            has_type,
            cache: None,
        }
    }

    /// Serialises a value without a `resultType`, which must be an object.
    pub fn new(value: &impl Serialize) -> Result<Self, RpcError> {
        let json = serde_json::to_vec(value)
            .map_err(|error| RpcError::new(code::INTERNAL_ERROR, format!("the result cannot be written: {error}")))?;
        Ok(Self::from_text(json.into(), false))
    }

    /// Says how long and for whom a modern client may cache the result. Ignored if the result has a `resultType`: it then comes
    /// from a modern server, which says this itself.
    #[must_use]
    pub fn with_cache(mut self, for_time: Duration, scope: CacheScope) -> Self {
        self.cache = Some((for_time, scope));
        self
    }

    /// The text of the object.
    pub fn json(&self) -> &Bytes {
        &self.json
    }

    /// Whether the object has a `resultType`.
    pub fn has_type(&self) -> bool {
        self.has_type
    }

    /// Marks the result as stale at once, unless the service said how long it may be cached. Modern lists must say something.
    pub(super) fn with_default_cache(mut self) -> Self {
        self.cache.get_or_insert((Duration::ZERO, CacheScope::Private));
        self
    }

    /// The length, if it is at most `limit`, else 0.
    pub(super) fn short_len(&self, limit: usize) -> usize {
        if self.json.len() <= limit { self.json.len() } else { 0 }
    }

    /// Writes the fields that modern results have first. Returns the rest of the object.
    pub(super) fn write_modern_head(&self, head: &mut BytesMut) -> Bytes {
        if self.has_type {
            return self.json.clone();
        }
        head.put_slice(b"{\"resultType\":\"complete\"");
        if let Some((for_time, scope)) = self.cache {
            let scope = match scope {
                CacheScope::Public => "public",
                CacheScope::Private => "private",
            };
            let fields = format!(",\"ttlMs\":{},\"cacheScope\":\"{scope}\"", for_time.as_millis());
            head.put_slice(fields.as_bytes());
        }
        let rest = self.json.slice(1.min(self.json.len())..);
        let is_empty = rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
        if !is_empty {
            head.put_u8(b',');
        }
        rest
    }
}
