//! Single steps of a call, exposed to the benchmarks.

use std::sync::Arc;

use bytes::Bytes;
use pegboard_protocol::method;
use serde_json::value::RawValue;

use super::{
    call_result::CallResult,
    input_rounds::RoundsResult as _,
    json_rpc::{self, Meta, Params},
    pagination,
    response::Response,
};
use pegboard_base::name::ServerName;
use pegboard_tools::{
    catalog::{Catalog, HeaderRule, Tool},
    outcome::Content,
};

/// Serialises a `tools/call` request and returns its length.
pub fn write_call(id: u64, tool: &str, arguments: &RawValue) -> usize {
    let params = Params::default().with("name", tool).with("arguments", arguments);
    let meta = Meta {
        progress_token: Some(id),
        ..Meta::default()
    };
    json_rpc::request(id, method::TOOLS_CALL, &params, meta).len()
}

/// Parses the response to a call and returns the size of its content.
pub fn read_answer(message: &Bytes) -> Option<usize> {
    let (_, response) = Response::recognize(message)?;
    let (result, _) = CallResult::parse(&response).ok()?;
    Some(result.content.iter().map(Content::payload_bytes).sum())
}

/// Parses the response to `tools/list`.
pub fn read_tools(message: &Bytes, server: &ServerName) -> Vec<Arc<Tool>> {
    let mut catalog = Catalog::default();
    let page = Response::recognize(message)
        .and_then(|(_, response)| pagination::ListPage::parse(&response, "tools", method::TOOLS_LIST).ok());
    if let Some(page) = page {
        catalog.read_tools(server, page.items, HeaderRule::Ignored);
    }
    catalog.tools
}
