//! [`Demo`]: the demo server as a service of the gateway, which handles the protocol and the transports.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pegboard_gateway::{
    Answer, CacheScope, Client, Description, Exchange, RawResult, Request, RpcError, Service, Version,
};
use pegboard_protocol::{meta, method};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::fields::{capabilities, object, server_info, trim};
use super::tools::tool::Call;
use super::{offers, tools};

const INSTRUCTIONS: &str = "A demo server. Use `now` for the time, `calculate` for arithmetic and `search_text` to find \
text in the shared folder. The other tools (`echo`, `draw`, `count_slowly`, `fail`) are for trying out a client.";

/// How long a client may cache a list. Lists do not change while the server runs.
const TTL: Duration = Duration::from_secs(300);

/// The state that all requests of all clients share. It does not change after the start.
#[derive(Debug)]
pub(super) struct Demo {
    folder: PathBuf,
}

impl Demo {
    /// `folder` must be canonical, so that a path with its prefix is inside it.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    async fn answer(&self, request: Request, exchange: &Exchange) -> Answer {
        let version = exchange.client().version();
        let params: Map<String, Value> = request.params.parse()?;
        let (mut result, is_cacheable) = match &*request.method {
            method::TOOLS_CALL => (self.call(params, exchange).await?, false),
            method::TOOLS_LIST | method::RESOURCES_LIST | method::RESOURCES_TEMPLATES_LIST | method::PROMPTS_LIST => {
                one_page(&params)?;
                (list(&request.method, version), true)
            }
            method::RESOURCES_READ => (offers::resources::read(&params, version)?, true),
            method::PROMPTS_GET => (offers::prompts::get(&params)?, false),
            method::COMPLETION_COMPLETE => (offers::completion::complete(&params)?, false),
            other => return Err(RpcError::method_not_found(other)),
        };
        trim(version, &mut result);
        if version.is_modern() {
            let info = json!({meta::SERVER_INFO: server_info(version)});
            result.insert("_meta".into(), info);
        }
        let result = RawResult::new(&result)?;
        Ok(if is_cacheable {
            result.with_cache(TTL, CacheScope::Public)
        } else {
            result
        })
    }

    async fn call(&self, params: Map<String, Value>, exchange: &Exchange) -> Result<Map<String, Value>, RpcError> {
        let cancelled = CancellationToken::new();
        // Stops work on another thread, such as a search, when the request is cancelled.
        let _stop = cancelled.clone().drop_guard();
        let call = Call {
            folder: &self.folder,
            exchange,
            cancelled: &cancelled,
        };
        tools::call(params, call).await
    }
}

impl Service for Demo {
    fn describe<'a>(&'a self, client: &'a Arc<Client>) -> BoxFuture<'a, Result<Description, RpcError>> {
        let version = client.version();
        let description = Description {
            capabilities: capabilities(version),
            server_info: server_info(version),
            instructions: Some(INSTRUCTIONS.into()),
            cache: Some((TTL, CacheScope::Public)),
            ..Description::default()
        };
        Box::pin(async { Ok(description) })
    }

    fn handle(self: Arc<Self>, request: Request, exchange: Exchange) -> BoxFuture<'static, Answer> {
        Box::pin(async move { self.answer(request, &exchange).await })
    }
}

/// Refuses a cursor: every list has one page.
fn one_page(params: &Map<String, Value>) -> Result<(), RpcError> {
    match params.get("cursor") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(RpcError::invalid_params("unknown `cursor`: this list has one page")),
    }
}

fn list(method: &str, version: Version) -> Map<String, Value> {
    let (key, mut items) = match method {
        method::TOOLS_LIST => ("tools", tools::definitions()),
        method::RESOURCES_LIST => ("resources", offers::resources::list()),
        method::RESOURCES_TEMPLATES_LIST => ("resourceTemplates", offers::resources::templates()),
        _ => ("prompts", offers::prompts::list()),
    };
    items
        .iter_mut()
        .filter_map(Value::as_object_mut)
        .for_each(|item| trim(version, item));
    object([(key, Value::Array(items))])
}

#[cfg(test)]
mod tests;
