//! [`ToolsetHandler`]: serves a toolset to the clients of an rmcp server.

mod calls;
mod connection_tasks;
mod errors;
mod owners;
mod pages;
mod updates;

use std::time::Duration;

use ::rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestParams, CompleteResult,
        GetPromptRequestParams, GetPromptResponse, GetPromptResult, Implementation, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, Prompt,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Reference, ServerCapabilities,
        ServerConfig, SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use self::{
    connection_tasks::{ConnectionTasks, MAX_SUBSCRIPTIONS},
    errors::{error_of, run_unless_cancelled},
    owners::{exposed_prompt_name, owner_of_prompt, owner_of_template, owner_of_uri},
    pages::page,
    updates::ResourceUpdates,
};
use crate::toolset::Toolset;
use pegboard_base::name::ServerName;
use pegboard_client::session::CompletionOf;

/// How long a listing waits for servers that are starting.
const PATIENCE: Duration = Duration::from_secs(30);

/// Serves a [`Toolset`] as an rmcp `ServerHandler`: its tools under the names of the view, the resources and templates of its servers, their
/// prompts as `server__prompt`, and completions.
///
/// One handler serves one connection. A clone serves another one with the same toolset.
///
/// * A call that is refused or lost is a result with `isError` and the text for the model. An unknown tool is the error `-32602`.
/// * A cancelled request drops the future of its call, which cancels the call on its server.
/// * Progress is forwarded if the client sends a progress token.
/// * The client is notified when the lists of tools, resources or prompts change, and when a resource that it subscribed to does.
/// * Requests of servers to the client, such as elicitation, are answered by the board's [`Host`](crate::Host) and not forwarded. Log messages
///   and tasks are not offered.
///
/// ```
/// use pegboard::{Answer, Config, NativeTool, NativeTools, Pegboard, rmcp::ToolsetHandler};
/// use rmcp::{ServiceExt, model::CallToolRequestParams};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let noon = NativeTool::new("now", "Tells the time.", serde_json::json!({"type": "object"}), |_| async {
///     Ok(Answer::from_text("noon"))
/// });
/// let board = Pegboard::builder(Config::default())
///     .in_process("clock", NativeTools::new([noon]))
///     .open();
///
/// let (ours, theirs) = tokio::io::duplex(4096);
/// tokio::spawn(async move {
///     let served = ToolsetHandler::new(board.toolset()).serve(ours).await;
///     if let Ok(running) = served {
///         let _ = running.waiting().await;
///     }
/// });
/// let client = ().serve(theirs).await?;
/// let result = client.call_tool(CallToolRequestParams::new("clock__now")).await?;
/// assert_eq!(result.content[0].as_text().map(|block| block.text.as_str()), Some("noon"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ToolsetHandler {
    toolset: Toolset,
    info: Implementation,
    instructions: Option<String>,
    patience: Duration,
    tasks: ConnectionTasks,
}

impl ToolsetHandler {
    /// Creates a handler that serves `toolset`.
    pub fn new(toolset: Toolset) -> Self {
        Self {
            toolset,
            info: Implementation::new("pegboard", env!("CARGO_PKG_VERSION")),
            instructions: None,
            patience: PATIENCE,
            tasks: ConnectionTasks::default(),
        }
    }

    /// Sets the name and version that clients see. By default they are those of this library.
    #[must_use]
    pub fn server_info(mut self, info: Implementation) -> Self {
        self.info = info;
        self
    }

    /// Sets the instructions for clients, such as [`Toolset::instructions`]. By default there are none.
    #[must_use]
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets how long a listing waits for servers that are starting. The default is 30 seconds.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The server that offers the resource, by its URI or by a template that the URI fits.
    async fn owner_of(&self, uri: &str) -> Result<ServerName, ErrorData> {
        let listing = self.toolset.resources(self.patience).await;
        owner_of_uri(&listing, uri).cloned().ok_or_else(|| {
            let message = format!("no server offers the resource {}", uri.escape_debug());
            ErrorData::resource_not_found(message, None)
        })
    }

    async fn read(&self, uri: &str) -> Result<ReadResourceResponse, ErrorData> {
        let server = self.owner_of(uri).await?;
        let contents = self.toolset.read_resource(&server, uri).await.map_err(error_of)?;
        let mut result = ReadResourceResult::new(contents.into_iter().map(Into::into).collect());
        (result.ttl_ms, result.cache_scope) = NOT_CACHED;
        Ok(result.into())
    }

    async fn fill_prompt(&self, name: &str, arguments: &Map<String, Value>) -> Result<GetPromptResponse, ErrorData> {
        let listing = self.toolset.prompts(self.patience).await;
        let (server, prompt) = owner_of_prompt(&listing, name)?;
        let filled = self.toolset.get_prompt(server, prompt, arguments).await;
        Ok(GetPromptResult::from(filled.map_err(error_of)?).into())
    }

    async fn completion(&self, request: CompleteRequestParams) -> Result<CompleteResult, ErrorData> {
        let (server, of) = match request.r#ref {
            Reference::Prompt(prompt) => {
                let listing = self.toolset.prompts(self.patience).await;
                let (server, prompt) = owner_of_prompt(&listing, &prompt.name)?;
                (server.clone(), CompletionOf::Prompt(prompt.to_owned()))
            }
            Reference::Resource(template) => {
                let listing = self.toolset.resources(self.patience).await;
                let server = owner_of_template(&listing, &template.uri)?;
                (server.clone(), CompletionOf::Template(template.uri))
            }
            _ => return Err(ErrorData::invalid_params("this type of reference is unknown", None)),
        };
        let known = request
            .context
            .and_then(|context| context.arguments)
            .unwrap_or_default();
        let known = known.into_iter().map(|(name, value)| (name, value.into())).collect();
        let argument = request.argument;
        let completed = self
            .toolset
            .complete(&server, &of, &argument.name, &argument.value, &known);
        Ok(CompleteResult::new(completed.await.map_err(error_of)?.into()))
    }

    /// Forwards changes to a subscription of the protocol without sessions, until it is cancelled.
    async fn forward_changes(&self, context: &SubscriptionContext) -> Result<(), ErrorData> {
        let accepted = context.accepted();
        let uris = accepted.resource_subscriptions.clone().unwrap_or_default();
        let (mut updates, mut changes) = (ResourceUpdates::default(), self.toolset.list_changes());
        for uri in uris {
            let server = self.owner_of(&uri).await?;
            updates.add(&self.toolset, server, uri).await?;
        }
        let wants = |wish: Option<bool>| wish == Some(true);
        loop {
            let sent = tokio::select! {
                changed = changes.next() => {
                    let Some(changed) = changed else { return Ok(()) };
                    let mut sent = Ok(());
                    if changed.tools && wants(accepted.tools_list_changed) {
                        sent = sent.and(context.sink().notify_tool_list_changed().await);
                    }
                    if changed.resources && wants(accepted.resources_list_changed) {
                        sent = sent.and(context.sink().notify_resource_list_changed().await);
                    }
                    if changed.prompts && wants(accepted.prompts_list_changed) {
                        sent = sent.and(context.sink().notify_prompt_list_changed().await);
                    }
                    sent
                }
                Some(uri) = updates.next() => context.sink().notify_resource_updated(uri).await,
            };
            sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        }
    }
}

/// The cache hints of every result: it may differ for another user, and may change at any time.
const NOT_CACHED: (Option<u64>, Option<CacheScope>) = (Some(0), Some(CacheScope::Private));

impl ServerHandler for ToolsetHandler {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_tools()
            .enable_tool_list_changed()
            .build();
        let mut config = ServerConfig::new(capabilities).with_server_info(self.info.clone());
        config.instructions = self.instructions.clone();
        config
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let listing = run_unless_cancelled(&context.ct, async { Ok(self.toolset.list(self.patience).await) }).await?;
        let (tools, next_cursor) = page(&listing.tools, request)?;
        let mut result = ListToolsResult::with_all_items(tools.iter().map(Tool::from).collect());
        (result.ttl_ms, result.cache_scope) = NOT_CACHED;
        Ok(ListToolsResult { next_cursor, ..result })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        run_unless_cancelled(&context.ct, calls::call(&self.toolset, request, &context)).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let listing =
            run_unless_cancelled(&context.ct, async { Ok(self.toolset.resources(self.patience).await) }).await?;
        let (resources, next_cursor) = page(&listing.resources, request)?;
        let mut result = ListResourcesResult::with_all_items(resources.iter().cloned().map(Into::into).collect());
        (result.ttl_ms, result.cache_scope) = NOT_CACHED;
        Ok(ListResourcesResult { next_cursor, ..result })
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let listing =
            run_unless_cancelled(&context.ct, async { Ok(self.toolset.resources(self.patience).await) }).await?;
        let (templates, next_cursor) = page(&listing.templates, request)?;
        let templates = templates.iter().cloned().map(Into::into).collect();
        let mut result = ListResourceTemplatesResult::with_all_items(templates);
        (result.ttl_ms, result.cache_scope) = NOT_CACHED;
        Ok(ListResourceTemplatesResult { next_cursor, ..result })
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        run_unless_cancelled(&context.ct, self.read(&request.uri)).await
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let listing =
            run_unless_cancelled(&context.ct, async { Ok(self.toolset.prompts(self.patience).await) }).await?;
        let (prompts, next_cursor) = page(&listing.prompts, request)?;
        let exposed = prompts.iter().map(|prompt| {
            let mut exposed = Prompt::from(prompt.clone());
            exposed.name = exposed_prompt_name(prompt);
            exposed
        });
        let mut result = ListPromptsResult::with_all_items(exposed.collect());
        (result.ttl_ms, result.cache_scope) = NOT_CACHED;
        Ok(ListPromptsResult { next_cursor, ..result })
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        run_unless_cancelled(&context.ct, self.fill_prompt(&request.name, &arguments)).await
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        run_unless_cancelled(&context.ct, self.completion(request)).await
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let subscribing = async {
            let server = self.owner_of(&request.uri).await?;
            self.toolset.subscribe(&server, &request.uri).await.map_err(error_of)
        };
        let subscription = run_unless_cancelled(&context.ct, subscribing).await?;
        self.tasks.forward_updates(request.uri, subscription, context.peer)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.tasks.stop_updates(&request.uri);
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.tasks.forward_list_changes(&self.toolset, context.peer);
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.truncate(MAX_SUBSCRIPTIONS);
        }
        Some(accepted)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let cancelled: CancellationToken = context.request_context().ct.clone();
        run_unless_cancelled(&cancelled, self.forward_changes(&context)).await
    }
}
