//! [`BoardEndpoint`]: all servers of the board, or those of a view, as one.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::{FutureExt, future::BoxFuture, stream::BoxStream};
use pegboard::{Pegboard, Toolset, catalog::Instructions, telemetry::Telemetry};
use pegboard_protocol::{capability::extension, code, method};
use serde_json::{Map, Value, json};

use super::{
    core::Core,
    definitions::{self, ToolStyle},
    listen::no_such_resource,
    owners::{Owned, listed_prompts, listed_uris, owner_of_uri, prefix},
    requests::own_params,
    scope::EndpointTarget,
    tool_call::to_text,
};
use crate::{
    protocol::{
        Answer, Client, Description, Event, Exchange, Filter, Notification, Params, RawResult, Request, RpcError,
        Service,
    },
    sign_in::SignInLinks,
};

/// Serves the servers of a board as one: tools under the names of the view, resources under their URIs, prompts named like tools.
#[derive(Debug)]
pub(super) struct BoardEndpoint {
    core: Arc<Core>,
}

impl BoardEndpoint {
    pub(super) fn new(board: Pegboard, scope: EndpointTarget, links: SignInLinks) -> Self {
        Self {
            core: Arc::new(Core::new(board, scope, links)),
        }
    }

    fn describe_for(&self, client: &Arc<Client>) -> Result<Description, RpcError> {
        let tools = self.core.tools(client)?;
        let of_view = match &self.core.scope {
            EndpointTarget::View(name) => {
                let settings = self.core.board.gateway_settings();
                settings.views.get(name).and_then(|view| view.description.clone())
            }
            EndpointTarget::Board(_) | EndpointTarget::Server(_) | EndpointTarget::Approved(_) => None,
        };
        let of_servers = tools.toolset.instructions(&Instructions::default());
        let texts = [of_view, Some(of_servers), self.describe_unconnected(&tools.toolset)];
        let texts: Vec<String> = texts
            .into_iter()
            .flatten()
            .filter(|text| !text.trim().is_empty())
            .collect();
        let instructions = (!texts.is_empty()).then(|| texts.join("\n\n"));
        let mut capabilities = json!({
            "tools": {"listChanged": true}, "prompts": {"listChanged": true}, "completions": {}, "logging": {},
            "resources": {"listChanged": true, "subscribe": true},
        });
        if client.version().is_modern() {
            capabilities["extensions"] = json!({ extension::TASKS: {} });
        } else {
            capabilities["tasks"] = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
        }
        Ok(Description {
            capabilities: object(capabilities),
            server_info: self.core.scope.server_info(),
            instructions,
            more: Map::new(),
            cache: None,
        })
    }

    /// What is said of `explicit` servers that are not connected yet; `None` if there is none, or a client has no path to connect it.
    fn describe_unconnected(&self, toolset: &Toolset) -> Option<String> {
        if self.core.scope.is_decided_by_program() {
            return None;
        }
        let rows = self.core.board.status().servers;
        let waiting = rows
            .iter()
            .filter(|row| row.awaits_connect && toolset.has_server(row.name.as_str()));
        let names: BTreeSet<&str> = waiting.map(|row| row.name.as_str()).collect();
        let first = names.first()?;
        let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        Some(format!(
            "Servers that are not connected, so that their tools are missing here: {}. The user connects such a server by using it on its own: at \
             the endpoint `/mcp/{first}`, or with `pegboard mcp --server {first}`.",
            quoted.join(", ")
        ))
    }

    async fn answer(&self, request: &Request, exchange: &Exchange) -> Answer {
        if &*request.method == method::TOOLS_CALL {
            return self.core.call_tool(request, exchange).await;
        }
        Box::pin(self.answer_other(request, exchange)).await
    }

    async fn answer_other(&self, request: &Request, exchange: &Exchange) -> Answer {
        match &*request.method {
            method::TOOLS_LIST => self.list_tools(request, exchange).await,
            method::RESOURCES_LIST => self.list_resources(request, exchange).await,
            method::RESOURCES_TEMPLATES_LIST => self.list_templates(request, exchange).await,
            method::RESOURCES_READ => self.read(request, exchange).await,
            method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => {
                self.core.confirm_subscription(request, exchange).await
            }
            method::PROMPTS_LIST => self.list_prompts(request, exchange).await,
            method::PROMPTS_GET => self.get_prompt(request, exchange).await,
            method::COMPLETION_COMPLETE => self.complete(request, exchange).await,
            method if method.starts_with("tasks/") => self.core.task_request(request, exchange).await,
            method => Err(RpcError::method_not_found(method)),
        }
    }

    async fn list_tools(&self, request: &Request, exchange: &Exchange) -> Answer {
        let tools = self.core.tools(exchange.client())?;
        let mut listing = tools.toolset.list(tools.listing_patience()).await;
        self.core.add_sign_in_tools(&tools, exchange.client(), &mut listing);
        definitions::list("tools", &listing.tools, &request.params, |listed| {
            definitions::tool(listed, ToolStyle::default())
        })
    }

    async fn list_resources(&self, request: &Request, exchange: &Exchange) -> Answer {
        let tools = self.core.tools(exchange.client())?;
        let all = tools.toolset.resources(tools.listing_patience()).await.resources;
        let uris = listed_uris(&all);
        let listed: Vec<_> = all.iter().zip(&uris).collect();
        definitions::list("resources", &listed, &request.params, |(resource, uri)| {
            definitions::resource(resource, uri)
        })
    }

    async fn list_templates(&self, request: &Request, exchange: &Exchange) -> Answer {
        let tools = self.core.tools(exchange.client())?;
        let all = tools.toolset.resources(tools.listing_patience()).await.templates;
        let uris = listed_uris(&all);
        let listed: Vec<_> = all.iter().zip(&uris).collect();
        definitions::list("resourceTemplates", &listed, &request.params, |(template, uri)| {
            definitions::template(template, uri)
        })
    }

    async fn list_prompts(&self, request: &Request, exchange: &Exchange) -> Answer {
        let tools = self.core.tools(exchange.client())?;
        let all = tools.toolset.prompts(tools.listing_patience()).await.prompts;
        let names = listed_prompts(&tools.toolset, &all);
        let listed: Vec<_> = all.iter().zip(&names).collect();
        definitions::list("prompts", &listed, &request.params, |(prompt, name)| {
            definitions::prompt(prompt, name)
        })
    }

    async fn read(&self, request: &Request, exchange: &Exchange) -> Answer {
        let owned = self.owner(&request.params, exchange).await?;
        if !owned.has_prefix {
            return self
                .core
                .any_request(&owned.server, method::RESOURCES_READ, &request.params, exchange)
                .await;
        }
        let own = Some(("uri", owned.uri.as_str().into()));
        let params = own_params(&request.params, &owned.server, method::RESOURCES_READ, own, exchange)?;
        let result = self
            .core
            .send_request(&owned.server, method::RESOURCES_READ, &params, exchange)
            .await;
        match result {
            Ok(result) => with_prefix(&result, &owned),
            Err(error) => Err(with_listed_uri(error, &owned)),
        }
    }

    async fn get_prompt(&self, request: &Request, exchange: &Exchange) -> Answer {
        let name = request.params.text("name");
        let name = name.ok_or_else(|| RpcError::invalid_params("`name` is missing or no string"))?;
        let (server, own) = self.owner_of_prompt(&name, exchange).await?;
        let own = Some(("name", own.into()));
        let params = own_params(&request.params, &server, method::PROMPTS_GET, own, exchange)?;
        self.core
            .send_request(&server, method::PROMPTS_GET, &params, exchange)
            .await
    }

    async fn complete(&self, request: &Request, exchange: &Exchange) -> Answer {
        let fields: Map<String, Value> = request.params.parse()?;
        let mut reference = fields.get("ref").cloned().unwrap_or_default();
        let text = |key: &str| reference.get(key).and_then(Value::as_str).map(str::to_owned);
        let (server, key, own) = if let Some(name) = text("name") {
            let (server, own) = self.owner_of_prompt(&name, exchange).await?;
            (server, "name", own)
        } else if let Some(uri) = text("uri") {
            let owned = self.owner_of(&uri, exchange).await?;
            (owned.server, "uri", owned.uri)
        } else {
            return Err(RpcError::invalid_params(
                "`ref` names neither a prompt nor a resource template",
            ));
        };
        reference[key] = own.into();
        let own = Some(("ref", reference));
        let params = own_params(&request.params, &server, method::COMPLETION_COMPLETE, own, exchange)?;
        self.core
            .send_request(&server, method::COMPLETION_COMPLETE, &params, exchange)
            .await
    }

    async fn owner_of_prompt(&self, name: &str, exchange: &Exchange) -> Result<(String, String), RpcError> {
        let tools = self.core.tools(exchange.client())?;
        let all = tools.toolset.prompts(tools.listing_patience()).await.prompts;
        let names = listed_prompts(&tools.toolset, &all);
        let found = names.iter().position(|listed| listed == name).map(|at| &all[at]);
        let found = found.map(|prompt| (prompt.server.to_string(), prompt.name.clone()));
        if let Some(found) = found {
            return Ok(found);
        }
        let error = RpcError::invalid_params(format!("there is no prompt `{}`", name.escape_debug()));
        // A server that waits for a sign-in has not listed its prompts.
        let server = tools.toolset.server_of(name);
        let answer = Box::pin(self.core.or_sign_in_link(
            &tools,
            server.as_ref(),
            method::PROMPTS_GET,
            Err(error.clone()),
            exchange,
        ));
        Err(answer.await.err().unwrap_or(error))
    }

    async fn owner(&self, params: &Params, exchange: &Exchange) -> Result<Owned, RpcError> {
        self.owner_of(&uri_of(params)?, exchange).await
    }

    async fn owner_of(&self, uri: &str, exchange: &Exchange) -> Result<Owned, RpcError> {
        let tools = self.core.tools(exchange.client())?;
        let listing = tools.toolset.resources(tools.listing_patience()).await;
        owner_of_uri(&listing, uri).ok_or_else(|| no_such_resource(uri, exchange.client().version().is_modern()))
    }
}

impl Service for BoardEndpoint {
    fn describe<'a>(&'a self, client: &'a Arc<Client>) -> BoxFuture<'a, Result<Description, RpcError>> {
        std::future::ready(self.describe_for(client)).boxed()
    }

    fn handle(self: Arc<Self>, request: Request, exchange: Exchange) -> BoxFuture<'static, Answer> {
        Box::pin(async move { self.core.hand_over(self.answer(&request, &exchange).await) })
    }

    fn telemetry(&self) -> Option<Arc<dyn Telemetry>> {
        self.core.board.telemetry().cloned()
    }

    fn on_notification(&self, client: &Arc<Client>, notification: Notification) {
        self.core.handle_notification(client, &notification);
    }

    fn note_refusal(&self, client: &Arc<Client>, request: &Request, why: &str) {
        self.core.audit_refusal(client, request, why);
    }

    fn listen(&self, client: &Arc<Client>, filter: Filter) -> BoxStream<'static, Event> {
        let (core, of, uris) = (self.core.clone(), client.clone(), filter.uris.clone());
        let wanted = async move {
            let Ok(tools) = core.tools(&of) else { return Vec::new() };
            if uris.is_empty() {
                return Vec::new();
            }
            let listing = tools.toolset.resources(tools.listing_patience()).await;
            let owned = uris.into_iter().filter_map(|uri| {
                let owned = owner_of_uri(&listing, &uri)?;
                Some((uri, owned.server, owned.uri))
            });
            owned.collect()
        };
        self.core.stream_events(client, filter, wanted)
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn uri_of(params: &Params) -> Result<String, RpcError> {
    let uri = params.text("uri");
    let uri = uri.ok_or_else(|| RpcError::invalid_params("`uri` is missing or no string"))?;
    Ok(uri.into_owned())
}

/// Writes the URI of a resource in an error as the client knows it.
fn with_listed_uri(mut error: RpcError, owned: &Owned) -> RpcError {
    if let Some(Value::Object(data)) = &mut error.data
        && let Some(uri) = data.get_mut("uri")
        && *uri == owned.uri
    {
        *uri = prefix(&owned.server, &owned.uri).into();
    }
    error
}

/// Writes the URI of a resource in its contents as the client knows it.
fn with_prefix(result: &RawResult, owned: &Owned) -> Answer {
    let unreadable = |error: serde_json::Error| RpcError::new(code::INTERNAL_ERROR, error.to_string());
    let mut read: Value = serde_json::from_slice(result.json()).map_err(unreadable)?;
    for contents in read
        .get_mut("contents")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(uri) = contents.get("uri").and_then(Value::as_str) {
            contents["uri"] = prefix(&owned.server, uri).into();
        }
    }
    Ok(RawResult::from_text(to_text(&read)?.into(), result.has_type()))
}
