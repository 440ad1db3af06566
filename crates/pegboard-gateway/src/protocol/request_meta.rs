//! [`RequestMeta`]: what the `_meta` of a request says to the protocol.

use bytes::Bytes;
use serde_json::json;

use super::{
    client::Client,
    log_level::LogLevel,
    params::{META_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_PROGRESS_TOKEN, META_VERSION, Params, text},
    request_stream::Wants,
    rpc_error::RpcError,
    version::Version,
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
    pub(super) fn of(params: &Params) -> Self {
        Self {
            version: params.meta(META_VERSION),
            capabilities: params.meta(META_CAPABILITIES),
            info: params.meta(META_CLIENT_INFO),
            level: params.meta(META_LOG_LEVEL),
            progress_token: params.meta(META_PROGRESS_TOKEN),
        }
    }

    /// Returns `true` if the request names its own version, so that it needs no handshake.
    pub(super) fn is_modern(&self) -> bool {
        self.version.is_some()
    }

    /// The client of a modern request, and what it wants to see.
    pub(super) fn modern(self, caller: &Caller) -> Result<(Client, Wants), RpcError> {
        let Some(version) = &self.version else {
            let message = format!("`_meta` needs the keys `{META_VERSION}` and `{META_CAPABILITIES}`");
            return Err(RpcError::invalid_params(message));
        };
        let Some(named) = text(version) else {
            let message = format!("`_meta` key `{META_VERSION}` must be a string");
            return Err(RpcError::invalid_params(message));
        };
        let Some(version) = Version::parse(&named).filter(|version| version.is_modern()) else {
            return Err(unsupported(&named));
        };
        let Some(capabilities) = self.capabilities.clone().filter(|text| text.starts_with(b"{")) else {
            let message = format!("`_meta` key `{META_CAPABILITIES}` must be an object");
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
pub(crate) fn unsupported(requested: &str) -> RpcError {
    let message = format!(
        "protocol version `{}` is not supported in `_meta`",
        requested.escape_debug()
    );
    let supported = Version::ALL.map(Version::as_str);
    RpcError::new(RpcError::UNSUPPORTED_VERSION, message).data(json!({"requested": requested, "supported": supported}))
}
