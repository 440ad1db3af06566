//! [`ServerEndpoint`]: one server with its own names, transparently.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture, stream::BoxStream};
use pegboard::{
    Failure, Kind, Pegboard, ServerName, State,
    status::{Era, ServerDeclaration},
    telemetry::Telemetry,
    toolset::Unavailable,
};
use pegboard_protocol::{capability::extension, meta, method};
use serde_json::{Map, Value, json};

use super::{
    client_tools::{ClientTools, PATIENCE},
    core::Core,
    definitions::{self, ToolStyle},
    failures::request_error,
    scope::EndpointTarget,
};
use crate::{
    protocol::{
        Answer, CacheScope, Client, Description, Event, Exchange, Filter, Notification, Request, RpcError, Service,
    },
    sign_in::SignInLinks,
};

/// How long the commands of the same user wait, which have limits of their own. A first start may fetch a package.
const LOCAL_PATIENCE: Duration = Duration::from_secs(600);

/// Serves one server of a board: its own names, and every request that it knows.
///
/// Policy, filters and pins of the board hold. Everything else passes unchanged.
#[derive(Debug)]
pub(super) struct ServerEndpoint {
    core: Arc<Core>,
    server: ServerName,
    /// Whether a request has connected the server.
    is_requested: AtomicBool,
}

impl ServerEndpoint {
    pub(super) fn new(board: Pegboard, server: ServerName, links: SignInLinks) -> Self {
        Self {
            core: Arc::new(Core::new(board, EndpointTarget::Server(server.clone()), links)),
            server,
            is_requested: AtomicBool::new(false),
        }
    }

    /// The endpoint for clients that have asked for approval themselves.
    pub(super) fn new_approved(board: Pegboard, server: ServerName) -> Self {
        Self {
            core: Arc::new(Core::new(
                board,
                EndpointTarget::Approved(server.clone()),
                SignInLinks::default(),
            )),
            server,
            is_requested: AtomicBool::new(false),
        }
    }

    /// How long a handshake waits for the server, and a listing, if that depends on no session.
    fn patience(&self) -> Duration {
        match self.core.scope {
            EndpointTarget::Approved(_) => LOCAL_PATIENCE,
            EndpointTarget::Server(_) | EndpointTarget::Board(_) | EndpointTarget::View(_) => PATIENCE,
        }
    }

    /// Permits the start of a server whose config says `start = "explicit"`: a client that uses it by its own name wants it connected.
    fn request_server(&self) {
        self.core.board.request(self.server.as_str());
    }

    async fn describe_for(&self, client: &Arc<Client>) -> Result<Description, RpcError> {
        self.request_server();
        let tools = self.core.tools(client)?;
        let described = tokio::time::timeout(self.patience(), tools.toolset.server_info(&self.server)).await;
        let Ok(described) = described else {
            return Ok(self.not_described_yet());
        };
        let server = match described {
            Ok(server) => server,
            // The client finds the sign-in among its tools.
            Err(failure) if failure.kind == Kind::NeedsAuth && self.core.links.signs_in_to(&self.server) => {
                return Ok(self.not_described_yet());
            }
            // A client that connects once gets what was last known of a server that is down.
            Err(_) if self.lists_tools(&tools).await => return Ok(self.not_described_yet()),
            Err(failure) => return Err(self.handshake_error(&failure)),
        };
        Ok(Description {
            capabilities: capabilities(&server, client.version().is_modern()),
            server_info: server.server_info,
            instructions: server.instructions,
            more: Map::new(),
            cache: None,
        })
    }

    /// Whether tools of the server are listed now.
    async fn lists_tools(&self, tools: &ClientTools) -> bool {
        let listing = tools.toolset.list(Duration::ZERO).await;
        listing.tools.iter().any(|listed| listed.tool.server == self.server)
    }

    /// The error of a handshake whose server cannot be reached. The commands of the same user get all that is known, so that they can report it
    /// as their own failure.
    fn handshake_error(&self, failure: &Failure) -> RpcError {
        let error = request_error(failure);
        match self.core.scope {
            EndpointTarget::Approved(_) => error.data(json!({ meta::pegboard::FAILURE: failure })),
            _ => error,
        }
    }

    /// What is said of a server that is still starting: that it has the usual lists, and that clients are notified when they change. It answers
    /// for itself what it does not have.
    fn not_described_yet(&self) -> Description {
        let lists = ["tools", "resources", "prompts"].map(|list| (list.to_owned(), json!({ "listChanged": true })));
        let info = [("name", self.server.as_str()), ("version", "unknown")];
        Description {
            capabilities: lists.into_iter().collect(),
            server_info: info
                .map(|(key, text)| (key.to_owned(), text.into()))
                .into_iter()
                .collect(),
            instructions: None,
            more: Map::new(),
            // A modern client asks again when it needs to.
            cache: Some((Duration::ZERO, CacheScope::Private)),
        }
    }

    async fn answer(&self, request: &Request, exchange: &Exchange) -> Answer {
        // Modern clients shake no hands.
        if !self.is_requested.swap(true, Ordering::Relaxed) {
            self.request_server();
        }
        match &*request.method {
            method::TOOLS_CALL => self.core.call_tool(request, exchange).await,
            method::TOOLS_LIST => Box::pin(self.list_tools(request, exchange)).await,
            method::RESOURCES_SUBSCRIBE | method::RESOURCES_UNSUBSCRIBE => {
                Box::pin(self.core.confirm_subscription(request, exchange)).await
            }
            method if method.starts_with("tasks/") => {
                let answer = Box::pin(self.core.task_request(request, exchange)).await?;
                self.core.answer_from_server(answer)
            }
            method::RESOURCES_LIST | method::RESOURCES_TEMPLATES_LIST | method::PROMPTS_LIST
                if matches!(self.core.scope, EndpointTarget::Server(_)) =>
            {
                Box::pin(self.list_others(request, exchange)).await
            }
            _ => self.pass_on(request, exchange).await,
        }
    }

    /// Sends a request to the server, however long that takes to start.
    fn pass_on<'a>(&'a self, request: &'a Request, exchange: &'a Exchange) -> BoxFuture<'a, Answer> {
        let server = self.server.as_str();
        Box::pin(
            self.core
                .any_request(server, &request.method, &request.params, exchange),
        )
    }

    /// A list of the server's own, or what was last known of it if the server does not become ready in time.
    async fn list_others(&self, request: &Request, exchange: &Exchange) -> Answer {
        let tools = self.core.tools(exchange.client())?;
        let ready = tokio::time::timeout(tools.listing_patience(), tools.toolset.server_info(&self.server)).await;
        let is_down = match ready {
            Ok(Ok(_)) => return self.pass_on(request, exchange).await,
            Ok(Err(_)) => true,
            Err(_) => false,
        };
        let resources = async || tools.toolset.resources(Duration::ZERO).await;
        let params = &request.params;
        let (is_unknown, known) = match &*request.method {
            method::PROMPTS_LIST => {
                let all = tools.toolset.prompts(Duration::ZERO).await.prompts;
                let list = definitions::list("prompts", &all, params, |prompt| {
                    definitions::prompt(prompt, &prompt.name)
                });
                (all.is_empty(), list)
            }
            method::RESOURCES_LIST => {
                let all = resources().await.resources;
                let list = definitions::list("resources", &all, params, |resource| {
                    definitions::resource(resource, &resource.uri)
                });
                (all.is_empty(), list)
            }
            _ => {
                let all = resources().await.templates;
                let list = definitions::list("resourceTemplates", &all, params, |template| {
                    definitions::template(template, &template.uri)
                });
                (all.is_empty(), list)
            }
        };
        match is_unknown && is_down {
            // Says why.
            true => self.pass_on(request, exchange).await,
            false => known,
        }
    }

    async fn list_tools(&self, request: &Request, exchange: &Exchange) -> Answer {
        let tools = self.core.tools(exchange.client())?;
        let patience = match self.core.scope {
            EndpointTarget::Approved(_) => LOCAL_PATIENCE,
            EndpointTarget::Server(_) | EndpointTarget::Board(_) | EndpointTarget::View(_) => tools.listing_patience(),
        };
        let mut listing = tools.toolset.list(patience).await;
        let before = listing.tools.len();
        let is_known = listing.tools.iter().any(|listed| listed.tool.server == self.server);
        self.core.add_sign_in_tools(&tools, exchange.client(), &mut listing);
        // The client is notified of the tools of a server that is still starting.
        let is_awaited = |unavailable: &&Unavailable| {
            unavailable.state == State::Connecting && matches!(self.core.scope, EndpointTarget::Server(_))
        };
        if let Some(unavailable) = listing.unavailable.first().filter(|server| !is_awaited(server))
            && !is_known
            && listing.tools.len() == before
        {
            let message = format!("server `{}` is unavailable: {}", self.server, unavailable.error);
            let kind = match unavailable.state {
                State::NeedsAuth => Kind::NeedsAuth,
                _ => Kind::Unavailable,
            };
            return Err(request_error(&Failure::new(kind, message)));
        }
        let described = match listing.unavailable.is_empty() {
            true => tools.toolset.server_info(&self.server).await.ok(),
            false => None,
        };
        let may_be_tasks = !exchange.client().version().is_modern()
            && described.is_some_and(|server| server.era == Era::Modern && has_tasks(&server.capabilities));
        let style = ToolStyle {
            own_names: true,
            may_be_tasks,
        };
        definitions::list("tools", &listing.tools, &request.params, |listed| {
            definitions::tool(listed, style)
        })
    }
}

impl Service for ServerEndpoint {
    fn describe<'a>(&'a self, client: &'a Arc<Client>) -> BoxFuture<'a, Result<Description, RpcError>> {
        self.describe_for(client).boxed()
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
        let server = self.server.to_string();
        let wanted = filter.uris.iter().map(|uri| (uri.clone(), server.clone(), uri.clone()));
        let wanted = std::future::ready(wanted.collect());
        self.core.stream_events(client, filter, wanted)
    }
}

/// The capabilities of a server as its client's era declares them. The gateway notices changes of lists itself.
fn capabilities(server: &ServerDeclaration, is_modern: bool) -> Map<String, Value> {
    let mut capabilities = server.capabilities.clone();
    for list in ["tools", "resources", "prompts"] {
        if let Some(Value::Object(list)) = capabilities.get_mut(list) {
            list.insert("listChanged".into(), true.into());
        }
    }
    let has_tasks = server.era == Era::Modern && has_tasks(&capabilities);
    match (is_modern, server.era) {
        (true, Era::Legacy) => {
            let tasks = capabilities.remove("tasks");
            if tasks.is_some_and(|tasks| tasks["requests"]["tools"]["call"].is_object()) {
                let extensions = capabilities.entry("extensions").or_insert_with(|| json!({}));
                if let Value::Object(extensions) = extensions {
                    extensions.insert(extension::TASKS.into(), json!({}));
                }
            }
        }
        (false, Era::Modern) if has_tasks => {
            if let Some(Value::Object(extensions)) = capabilities.get_mut("extensions") {
                extensions.remove(extension::TASKS);
            }
            let tasks = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
            capabilities.insert("tasks".into(), tasks);
        }
        (false, _) => {
            // Each client lists its own tasks, whether or not the server lists any.
            if let Some(Value::Object(tasks)) = capabilities.get_mut("tasks") {
                tasks.insert("list".into(), json!({}));
            }
        }
        (true, _) => {}
    }
    capabilities
}

fn has_tasks(capabilities: &Map<String, Value>) -> bool {
    capabilities
        .get("extensions")
        .is_some_and(|extensions| extensions[extension::TASKS].is_object())
}
