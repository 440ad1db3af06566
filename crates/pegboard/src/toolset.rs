//! One agent's view of the board: what it can call, and the calls.

mod batch;
mod builtin_tools;
mod completion;
mod discover;
mod events;
mod executor;
mod instructions;
mod prompts;
mod read_output;
mod read_request;
mod resource_tools;
mod resources;
mod search;
mod server_selection;
mod snapshot;
mod stub;
mod tasks;

pub use executor::{Closed, ToolExecutor};
pub use prompts::PromptListing;
pub use resources::ResourceListing;
pub use search::{FoundTool, ServerCost};
pub use stub::{StubCall, StubTools};

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde::{Serialize, Serializer, ser::SerializeStruct};
use serde_json::{Map, Value};
use tokio::{sync::mpsc, task::JoinSet, time::Instant};

use crate::{
    call::{self, CallGuard, CallStream, Route, Routed, ToolCall, Unroutable, View, Visibility},
    catalog::{
        Catalog, Risk, Schema, Tool, ToolKind,
        sanitize::{has_unseen, is_unseen},
    },
    deadline::Deadline,
    metrics::BoardCounters,
    name::ServerName,
    outcome::{Failure, Kind, Reply},
    provider::{Definition, Provider},
    server::{Outage, Phase, Server, ViewServers},
    status::State,
};

use server_selection::{Narrowed, Shadows};
use snapshot::LatestSnapshot;

/// One agent's view of the board. It is cheap to clone.
#[derive(Debug, Clone)]
pub struct Toolset {
    /// The servers that only this view uses, and the way to the others.
    own: Arc<ViewServers>,
    view: Arc<View>,
    /// Ends once, when the view takes no more calls.
    is_open: Arc<OpenGuard>,
    latest: Arc<LatestSnapshot>,
    /// The same view with the selections of single calls, the newest first.
    narrowed: Arc<Mutex<Vec<Narrowed>>>,
    shadows: Arc<Shadows>,
}

/// What can be called, and what cannot be and why.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Listing {
    /// The tools by server, then by name.
    pub tools: Vec<ListedTool>,
    /// The servers whose tools are not among them.
    pub unavailable: Vec<Unavailable>,
    /// What was wrong with the listings.
    pub warnings: Vec<String>,
    /// Those warnings that tell which tools cannot be offered to the view's provider, and why.
    #[serde(skip)]
    pub quarantined: Vec<String>,
    /// Whose API the tools are listed for.
    #[serde(skip)]
    provider: Provider,
}

impl Listing {
    /// The tools as the view's provider takes them: exactly the array for the `tools` of its API.
    pub fn definitions(&self) -> Vec<Value> {
        if self.provider == Provider::Mcp {
            return self.tools.iter().map(ListedTool::as_mcp).collect();
        }
        let defined = self.tools.iter().filter_map(|listed| {
            let definition = listed.definition.as_deref()?;
            Some((listed.name.as_str(), definition))
        });
        self.provider.list(defined)
    }
}

/// A tool and the name that models see.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ListedTool {
    /// The name that models see.
    pub name: String,
    /// The tool.
    pub tool: Arc<Tool>,
    /// The tool as the view's provider takes it, if that is not how its server defined it.
    pub definition: Option<Arc<Definition>>,
    /// Whose tool it is.
    pub kind: ToolKind,
    /// How much harm a call may do. Annotations of an MCP server lower it only if the server's config says `trust = true`.
    pub risk: Risk,
}

impl ListedTool {
    fn of(route: &Route) -> Self {
        let is_believed = route.is_believed(&route.server.kept_config().policy);
        Self {
            kind: route.kind,
            risk: route.tool.risk(is_believed),
            name: route.name.clone(),
            tool: route.tool.clone(),
            definition: route.definition.clone(),
        }
    }

    /// The tool as MCP writes it, under the name that models see.
    fn as_mcp(&self) -> Value {
        let tool = &self.tool;
        let mut shown = Map::new();
        let mut put = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                shown.insert(key.to_owned(), value);
            }
        };
        put("name", Some(self.name.clone().into()));
        put("title", tool.title.clone().map(Value::from));
        put("description", tool.description.clone().map(Value::from));
        put("inputSchema", Some(tool.input_schema.value()));
        put("outputSchema", tool.output_schema.as_ref().map(Schema::value));
        put("annotations", tool.annotations.clone().map(Value::from));
        shown.into()
    }
}

/// A server whose tools cannot be listed.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Unavailable {
    /// The server.
    pub server: ServerName,
    /// Where its life stands.
    pub state: State,
    /// What failed.
    pub error: String,
    /// What a person can do about it.
    pub hint: Option<String>,
}

impl Unavailable {
    pub(crate) fn of(server: &Server, outage: &Outage) -> Self {
        Self {
            server: server.name().clone(),
            state: server.phase().state(),
            error: outage.describe(),
            hint: outage.hint.clone(),
        }
    }
}

impl Toolset {
    pub(crate) fn new(own: Arc<ViewServers>, view: View) -> Self {
        Self {
            view: Arc::new(view.opened(own.registry().events().clone(), own.registry().tallies().clone())),
            is_open: Arc::new(OpenGuard::new(own.registry().tallies())),
            own,
            latest: Arc::default(),
            narrowed: Arc::default(),
            shadows: Arc::default(),
        }
    }

    /// All servers at this moment, with those that this view has for itself. The tools that it brings along come first.
    fn servers(&self) -> Vec<Server> {
        self.own.usable()
    }

    /// Lists the tools of all servers. Servers that are not ready are started and waited for, together and at most for `patience`.
    pub async fn list(&self, patience: Duration) -> Listing {
        let unavailable = self.wake(patience).await;
        let (tools, left_out) = self.tools();
        let mut warnings = self.warnings();
        warnings.extend(left_out);
        Listing {
            unavailable,
            tools,
            warnings,
            quarantined: self.table().quarantined().to_vec(),
            provider: self.view.dialect().0,
        }
    }

    /// Starts the servers that are not ready and waits for them, together and at most for `patience`. Those that stay away are named.
    async fn wake(&self, patience: Duration) -> Vec<Unavailable> {
        if self.is_closed() {
            return Vec::new();
        }
        let deadline = Deadline::within(patience);
        let servers = self.chosen();
        let mut waiting = JoinSet::new();
        for (at, server) in servers.iter().enumerate() {
            if server.is_enabled() && !server.is_ready() && !is_known_and_resting(server) {
                let server = server.clone();
                waiting.spawn(async move { (at, server.live(deadline).await.err()) });
            }
        }
        let mut outages: Vec<_> = waiting.join_all().await;
        outages.sort_by_key(|(at, _)| *at);
        let unavailable = outages.into_iter().filter_map(|(at, outage)| {
            let outage = outage?;
            Some(Unavailable::of(&servers[at], &outage))
        });
        unavailable.collect()
    }

    /// The tools that are known now, as far as the view's budget has room for them, and a warning about those that should have some.
    fn tools(&self) -> (Vec<ListedTool>, Option<String>) {
        self.within_budget(self.all_tools())
    }

    /// The tools that are known now, without waiting for anybody.
    fn all_tools(&self) -> Vec<ListedTool> {
        let routes = self.table();
        let is_defined = |route: &Route| route.definition.is_some() || self.view.dialect().0 == Provider::Mcp;
        let is_there = |route: &Route| route.server.phase().live().is_some() || is_known_and_resting(&route.server);
        let listed = routes
            .routes()
            .iter()
            .filter(|route| is_defined(route) && is_there(route));
        let listed = listed.map(|route| ListedTool::of(route));
        let listed = listed.chain(self.listed_reader());
        listed.chain(self.listed_resource_tools()).collect()
    }

    fn warnings(&self) -> Vec<String> {
        let routes = self.table();
        let mut warnings = routes.quarantined().to_vec();
        warnings.extend(self.doubts());
        warnings.extend(routes.routes().iter().filter_map(|route| unseen_in_name(route)));
        let unchecked = |tool: &Arc<Tool>| tool.unchecked();
        for server in self.chosen() {
            if let Phase::Ready(live) = server.phase() {
                if live.catalog().is_empty() {
                    warnings.push(format!(
                        "{}: the server offers no tools, and nothing else",
                        server.name()
                    ));
                }
                warnings.extend(
                    live.catalog()
                        .warnings
                        .iter()
                        .cloned()
                        .chain(live.catalog().tools.iter().filter_map(unchecked))
                        .map(|warning| format!("{}: {warning}", server.name())),
                );
            }
        }
        warnings
    }

    /// What the servers offer that are there, or are known well enough while they rest.
    fn catalogs(&self) -> Vec<Arc<Catalog>> {
        let is_shown = |server: &Server| server.phase().live().is_some() || is_known_and_resting(server);
        let all = self.servers();
        let sight = Visibility::new(&self.view, &all);
        let mut servers = self.chosen();
        servers.retain(|server| is_shown(server) && sight.sees_server(server.name()).is_ok());
        servers.iter().filter_map(Server::catalog).collect()
    }

    /// The tool that `name` means. Its server is started and waited for when that is needed to know.
    pub async fn tool(&self, name: &str, patience: Duration) -> Result<Arc<Tool>, Failure> {
        let (route, _) = self.route(name, Deadline::within(patience)).await?;
        Ok(route.tool.clone())
    }

    /// Calls a tool. There is a reply in every case; dropping the future cancels the call on the server.
    pub async fn call(&self, call: ToolCall) -> Reply {
        // Boxed, because it is rare and every call would pay for the room.
        if call::is_traced() {
            return Box::pin(call::traced(call, |call| self.call_untraced(call))).await;
        }
        self.call_untraced(call).await
    }

    async fn call_untraced(&self, call: ToolCall) -> Reply {
        let (mut call, started) = (call, Instant::now());
        if let Some(selection) = &call.selection {
            let narrowed = self.selecting(selection);
            return Box::pin(narrowed.call_any(call, started)).await;
        }
        // Most calls are of a tool that is known and not ours. Boxed, because all others would make these pay for the room.
        if self.has_own_tools() {
            return Box::pin(self.call_any(call, started)).await;
        }
        match self.known_route(&call.name) {
            Ok(Some(route)) => {
                let guard = CallGuard::routed(&self.view, &route, &call, started);
                call::run(&self.view, &route, &mut call, started, guard).await
            }
            Ok(None) => {
                let guard = CallGuard::open(&self.view, &call, started);
                Box::pin(self.call_looked_up(call, started, guard)).await
            }
            Err(failure) => {
                let guard = CallGuard::open(&self.view, &call, started);
                call::refuse(&call, failure.into(), started, guard)
            }
        }
    }

    /// Calls a tool that may be one of ours.
    async fn call_any(&self, call: ToolCall, started: Instant) -> Reply {
        let guard = CallGuard::open(&self.view, &call, started);
        self.call_opened(call, started, guard).await
    }

    /// Calls a tool that may be one of ours, as part of a call that has begun.
    async fn call_opened(&self, call: ToolCall, started: Instant, guard: CallGuard<'_>) -> Reply {
        let (mut call, mut guard) = (call, guard);
        if self.has_own_tools() && !self.is_closed() {
            match self.call_own(call, started, guard).await {
                Ok(reply) => return reply,
                Err(other) => (call, guard) = *other,
            }
        }
        self.call_looked_up(call, started, guard).await
    }

    /// Calls a tool that may have to be looked for.
    async fn call_looked_up(&self, mut call: ToolCall, started: Instant, mut guard: CallGuard<'_>) -> Reply {
        let deadline = Deadline::after(started, call.timeout.unwrap_or(LOOK_UP));
        match self.route_in_call(&call.name, deadline, &mut guard).await {
            Ok((route, is_repaired)) => {
                let written = is_repaired.then(|| call.name.clone());
                let mut guard: CallGuard<'_> = guard;
                guard.route(&route);
                let mut reply = call::run(&self.view, &route, &mut call, started, guard).await;
                if let Some(written) = written {
                    reply.repaired = Some(format!("`{}` was taken for `{}`", written.escape_debug(), reply.name));
                }
                reply
            }
            Err(astray) => call::refuse(&call, astray, started, guard),
        }
    }

    /// Where `name` leads. Listeners are told of the call before servers are waited for.
    async fn route_in_call(
        &self,
        name: &str,
        deadline: Deadline,
        guard: &mut CallGuard<'_>,
    ) -> Result<(Arc<Route>, bool), Unroutable> {
        let may_wait = self.known_route(name)?.is_none() && !self.not_ready().is_empty();
        if may_wait {
            guard.create();
        }
        self.route(name, deadline).await
    }

    /// Whether there may be tools that the toolset itself answers. It costs a look at some flags.
    fn has_own_tools(&self) -> bool {
        let (view, outputs) = (&self.view, &self.view.outputs);
        view.tool_budget.is_some() || view.resource_tools || outputs.always_readable || outputs.spill.is_used()
    }

    /// The reply to a call of a tool that the toolset itself answers, or the call back when another tool is meant.
    async fn call_own<'a>(&'a self, call: ToolCall, started: Instant, guard: CallGuard<'a>) -> OwnReply<'a> {
        let (call, guard) = match self.read_output(call, started, guard).await {
            Err(other) => *other,
            reply => return reply,
        };
        let (call, guard) = match self.discover(call, started, guard).await {
            Err(other) => *other,
            reply => return reply,
        };
        self.use_resources(call, started, guard).await
    }

    /// Calls a tool and tells what happens meanwhile: the call is created, makes progress, and is completed with its reply. Progress does
    /// not go to [`ToolCall::progress`] then.
    pub fn stream(&self, call: ToolCall) -> CallStream {
        let (steps, told) = mpsc::channel(STEPS);
        let (id, name) = (call.id.clone(), call.name.clone());
        let (toolset, call) = (self.clone(), call.progress(steps));
        CallStream::new(id, name, Box::pin(async move { toolset.call(call).await }), told)
    }

    fn is_closed(&self) -> bool {
        self.is_open.has_ended() || self.own.registry().is_closing()
    }

    /// Ends the view: it takes no more calls, the servers that only it used are stopped, and what it put aside is removed. Waits until that is
    /// done. All clones of the toolset end together.
    pub async fn close(&self) {
        self.is_open.end();
        self.view.is_closed.store(true, Ordering::Release);
        self.view.outputs.spill.close().await;
        self.own.close().await;
    }

    /// Whether anything may be asked of this view at all.
    fn check_open(&self) -> Result<(), Failure> {
        if self.own.registry().is_closing() {
            let message = "the board is closing and takes no more calls. Go on without tools.";
            return Err(Failure::new(Kind::Unavailable, message));
        }
        if self.is_closed() {
            let message = "this view is closed and takes no more calls. Go on without tools.";
            return Err(Failure::new(Kind::Unavailable, message));
        }
        Ok(())
    }

    /// Where `name` leads, if that is known.
    fn known_route(&self, name: &str) -> Result<Option<Arc<Route>>, Failure> {
        self.check_open()?;
        self.built(|built| {
            if let Some(failure) = &built.unusable {
                return Err(failure.clone());
            }
            match built.table.find(name) {
                Routed::To(route) => Ok(Some(route)),
                Routed::Ambiguous(candidates) => Err(call::ambiguous(name, &candidates)),
                Routed::Repaired(_) | Routed::Hidden(_) | Routed::Nowhere => Ok(None),
            }
        })
    }

    /// Where `name` leads, and whether it had to be repaired for that. When it is not known yet, the servers that may have the tool are
    /// waited for, and it is looked up once more.
    pub(crate) async fn route(&self, name: &str, deadline: Deadline) -> Result<(Arc<Route>, bool), Unroutable> {
        for _ in 1..LOOKS {
            let routed = self.route_once(name, deadline).await;
            // A server that was replaced while it was waited for may have the tool all the same.
            if routed.is_ok() || deadline.has_passed() || !self.may_appear(name) {
                return routed;
            }
        }
        self.route_once(name, deadline).await
    }

    /// Whether a server that this name may be of is about to start.
    fn may_appear(&self, name: &str) -> bool {
        let is_starting = |server: &Server| matches!(server.phase(), Phase::Idle | Phase::Connecting(_));
        let mut servers = self.chosen();
        servers.retain(|server| call::may_be_of(name, server.name()) && server.is_enabled());
        servers
            .iter()
            .any(|server| server.is_asked_for() && is_starting(server))
    }

    async fn route_once(&self, name: &str, deadline: Deadline) -> Result<(Arc<Route>, bool), Unroutable> {
        if let Some(route) = self.known_route(name)? {
            return Ok((route, false));
        }
        if let Some(refusal) = self.refusal(name, false) {
            return Err(refusal);
        }
        let mut unknown = self.not_ready();
        unknown.retain(|server| call::may_be_of(name, server.name()));
        let named_one = !unknown.is_empty();
        if unknown.is_empty() {
            unknown = self.not_ready();
            unknown.retain(|server| server.is_enabled());
        }
        let waiting = futures_util::future::join_all(unknown.iter().map(|server| server.live(deadline)));
        let outcomes = waiting.await;
        match self.table().find_forgiving(name) {
            Routed::To(route) => Ok((route, false)),
            Routed::Repaired(route) => {
                tracing::info!(asked = name, tool = %route.tool.dotted_name(), "a name was repaired");
                Ok((route, true))
            }
            Routed::Ambiguous(candidates) => Err(call::ambiguous(name, &candidates).into()),
            Routed::Hidden(tool) => Err(self.unknown(&tool)),
            Routed::Nowhere => {
                let down = unknown
                    .iter()
                    .zip(outcomes)
                    .find_map(|(server, live)| Some((server, live.err()?)));
                match down {
                    // The name says whose tool it is, and that server cannot be reached.
                    Some((server, outage)) if named_one => {
                        let failure = call::unavailable(server.name().as_str(), &outage);
                        // With two servers that it could be of, the name does not say which tool is meant.
                        Err(match (unknown.len(), call::tool_of(name, server.name())) {
                            (1, Some(tool)) => Unroutable::meaning(server.name(), tool, failure),
                            _ => failure.into(),
                        })
                    }
                    _ => Err(self.unknown(name)),
                }
            }
        }
    }

    /// Why a name leads nowhere: it is that of something that this view does not see, or nobody's.
    fn unknown(&self, name: &str) -> Unroutable {
        let servers = self.servers();
        let sight = Visibility::new(&self.view, &servers);
        if let Some(refusal) = sight.refusal(name, &servers, true) {
            return refusal;
        }
        let mut offering = self.chosen();
        offering.retain(|server| server.is_enabled() && sight.may_see_tools_of(server));
        self.table().explain(name, &offering).into()
    }

    fn not_ready(&self) -> Vec<Server> {
        let mut servers = self.chosen();
        servers.retain(|server| server.phase().live().is_none());
        servers
    }
}

/// The reply to a call of one of our own tools, or the call back when another tool is meant.
type OwnReply<'a> = Result<Reply, Box<(ToolCall, CallGuard<'a>)>>;

/// Whether a view takes calls. It counts among the open views of its board until it is closed or its last clone is dropped.
#[derive(Debug)]
struct OpenGuard {
    has_ended: AtomicBool,
    tallies: Arc<BoardCounters>,
}

impl OpenGuard {
    fn new(tallies: &Arc<BoardCounters>) -> Self {
        tallies.view_opened();
        Self {
            has_ended: AtomicBool::new(false),
            tallies: tallies.clone(),
        }
    }

    fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    fn end(&self) {
        if !self.has_ended.swap(true, Ordering::AcqRel) {
            self.tallies.view_closed();
        }
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.end();
    }
}

/// Whether a server that has not been needed yet is known well enough to be listed: its first call starts it.
fn is_known_and_resting(server: &Server) -> bool {
    matches!(server.phase(), Phase::Idle) && server.catalog().is_some()
}

/// How many steps of progress may wait in a stream of events. Only the newest matter.
const STEPS: usize = 64;
/// A warning about a tool whose name has characters that a reader does not see, which may pass for another tool.
fn unseen_in_name(route: &Route) -> Option<String> {
    let name = &route.tool.name;
    if !has_unseen(name) {
        return None;
    }
    let shown: String = name
        .chars()
        .flat_map(|c| {
            let (plain, escaped) = match is_unseen(c) {
                true => (None, Some(c.escape_unicode())),
                false => (Some(c), None),
            };
            plain.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect();
    Some(format!(
        "{}: the name of the tool `{shown}` has invisible characters; it is called as `{}`",
        route.tool.server, route.name
    ))
}

/// How often a tool is looked for whose server changes meanwhile.
const LOOKS: usize = 3;
/// How long a call without a limit of its own waits for a server whose tools are not known.
const LOOK_UP: Duration = Duration::from_secs(60);

impl Serialize for ListedTool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tool = &self.tool;
        let mut listed = serializer.serialize_struct("ListedTool", 10)?;
        listed.serialize_field("name", &self.name)?;
        listed.serialize_field("server", &tool.server)?;
        listed.serialize_field("tool", &tool.name)?;
        listed.serialize_field("title", &tool.title)?;
        listed.serialize_field("description", &tool.description)?;
        listed.serialize_field("input_schema", &tool.input_schema)?;
        listed.serialize_field("output_schema", &tool.output_schema)?;
        listed.serialize_field("annotations", &tool.annotations)?;
        listed.serialize_field("kind", &self.kind)?;
        listed.serialize_field("risk", &self.risk)?;
        listed.end()
    }
}
