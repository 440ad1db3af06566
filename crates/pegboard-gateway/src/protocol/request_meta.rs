//! [`RequestMeta`]: what the `_meta` of a request says to the protocol.

use bytes::Bytes;
use pegboard_protocol::{RpcError, Version, code, meta};
use serde_json::json;

use super::{
    client::Client,
    log_level::LogLevel,
    params::{Params, text},
    request_stream::Wants,
};
use crate::door::Caller;

/// The fields of `_meta` as JSON text.
#[derive(Debug)]
pub(super) struct RequestMeta {
    version: Option<Bytes>,
    capabilities: Option<Bytes>,
    info: Option<Bytes>,
    level: Option<Bytes>,
    progress_token: Option<Bytes>,
}

impl RequestMeta {
    pub(super) fn read(params: &Params) -> Self {
        Self {
            version: params.meta(meta::PROTOCOL_VERSION),
            capabilities: params.meta(meta::CLIENT_CAPABILITIES),
            info: params.meta(meta::CLIENT_INFO),
            level: params.meta(meta::LOG_LEVEL),
            progress_token: params.meta(meta::PROGRESS_TOKEN),
        }
    }

    /// Returns `true` if the request names its own version, so that it needs no handshake.
    pub(super) fn is_modern(&self) -> bool {
        self.version.is_some()
    }

    /// The client of a modern request, and what it wants to see.
    pub(super) fn into_modern_client(self, caller: &Caller) -> Result<(Client, Wants), RpcError> {
        let Some(version) = &self.version else {
            let message = format!(
                "`_meta` needs the keys `{}` and `{}`",
                meta::PROTOCOL_VERSION,
                meta::CLIENT_CAPABILITIES
            );
            return Err(RpcError::invalid_params(message));
        };
        let Some(named) = text(version) else {
            let message = format!("`_meta` key `{}` must be a string", meta::PROTOCOL_VERSION);
            return Err(RpcError::invalid_params(message));
        };
        let Some(version) = Version::parse(&named).filter(|version| version.is_modern()) else {
            return Err(unsupported_version_error(&named));
        };
        let Some(capabilities) = self.capabilities.clone().filter(|text| text.starts_with(b"{")) else {
            let message = format!("`_meta` key `{}` must be an object", meta::CLIENT_CAPABILITIES);
            return Err(RpcError::invalid_params(message));
        };
        let level = self.level.as_ref().and_then(|level| text(level)?.parse().ok());
        let info = self.info.clone().filter(|info| info.starts_with(b"{"));
        let info = info.unwrap_or(Bytes::from_static(b"{}"));
        let client = Client::new(caller.clone(), version, capabilities, info);
        Ok((client, self.wants(level)))
    }

    /// What a client with this log level wants to see. A token that is neither a string nor an integer is ignored.
    pub(super) fn wants(self, level: Option<LogLevel>) -> Wants {
        let is_token = |token: &Bytes| {
            let digits = token.strip_prefix(b"-").unwrap_or(token);
            token.starts_with(b"\"") || digits.iter().all(u8::is_ascii_digit)
        };
        Wants {
            progress_token: self.progress_token.filter(is_token),
            level,
        }
    }
}

/// The error for a version that a modern request cannot have.
pub(crate) fn unsupported_version_error(requested: &str) -> RpcError {
    let message = format!(
        "protocol version `{}` is not supported in `_meta`",
        requested.escape_debug()
    );
    let supported = Version::ALL.map(Version::as_str);
    RpcError::new(code::UNSUPPORTED_VERSION, message).data(json!({"requested": requested, "supported": supported}))
}
