//! `initialize` and `server/discover`: who the client is, and what the service says about itself.

use bytes::Bytes;
use pegboard_protocol::{RpcError, Version, meta};
use serde_json::{Map, Value, json};

use super::{client::Client, params::Params, raw_result::RawResult, service::Answer, service::Description};
use crate::door::Caller;

/// The client of a handshake.
pub(super) fn client(caller: &Caller, params: &Params) -> Result<Client, RpcError> {
    let Some(requested) = params.text("protocolVersion") else {
        return Err(RpcError::invalid_params("`protocolVersion` is missing or not a string"));
    };
    let object = |key| params.field(key).filter(|text| text.starts_with(b"{"));
    let empty = || Bytes::from_static(b"{}");
    let capabilities = object("capabilities").unwrap_or_else(empty);
    let info = object("clientInfo").unwrap_or_else(empty);
    Ok(Client::new(
        caller.clone(),
        Version::negotiate(&requested),
        capabilities,
        info,
    ))
}

/// The result of `initialize`.
pub(super) fn welcome(version: Version, description: Description) -> Answer {
    let mut result = description.more;
    result.insert("protocolVersion".into(), version.as_str().into());
    result.insert("capabilities".into(), Value::Object(description.capabilities));
    result.insert("serverInfo".into(), Value::Object(description.server_info));
    add_instructions(&mut result, description.instructions);
    RawResult::new(&result)
}

/// The result of `server/discover`. Name and version stand in `_meta`.
pub(super) fn discovery(description: Description) -> Answer {
    let mut result = description.more;
    result.insert("supportedVersions".into(), json!(Version::ALL.map(Version::as_str)));
    result.insert("capabilities".into(), Value::Object(description.capabilities));
    let meta = result.entry("_meta").or_insert_with(|| json!({}));
    if let Value::Object(meta) = meta {
        let info = Value::Object(description.server_info);
        meta.insert(meta::SERVER_INFO.into(), info);
    }
    add_instructions(&mut result, description.instructions);
    let result = RawResult::new(&result)?;
    Ok(match description.cache {
        Some((for_time, scope)) => result.with_cache(for_time, scope),
        None => result,
    })
}

fn add_instructions(result: &mut Map<String, Value>, instructions: Option<String>) {
    if let Some(instructions) = instructions {
        result.insert("instructions".into(), instructions.into());
    }
}
