//! One agent's view of the board: what it can call, and the calls.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde::{Serialize, Serializer, ser::SerializeStruct};
use serde_json::{Map, Value};
use tokio::{task::JoinSet, time::Instant};

use crate::{
    call::{self, Route, RouteTable, Routed, ToolCall, View},
    catalog::Tool,
    deadline::Deadline,
    name::ServerName,
    outcome::{Failure, Kind, Reply},
    server::{Live, Phase, Server, Shelf},
    status::State,
};

/// One agent's view of the board. It is cheap to clone.
#[derive(Debug, Clone)]
pub struct Toolset {
    shelf: Arc<Shelf>,
    /// The servers that nobody else uses, by the name of the shared one whose place they take.
    own: Arc<[Server]>,
    view: Arc<View>,
    table: Arc<Mutex<Option<Built>>>,
}

/// A route table, and the revision that it was built for.
#[derive(Debug)]
struct Built {
    revision: u64,
    table: Arc<RouteTable>,
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
}

/// A tool and the name that models see.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ListedTool {
    /// The name that models see.
    pub name: String,
    /// The tool.
    pub tool: Arc<Tool>,
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

impl Toolset {
    pub(crate) fn new(shelf: Arc<Shelf>, own: Vec<Server>, view: View) -> Self {
        Self {
            shelf,
            own: own.into(),
            view: Arc::new(view),
            table: Arc::default(),
        }
    }

    /// The servers of this view at this moment.
    fn servers(&self) -> Vec<Server> {
        let ours = |shared: &Server| self.own.iter().find(|own| own.name() == shared.name());
        self.shelf
            .all()
            .iter()
            .map(|server| ours(server).unwrap_or(server).clone())
            .collect()
    }

    /// Lists the tools of all servers. Servers that are not ready are started and waited for, together and at most for `patience`.
    pub async fn list(&self, patience: Duration) -> Listing {
        let deadline = Deadline::within(patience);
        let servers = self.servers();
        let mut waiting = JoinSet::new();
        for (at, server) in servers.iter().enumerate() {
            if server.config().enabled && !is_known_and_resting(server) {
                let server = server.clone();
                waiting.spawn(async move { (at, server.live(deadline).await.err()) });
            }
        }
        let mut outages: Vec<_> = waiting.join_all().await;
        outages.sort_by_key(|(at, _)| *at);
        let unavailable = outages.into_iter().filter_map(|(at, outage)| {
            let (server, outage) = (&servers[at], outage?);
            Some(Unavailable {
                server: server.name().clone(),
                state: server.phase().state(),
                error: outage.describe(),
                hint: outage.hint.clone(),
            })
        });
        Listing {
            unavailable: unavailable.collect(),
            tools: self.tools(),
            warnings: self.warnings(),
        }
    }

    /// The tools that are known now, without waiting for anybody.
    fn tools(&self) -> Vec<ListedTool> {
        let routes = self.table();
        let listed = |route: &Route| ListedTool {
            name: route.tool.exposed_name(),
            tool: route.tool.clone(),
        };
        let shown = |route: &&Route| route.server.phase().live().is_some() || is_known_and_resting(&route.server);
        routes.routes().iter().filter(shown).map(listed).collect()
    }

    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for server in self.servers() {
            if let Phase::Ready(live) = server.phase() {
                warnings.extend(
                    live.catalog
                        .warnings
                        .iter()
                        .map(|warning| format!("{}: {warning}", server.name())),
                );
            }
        }
        warnings
    }

    /// The tool that `name` means. Its server is started and waited for when that is needed to know.
    pub async fn tool(&self, name: &str, patience: Duration) -> Result<Arc<Tool>, Failure> {
        self.route(name, Deadline::within(patience))
            .await
            .map(|route| route.tool)
    }

    /// Calls a tool. There is a reply in every case; dropping the future cancels the call on the server.
    pub async fn call(&self, call: ToolCall) -> Reply {
        let started = Instant::now();
        let deadline = Deadline::within(call.timeout.unwrap_or(LOOK_UP));
        match self.route(&call.name, deadline).await {
            Ok(route) => call::run(&self.view, &route, call, started).await,
            Err(failure) => call::refuse(call, failure, started),
        }
    }

    /// Reads a resource of a server: the result of `resources/read` as the server gave it.
    pub async fn read_resource(&self, server: &ServerName, uri: &str) -> Result<Value, Failure> {
        let live = self.reach(server).await?;
        let what = format!("reading {uri}");
        live.session
            .read_resource(live.catalog.address(uri))
            .await
            .map_err(|fault| call::failure_of(&fault, &what).masked(&live.session.veil().masker()))
    }

    /// Gets a prompt of a server: the result of `prompts/get` as the server gave it.
    pub async fn get_prompt(
        &self,
        server: &ServerName,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Value, Failure> {
        let live = self.reach(server).await?;
        let what = format!("getting the prompt {name}");
        live.session
            .get_prompt(name, arguments)
            .await
            .map_err(|fault| call::failure_of(&fault, &what).masked(&live.session.veil().masker()))
    }

    async fn reach(&self, name: &ServerName) -> Result<Live, Failure> {
        let known = self.servers().into_iter().find(|server| server.name() == name);
        let Some(server) = known else {
            return Err(Failure {
                kind: Kind::Unavailable,
                message: format!("there is no server `{name}`"),
                hint: None,
                may_have_executed: false,
            });
        };
        let live = server.live(Deadline::within(LOOK_UP)).await;
        live.map_err(|outage| call::unavailable(name.as_str(), &outage))
    }

    /// Where `name` leads. When that is not known yet, the servers that may have the tool are waited for, and it is looked up once more.
    async fn route(&self, name: &str, deadline: Deadline) -> Result<Route, Failure> {
        if self.shelf.is_closing() {
            return Err(Failure {
                kind: Kind::Unavailable,
                message: "the board is closing and takes no more calls".to_owned(),
                hint: None,
                may_have_executed: false,
            });
        }
        match self.table().find(name) {
            Routed::To(route) => return Ok(route),
            Routed::Ambiguous(candidates) => return Err(call::ambiguous(name, &candidates)),
            Routed::Nowhere => {}
        }
        let mut unknown = self.not_ready();
        unknown.retain(|server| call::may_be_of(name, server.name()));
        let named_one = !unknown.is_empty();
        if unknown.is_empty() {
            unknown = self.not_ready();
            unknown.retain(|server| server.config().enabled);
        }
        let waiting = futures_util::future::join_all(unknown.iter().map(|server| server.live(deadline)));
        let outcomes = waiting.await;
        match self.table().find(name) {
            Routed::To(route) => Ok(route),
            Routed::Ambiguous(candidates) => Err(call::ambiguous(name, &candidates)),
            Routed::Nowhere => {
                let down = unknown
                    .iter()
                    .zip(outcomes)
                    .find_map(|(server, live)| Some((server, live.err()?)));
                match down {
                    // The name says whose tool it is, and that server cannot be reached.
                    Some((server, outage)) if named_one => Err(call::unavailable(server.name().as_str(), &outage)),
                    _ => Err(self.table().explain(name, &self.servers())),
                }
            }
        }
    }

    fn not_ready(&self) -> Vec<Server> {
        let mut servers = self.servers();
        servers.retain(|server| server.phase().live().is_none());
        servers
    }

    /// The route table for what the servers offer now; built again only when something has changed.
    fn table(&self) -> Arc<RouteTable> {
        let revision = self.shelf.revision();
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        match &*table {
            Some(built) if built.revision == revision => built.table.clone(),
            _ => {
                let built = Arc::new(RouteTable::build(&self.servers()));
                *table = Some(Built {
                    revision,
                    table: built.clone(),
                });
                built
            }
        }
    }
}

/// Whether a server that has not been needed yet is known well enough to be listed: its first call starts it.
fn is_known_and_resting(server: &Server) -> bool {
    matches!(server.phase(), Phase::Idle) && server.catalog().is_some()
}

/// How long a call without a limit of its own waits for a server whose tools are not known.
const LOOK_UP: Duration = Duration::from_secs(60);

impl Serialize for ListedTool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tool = &self.tool;
        let mut listed = serializer.serialize_struct("ListedTool", 8)?;
        listed.serialize_field("name", &self.name)?;
        listed.serialize_field("server", &tool.server)?;
        listed.serialize_field("tool", &tool.name)?;
        listed.serialize_field("title", &tool.title)?;
        listed.serialize_field("description", &tool.description)?;
        listed.serialize_field("input_schema", &tool.input_schema)?;
        listed.serialize_field("output_schema", &tool.output_schema)?;
        listed.serialize_field("annotations", &tool.annotations)?;
        listed.end()
    }
}
