//! Single steps of a call, for the benchmarks.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{
    input_rounds::Rounds as _,
    json_rpc::{self, Meta, Params},
    listing,
    response::Response,
    tools_call::CallResult,
};
use crate::{
    catalog::{Catalog, HeaderRule, Tool},
    name::ServerName,
    outcome::Content,
};

/// Writes a request and returns its length.
pub fn write_call(id: u64, tool: &str, arguments: &RawValue) -> usize {
    let params = Params::default().with("name", tool).with("arguments", arguments);
    let meta = Meta {
        progress_token: Some(id),
        ..Meta::default()
    };
    json_rpc::request(id, "tools/call", &params, meta).len()
}

/// Reads a message that answers a call, and returns how many bytes the answer has.
pub fn read_answer(message: &Bytes) -> Option<usize> {
    let (_, answer) = Response::guess(message)?;
    let result = CallResult::of(&answer).ok()?;
    Some(result.content.iter().map(Content::payload_bytes).sum())
}

/// Reads a message that answers `tools/list`.
pub fn read_tools(message: &Bytes, server: &ServerName) -> Vec<Arc<Tool>> {
    let mut catalog = Catalog::default();
    let page = Response::guess(message).and_then(|(_, answer)| listing::Page::of(&answer, "tools", "tools/list").ok());
    if let Some(page) = page {
        catalog.read_tools(server, page.items, HeaderRule::Ignored);
    }
    catalog.tools
}
