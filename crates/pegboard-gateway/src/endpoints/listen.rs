//! The events of an endpoint that belong to no request: changed lists, updated resources, logs and other notifications.

use std::{collections::HashSet, sync::Arc};

use futures_util::{
    StreamExt,
    stream::{self, BoxStream, SelectAll},
};
use pegboard::{
    ServerName,
    toolset::{ChangedLists, ListChanges},
    watch::{ServerEvent, ServerEvents, Subscription},
};
use pegboard_protocol::{code, method::notification};
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

use super::{
    client_tools::{ClientTools, PrincipalKey},
    confirmations::Confirmed,
    core::Core,
    failures::request_error,
    pass_on::log_params,
    related_tasks::replace_related,
};
use crate::{
    protocol::{Client, Event, Filter, RpcError},
    sign_in::FinishedSignIns,
};

/// How many events wait for a client that does not read.
const WAITING: usize = 64;
/// The most resources that one request may subscribe to.
const MAX_URIS: usize = 256;

/// A resource that a client subscribes to: the URI that the client knows, the server, and the server's URI.
pub(super) type Wanted = (String, String, String);

impl Core {
    /// Streams the events that the filter names. `wanted` are the resources of the filter.
    pub(super) fn stream_events(
        self: &Arc<Self>,
        client: &Arc<Client>,
        filter: Filter,
        wanted: impl Future<Output = Vec<Wanted>> + Send + 'static,
    ) -> BoxStream<'static, Event> {
        let Ok(tools) = self.tools(client) else {
            return Box::pin(stream::pending());
        };
        let confirmations = if client.version().is_modern() {
            Vec::new()
        } else {
            let legacy = self.legacy_client(client);
            filter
                .uris
                .iter()
                .filter_map(|uri| Some((uri.clone(), legacy.confirmations.expect(uri)?)))
                .collect()
        };
        let (sender, receiver) = mpsc::channel(WAITING);
        let source = EventCollector {
            core: self.clone(),
            client: client.clone(),
            changes: tools.toolset.list_changes(),
            sign_ins: self.links.watch(client.principal(), None),
            tools,
            filter,
            confirmations,
            events: sender,
        };
        let task = AbortOnDropHandle::new(tokio::spawn(source.run(wanted)));
        Box::pin(stream::unfold((receiver, task), |(mut receiver, task)| async move {
            let event = receiver.recv().await?;
            Some((event, (receiver, task)))
        }))
    }
}

/// Collects the events of one stream.
struct EventCollector {
    core: Arc<Core>,
    client: Arc<Client>,
    tools: Arc<ClientTools>,
    changes: ListChanges,
    /// The sign-ins of the client's principal.
    sign_ins: FinishedSignIns,
    filter: Filter,
    /// Tells the request of a legacy client whether its server has accepted the subscription.
    confirmations: Vec<(String, oneshot::Sender<Confirmed>)>,
    events: mpsc::Sender<Event>,
}

/// Why a stream sends no more events.
enum End {
    Closed,
    /// The config has other rules or limits for the client.
    Outdated,
}

/// The events of a server, with its name.
type Named = BoxStream<'static, (Arc<str>, Arc<ServerEvent>)>;

impl EventCollector {
    async fn run(mut self, wanted: impl Future<Output = Vec<Wanted>>) {
        let mut wanted = wanted.await;
        wanted.truncate(MAX_URIS);
        while let End::Outdated = self.send_all(&wanted).await {
            let Ok(tools) = self.core.tools(&self.client) else {
                return;
            };
            self.changes = tools.toolset.list_changes();
            self.tools = tools;
            // What the client knows was of the old rules.
            let mut all = ChangedLists::default();
            (all.tools, all.resources, all.prompts) = (true, true, true);
            if !self.send_changes(all).await {
                return;
            }
        }
    }

    /// Sends events until the stream ends, or until the config has other rules for this client.
    async fn send_all(&mut self, wanted: &[Wanted]) -> End {
        let _subscriptions = self.subscribe(wanted).await;
        let (mut servers, mut known) = (SelectAll::<Named>::new(), HashSet::new());
        self.add_servers(&mut servers, &mut known);
        let (core, tools, client) = (self.core.clone(), self.tools.clone(), self.client.clone());
        let mut outdated = std::pin::pin!(tools.outdated(&core.board, &core.scope, &client));
        loop {
            let sent = tokio::select! {
                biased;
                () = &mut outdated => return End::Outdated,
                changed = self.changes.next() => {
                    let Some(changed) = changed else { return End::Closed };
                    self.add_servers(&mut servers, &mut known);
                    self.send_changes(changed).await
                }
                Some(server) = self.sign_ins.next() => self.send_finished(&server).await,
                Some((server, event)) = servers.next() => self.send_event(&server, &event).await,
            };
            if !sent {
                return End::Closed;
            }
        }
    }

    /// Subscribes to the resources, of those servers that the client may see.
    async fn subscribe(&mut self, wanted: &[Wanted]) -> Vec<AbortOnDropHandle<()>> {
        let mut subscriptions = Vec::new();
        for (uri, server, own) in wanted {
            let subscribed = self.tools.toolset.subscribe(server, own).await;
            let confirmed = subscribed.as_ref().map(|_| ()).map_err(request_error);
            self.confirm(uri, confirmed);
            match subscribed {
                Ok(subscription) => {
                    let sending = send_updates(uri.clone(), subscription, self.events.clone());
                    subscriptions.push(AbortOnDropHandle::new(tokio::spawn(sending)));
                }
                Err(failure) => tracing::debug!(server, %failure, "a resource cannot be subscribed to"),
            }
        }
        // Those that belong to no server.
        for (uri, confirmation) in std::mem::take(&mut self.confirmations) {
            let _ = confirmation.send(Err(no_such_resource(&uri, false)));
        }
        subscriptions
    }

    fn confirm(&mut self, uri: &str, confirmed: Confirmed) {
        if let Some(at) = self.confirmations.iter().position(|(waiting, _)| waiting == uri) {
            // The request may have been cancelled.
            let _ = self.confirmations.swap_remove(at).1.send(confirmed);
        }
    }

    /// Reads the events of servers that were added.
    fn add_servers(&self, servers: &mut SelectAll<Named>, known: &mut HashSet<Arc<str>>) {
        if !self.filter.others {
            return;
        }
        for row in self.core.board.status().servers {
            let name: Arc<str> = row.name.as_str().into();
            if known.contains(&name) {
                continue;
            }
            // Fails for servers that the view does not show.
            if let Ok(events) = self.tools.toolset.events(&*name) {
                known.insert(name.clone());
                servers.push(attach_name(name, events));
            }
        }
    }

    async fn send_changes(&self, changed: ChangedLists) -> bool {
        let events = [
            (changed.tools && self.filter.tools, Event::ToolsChanged),
            (changed.resources && self.filter.resources, Event::ResourcesChanged),
            (changed.prompts && self.filter.prompts, Event::PromptsChanged),
        ];
        for (is_wanted, event) in events {
            if is_wanted && self.events.send(event).await.is_err() {
                return false;
            }
        }
        true
    }

    /// Tells a legacy client that the person has signed in at the pages that it was sent to.
    async fn send_finished(&self, server: &ServerName) -> bool {
        if !self.filter.others {
            return true;
        }
        for id in self.tools.exchanges.take_sign_ins(server) {
            let event = to_other_event(notification::ELICITATION_COMPLETE, json!({ "elicitationId": id }));
            if self.events.send(event).await.is_err() {
                return false;
            }
        }
        true
    }

    async fn send_event(&self, server: &str, event: &ServerEvent) -> bool {
        let event = match event {
            // Those that belong to a call are on the stream of that call.
            ServerEvent::Log(message) if message.call.is_none() => {
                let Some((level, params)) = log_params(message) else {
                    return true;
                };
                Event::Log { level, params }
            }
            ServerEvent::ElicitationComplete { id } if self.tools.exchanges.has_asked(id) => {
                to_other_event(notification::ELICITATION_COMPLETE, json!({ "elicitationId": id }))
            }
            ServerEvent::TaskStatus { id, params } => {
                let owner = PrincipalKey::from_client(&self.client);
                let Some(own) = self.core.tasks.id_of(&owner, server, id) else {
                    return true;
                };
                let mut params = self.with_own_task(server, params);
                params["taskId"] = own.into();
                to_other_event(notification::TASKS_STATUS, params)
            }
            ServerEvent::Other { method, params } => to_other_event(method, self.with_own_task(server, params)),
            // Changes of lists and updates of resources have their own sources.
            _ => return true,
        };
        self.events.send(event).await.is_ok()
    }

    /// The params of a notification, which name the task that it is about as the client knows it.
    fn with_own_task(&self, server: &str, params: &Value) -> Value {
        let mut params = params.clone();
        replace_related(&mut params, |theirs| {
            self.core
                .tasks
                .id_of(&PrincipalKey::from_client(&self.client), server, theirs)
        });
        params
    }
}

fn to_other_event(method: &str, params: Value) -> Event {
    let params = match params {
        Value::Object(params) => params,
        _ => Map::new(),
    };
    Event::Other {
        method: method.to_owned(),
        params,
    }
}

fn attach_name(name: Arc<str>, events: ServerEvents) -> Named {
    let events = stream::unfold((name, events), |(name, mut events)| async move {
        let event = events.next().await?;
        Some(((name.clone(), event), (name, events)))
    });
    Box::pin(events)
}

/// Sends an event for each update, until the server is removed or the stream ends.
async fn send_updates(uri: String, mut subscription: Subscription, events: mpsc::Sender<Event>) {
    while subscription.changed().await {
        if events.send(Event::ResourceUpdated { uri: uri.clone() }).await.is_err() {
            return;
        }
    }
}

/// The error for a URI that no server offers.
pub(super) fn no_such_resource(uri: &str, is_modern: bool) -> RpcError {
    let code = if is_modern {
        code::INVALID_PARAMS
    } else {
        code::RESOURCE_NOT_FOUND
    };
    RpcError::new(code, "no server offers this resource").data(json!({ "uri": uri }))
}
