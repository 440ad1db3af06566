//! [`Library`]: an rmcp handler with resources, a template, a prompt and completions.

use std::sync::Arc;

use pegboard_base::sync::Mutex;
use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler,
    model::{
        CompleteRequestParams, CompleteResult, CompletionInfo, ContentBlock, GetPromptRequestParams, GetPromptResponse,
        GetPromptResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, PaginatedRequestParams,
        Prompt, PromptArgument, PromptMessage, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
        Resource, ResourceContents, ResourceTemplate, ResourceUpdatedNotificationParam, Role, ServerCapabilities,
        ServerConfig, SubscribeRequestParams, UnsubscribeRequestParams,
    },
    service::RequestContext,
};
use tokio::sync::Notify;

/// An rmcp handler. Its clones share the client that has subscribed.
#[derive(Clone, Default)]
pub(crate) struct Library(Arc<Shared>);

#[derive(Default)]
struct Shared {
    reader: Mutex<Option<Peer<RoleServer>>>,
    unsubscribed: Notify,
}

impl Library {
    /// Notifies the client that has subscribed of a change.
    pub(crate) async fn update(&self, uri: &str) {
        let reader = self.0.reader.lock().clone().expect("a subscription");
        let param = ResourceUpdatedNotificationParam::new(uri);
        reader.notify_resource_updated(param).await.unwrap();
    }

    /// Waits until the client has unsubscribed.
    pub(crate) async fn unsubscribed(&self) {
        self.0.unsubscribed.notified().await;
    }
}

impl ServerHandler for Library {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_completions()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe();
        ServerConfig::new(capabilities.build())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let book = Resource::new("book:dune", "Dune")
            .with_mime_type("text/plain")
            .with_size(5);
        Ok(ListResourcesResult::with_all_items(vec![book]))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let page = ResourceTemplate::new("page:{book}/{number}", "A page");
        Ok(ListResourceTemplatesResult::with_all_items(vec![page]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let text = format!("the text of {}", request.uri);
        Ok(ReadResourceResult::new(vec![ResourceContents::text(text, request.uri)]).into())
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        *self.0.reader.lock() = Some(context.peer);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.0.unsubscribed.notify_one();
        Ok(())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let book = PromptArgument::new("book").with_required(true);
        let prompt = Prompt::new("review", Some("Reviews a book."), Some(vec![book]));
        Ok(ListPromptsResult::with_all_items(vec![prompt]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let book = request.arguments.unwrap_or_default()["book"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        let message = PromptMessage::new(Role::User, ContentBlock::text(format!("Review {book}.")));
        Ok(GetPromptResult::new(vec![message]).into())
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let known = request
            .context
            .and_then(|context| context.arguments)
            .unwrap_or_default();
        let value = match known.get("book") {
            Some(book) => format!("{}1 of {book}", request.argument.value),
            None => format!("{}une", request.argument.value),
        };
        Ok(CompleteResult::new(
            CompletionInfo::with_all_values(vec![value]).unwrap(),
        ))
    }
}
