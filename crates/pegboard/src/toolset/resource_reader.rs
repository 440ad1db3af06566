//! [`ResourceReader`]: built-in tools that list and read resources, for models that know only tools.

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::{
    builtin_definitions::{LIST, MAX_RESOURCES, READ, ResourceTools, TEMPLATES},
    builtin_tools::{self, BuiltinReply},
    lister::Lister,
    listing::ListedTool,
    open_view::OpenView,
    resolver::LOOKUP_TIMEOUT,
    resources::{MAX_READ, Resources},
    server_requests::{ServerRequests, ViewRequest, must_offer},
};
use crate::{
    call::{self, CallGuard, Route, ToolCall, Visibility},
    server::Server,
};
use pegboard_base::name::ServerName;
use pegboard_config::Reading;
use pegboard_tools::{
    catalog::{Catalog, Resource},
    outcome::{Answer, Failure, Kind, Outcome, Reply},
};

/// How many resources a page has by default.
const DEFAULT_RESOURCES: usize = 50;
/// The largest page, in bytes.
const PAGE: usize = 16 << 10;
/// The longest text about one resource, in bytes.
const MAX_TEXT: usize = 300;

/// Answers calls of the tools that list and read resources.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResourceReader<'a> {
    open: &'a OpenView,
}

impl<'a> ResourceReader<'a> {
    pub(super) fn new(open: &'a OpenView) -> Self {
        Self { open }
    }

    /// Answers a call of one of the tools, or returns the call if it is of another tool.
    pub(super) async fn answer(
        self,
        mut call: ToolCall,
        started: Instant,
        mut guard: CallGuard<'a>,
    ) -> BuiltinReply<'a> {
        // Without the tools this costs only the read of a flag.
        if !self.open.view.resource_tools || !builtin_tools::may_match(&call.name, "_resource") {
            return Err(Box::new((call, guard)));
        }
        let (tools, routes) = self
            .open
            .read_snapshot(|snapshot| (snapshot.resources.clone(), snapshot.table.clone()));
        let mut listed = tools.iter().flat_map(ResourceTools::all);
        let Some(listed) =
            listed.find(|tool| builtin_tools::matches(&call.name, tool, &routes, self.open.view.audience))
        else {
            return Err(Box::new((call, guard)));
        };
        let arguments = match builtin_tools::read(&mut call, listed, Reading::Guided, self.open.view.audience) {
            Ok(arguments) => arguments,
            Err(failure) => {
                let reply = builtin_tools::reply(&call, &listed.tool, Outcome::Refused(failure), started.elapsed());
                guard.mark_built_in(&listed.tool);
                guard.complete(&reply);
                return Ok(reply);
            }
        };
        let called = call.name.clone();
        if listed.tool.name == READ {
            // Boxed, because it is rare and would enlarge the future of every call.
            let mut reply = Box::pin(self.read(call, listed, arguments, started, guard)).await;
            builtin_tools::note_repair(&mut reply, &called, listed);
            return Ok(reply);
        }
        guard.mark_built_in(&listed.tool);
        let page = self.list_page(&listed.tool.name, &arguments, &call).await;
        let untrusted = page.as_ref().is_ok_and(|(_, untrusted)| *untrusted);
        let outcome = match page {
            Ok((text, _)) => Outcome::Done(Answer::from_text(text)),
            Err(failure) => Outcome::Refused(failure),
        };
        let mut reply = builtin_tools::reply(&call, &listed.tool, outcome, started.elapsed());
        reply.untrusted = untrusted;
        builtin_tools::note_repair(&mut reply, &called, listed);
        guard.complete(&reply);
        Ok(reply)
    }

    /// A page of the listing, and whether it contains text of untrusted servers.
    async fn list_page(
        self,
        kind: &str,
        arguments: &Map<String, Value>,
        call: &ToolCall,
    ) -> Result<(String, bool), Failure> {
        let cursor = builtin_tools::text(arguments, "cursor")?;
        let limit = arguments.get("limit").and_then(Value::as_u64);
        let limit = limit.map_or(DEFAULT_RESOURCES, |limit| {
            usize::try_from(limit).unwrap_or(MAX_RESOURCES).clamp(1, MAX_RESOURCES)
        });
        let (servers, unavailable) = self
            .find_servers(builtin_tools::text(arguments, "server")?, call)
            .await?;
        let mut found: Vec<&Resource> = Vec::new();
        for (_, catalog) in &servers {
            let items = match kind {
                TEMPLATES => &catalog.templates,
                _ => &catalog.resources,
            };
            found.extend(items);
        }
        found.sort_by_cached_key(|resource| cursor_of(resource));
        let start = cursor.map_or(0, |cursor| {
            found.partition_point(|resource| cursor_of(resource).as_str() <= cursor.as_str())
        });
        let page = Page::take(&found[start..], limit);
        let untrusted = !page.items.is_empty() && servers.iter().any(|(server, _)| !server.config().policy.trust);
        let key = if kind == TEMPLATES { "templates" } else { "resources" };
        let mut shown = json!({ key: page.items });
        if let Some(next) = page.next {
            shown["next_cursor"] = next.into();
        }
        if page.left_out > 0 {
            shown["left_out"] = json!({"count": page.left_out, "why": "their descriptions are too long to be shown"});
        }
        if !unavailable.is_empty() {
            shown["unavailable"] = unavailable.into();
        }
        Ok((shown.to_string(), untrusted))
    }

    /// The servers whose resources the model may see, and the names of those that cannot be reached.
    async fn find_servers(
        self,
        named: Option<String>,
        call: &ToolCall,
    ) -> Result<(Vec<Offering>, Vec<String>), Failure> {
        self.open.check_open()?;
        self.open.check_selection()?;
        if let Some(named) = named {
            let (server, live) = ServerRequests::new(self.open).connect(&parse_name(&named)?).await?;
            must_offer(&live, server.name(), "resources")?;
            self.check_readable(&server, live.catalog())?;
            return Ok((vec![(server, live.catalog().clone())], Vec::new()));
        }
        let unavailable = Lister::new(self.open)
            .start_servers(call.timeout.unwrap_or(LOOKUP_TIMEOUT))
            .await;
        let unavailable = unavailable.into_iter().map(|down| down.server.to_string()).collect();
        let servers = self.open.selected_servers().into_iter().filter_map(|server| {
            let catalog = server.catalog()?;
            let has_some = !catalog.resources.is_empty() || !catalog.templates.is_empty();
            (has_some && self.check_readable(&server, &catalog).is_ok()).then_some((server, catalog))
        });
        Ok((servers.collect(), unavailable))
    }

    fn check_readable(self, server: &Server, catalog: &Catalog) -> Result<(), Failure> {
        if !server.config().policy.capabilities.resources {
            let message = format!(
                "resources of server `{}` may not be used: its config leaves them out. `{LIST}` shows those that can be read.",
                server.name()
            );
            return Err(Failure::new(Kind::NotPermitted, message).hint("`capabilities` says what it is asked for"));
        }
        let servers = self.open.servers();
        Visibility::new(&self.open.view, &servers).check_resources(server.name(), &catalog.tools)
    }

    async fn read(
        self,
        mut call: ToolCall,
        listed: &ListedTool,
        arguments: Map<String, Value>,
        started: Instant,
        guard: CallGuard<'_>,
    ) -> Reply {
        let mut guard: CallGuard<'_> = guard;
        // The call is published before the server is found, which may take a while.
        guard.create();
        let server = match self.choose_server(&arguments, &call).await {
            Ok(server) => server,
            Err(failure) => {
                let reply = builtin_tools::reply(&call, &listed.tool, Outcome::Refused(failure), started.elapsed());
                guard.mark_built_in(&listed.tool);
                guard.complete(&reply);
                return reply;
            }
        };
        call.text = None;
        call.arguments = arguments.into();
        let name = server.name().clone();
        let request = ViewRequest::within_call(call.id.clone());
        let resources = Resources::new(self.open);
        let route = Route::through(&listed.name, &listed.tool, server);
        let mut guard: CallGuard<'_> = guard;
        guard.route(&route);
        call::read_resource(&self.open.view, &route, call, started, guard, |uri| async move {
            resources.read_within(&request, name.as_str(), &uri, MAX_READ).await
        })
        .await
    }

    /// The server to read a resource from: the named one, the one that lists the URI, or the only one.
    async fn choose_server(self, arguments: &Map<String, Value>, call: &ToolCall) -> Result<Server, Failure> {
        let missing = || Failure::new(Kind::InvalidArguments, "`uri` is missing: it must be a text");
        let uri = builtin_tools::text(arguments, "uri")?.ok_or_else(missing)?;
        let named = builtin_tools::text(arguments, "server")?;
        let (mut servers, _) = self.find_servers(named, call).await?;
        let lists = |(_, catalog): &&Offering| catalog.resources.iter().any(|resource| resource.uri == uri);
        if let Some((server, _)) = servers.iter().find(lists) {
            return Ok(server.clone());
        }
        let names: Vec<_> = servers.iter().map(|(server, _)| server.name().to_string()).collect();
        match (servers.pop(), servers.is_empty()) {
            (Some((only, _)), true) => Ok(only),
            (None, _) => Err(Failure::new(Kind::Unavailable, "no server has resources")),
            (Some(_), false) => {
                let names = call::list_names(names.iter().map(String::as_str));
                let message = format!(
                    "`server` is missing: several servers have resources, and none lists this address. Available servers: {names}."
                );
                Err(Failure::new(Kind::InvalidArguments, message))
            }
        }
    }
}

/// A server and its catalogue.
type Offering = (Server, std::sync::Arc<Catalog>);

fn parse_name(text: &str) -> Result<ServerName, Failure> {
    ServerName::parse(text.trim()).map_err(|problem| Failure::new(Kind::InvalidArguments, problem.to_string()))
}

/// The position of a resource in the listing, as a cursor. Server names contain no space.
fn cursor_of(resource: &Resource) -> String {
    format!("{} {}", resource.server, resource.uri)
}

/// A page of resources, bounded in bytes.
struct Page {
    items: Vec<Value>,
    /// The cursor of the last resource on the page, if there are more.
    next: Option<String>,
    /// How many resources were skipped because they do not fit on any page.
    left_out: usize,
}

impl Page {
    fn take(found: &[&Resource], limit: usize) -> Self {
        let (mut items, mut left_out, mut room, mut end) = (Vec::new(), 0, PAGE, found.len());
        for (at, resource) in found.iter().enumerate() {
            let item = describe(resource);
            let bytes = item.to_string().len();
            if bytes > PAGE {
                left_out += 1;
            } else if items.len() >= limit || bytes > room {
                end = at;
                break;
            } else {
                room -= bytes;
                items.push(item);
            }
        }
        let last = end.checked_sub(1).filter(|_| end < found.len());
        Self {
            items,
            next: last.map(|last| cursor_of(found[last])),
            left_out,
        }
    }
}

/// A resource as the model sees it.
fn describe(resource: &Resource) -> Value {
    let short = |text: &Option<String>| {
        let text = text.as_deref()?;
        Some(Value::from(&text[..text.floor_char_boundary(MAX_TEXT)]))
    };
    let mut item = Map::new();
    item.insert("server".into(), resource.server.as_str().into());
    item.insert("uri".into(), resource.uri.as_str().into());
    let more = [
        ("name", short(&resource.name)),
        ("title", short(&resource.title)),
        ("description", short(&resource.description)),
        ("mime_type", short(&resource.mime_type)),
        ("size", resource.size.map(Value::from)),
    ];
    item.extend(
        more.into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?))),
    );
    item.into()
}
