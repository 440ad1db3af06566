//! An incoming message, and the JSON of responses in its era.

use pegboard_protocol::{code, meta, method};
use serde_json::{Value, json};

use crate::script::{Era, Script};

/// Returns `true` if a message is of the modern era.
pub(crate) fn is_modern(script: &Script, message: &Value) -> bool {
    match script.era {
        Era::Legacy => false,
        Era::Modern => message["method"] != method::INITIALIZE,
        Era::Both => {
            message["method"] == method::SERVER_DISCOVER
                || !message["params"]["_meta"][meta::PROTOCOL_VERSION].is_null()
        }
    }
}

/// An incoming request or notification.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) id: Option<&'a Value>,
    pub(super) method: &'a str,
    pub(super) params: &'a Value,
    pub(super) modern: bool,
    /// The headers of the HTTP request; null on other transports.
    pub(super) headers: &'a Value,
}

/// The key under which a transport adds its headers to a message.
pub(crate) const HEADERS: &str = "$headers";

impl<'a> Request<'a> {
    pub(super) fn read(script: &Script, message: &'a Value) -> Option<Self> {
        let method = message.get("method")?.as_str()?;
        let modern = is_modern(script, message);
        Some(Self {
            id: message.get("id"),
            method,
            params: message.get("params").unwrap_or(&Value::Null),
            modern,
            headers: message.get(HEADERS).unwrap_or(&Value::Null),
        })
    }

    pub(super) fn id(&self) -> Value {
        self.id.cloned().unwrap_or(Value::Null)
    }

    pub(super) fn progress_token(&self) -> Option<&Value> {
        self.params.get("_meta")?.get(meta::PROGRESS_TOKEN)
    }

    /// The response with this result, in the form of the era.
    pub(super) fn result(&self, script: &Script, mut result: Value) -> Value {
        if self.modern {
            if result.get("resultType").is_none() {
                result["resultType"] = "complete".into();
            }
            result["_meta"][meta::SERVER_INFO] = json!({ "name": script.name, "version": script.server_version });
        }
        json!({ "jsonrpc": "2.0", "id": self.id(), "result": result })
    }

    /// The response with a result that modern clients may cache.
    pub(super) fn cacheable_result(&self, script: &Script, mut result: Value) -> Value {
        if self.modern {
            result["ttlMs"] = script.ttl_ms.into();
            result["cacheScope"] = script.cache_scope.clone().into();
        }
        self.result(script, result)
    }

    pub(super) fn error(&self, code: i64, message: &str, data: Option<&Value>) -> Value {
        let mut error = json!({ "code": code, "message": message });
        if let Some(data) = data {
            error["data"] = data.clone();
        }
        json!({ "jsonrpc": "2.0", "id": self.id(), "error": error })
    }

    /// The response that ends a subscription.
    pub(super) fn listening_end(&self) -> Value {
        let result = json!({ "resultType": "complete", "_meta": { meta::SUBSCRIPTION_ID: self.id() } });
        json!({ "jsonrpc": "2.0", "id": self.id(), "result": result })
    }

    pub(super) fn unknown_method(&self) -> Value {
        self.error(
            code::METHOD_NOT_FOUND,
            &format!("method not found: {}", self.method),
            None,
        )
    }
}
