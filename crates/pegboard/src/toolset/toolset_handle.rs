//! [`Toolset`]: the handle to one agent's view of the board.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, value::RawValue};
use tokio::sync::mpsc;

use super::{
    batch::write_in_turn,
    completion,
    forward::{Forwarder, PassedRequest, check_forwarding},
    instructions::write_instructions,
    known_tool::KnownTool,
    list_changes::ListChanges,
    lister::Lister,
    listing::Listing,
    open_view::OpenView,
    prompts::{PromptListing, Prompts},
    resolver::Resolver,
    resources::{MAX_READ, ResourceListing, Resources},
    search::{FoundTool, ServerCost, ToolSearch},
    selection_views::SelectionViews,
    server_info::read_declaration,
    server_requests::ServerRequests,
    shared_snapshots::SharedSnapshots,
    subscriptions::Subscriptions,
    tool_calls::ToolCalls,
};
use crate::{
    call::{self, CallStream, Forwarded, ForwardedCall, Forwarding, TaskHandle, ToolCall, View},
    server::ViewServers,
    status::ServerDeclaration,
};
use pegboard_base::{
    BoxFuture,
    deadline::Deadline,
    name::{self, ServerName},
};
use pegboard_client::session::{CompletionOf, LogLevel, Progress, Root, ServerEvents, Subscription, WantedLogs};
use pegboard_tools::{
    catalog::{Instructions, Tool},
    outcome::{CallError, Completion, Failure, FilledPrompt, Reply, ResourceContents},
};

/// The capacity of a call stream's progress channel. While it is full, further progress is dropped.
const STEPS: usize = 64;

/// One agent's view of the board. It is cheap to clone.
#[derive(Debug, Clone)]
pub struct Toolset {
    /// Dropped before `open`, because these views hold its servers too.
    selections: Arc<SelectionViews>,
    pub(super) open: OpenView,
}

impl Toolset {
    pub(crate) fn new(servers: Arc<ViewServers>, view: View, snapshots: Arc<SharedSnapshots>) -> Self {
        Self {
            selections: Arc::default(),
            open: OpenView::new(servers, view, snapshots),
        }
    }

    /// Lists the tools of all servers. Servers that are not ready are started and waited for, concurrently and at most for `patience`.
    ///
    /// The listing of a closed view is empty.
    pub async fn list(&self, patience: Duration) -> Listing {
        Lister::new(&self.open).list(patience).await
    }

    /// The tool that `name` means. Its server is started and waited for if needed.
    pub async fn tool(&self, name: &str, patience: Duration) -> Result<Arc<Tool>, Failure> {
        let deadline = Deadline::within(patience);
        let (route, _) = Resolver::new(&self.open).resolve(name, deadline).await?;
        Ok(route.tool.clone())
    }

    /// Returns the tool that `name` means, if it is known now. It starts no server and waits for none.
    #[doc(hidden)]
    pub fn known_tool(&self, name: &str) -> Option<KnownTool> {
        Resolver::new(&self.open).find_tool(name)
    }

    /// The server that the name of a tool refers to. The tool need not be known: a server that waits for a sign-in has not listed any. `None` if
    /// no server of the view fits, or several do.
    #[doc(hidden)]
    pub fn server_of(&self, name: &str) -> Option<ServerName> {
        Resolver::new(&self.open).find_server(name)
    }

    /// Returns `true` if `name` means a built-in tool of the view, such as `find_tools` or `read_output`.
    #[doc(hidden)]
    pub fn is_built_in(&self, name: &str) -> bool {
        Resolver::new(&self.open).is_built_in(name)
    }

    /// Names pairs of a server and, say, one of its prompts as the view names tools. Different pairs get different names.
    #[doc(hidden)]
    pub fn exposed_names(&self, pairs: &[(&str, &str)]) -> Vec<String> {
        let (style, rules) = self.open.view.names();
        name::expose(pairs, &style, &rules)
    }

    /// Returns `true` if this view uses the server of this name, or would if the board had one.
    pub fn has_server(&self, server: &str) -> bool {
        self.open.view.rules.shows_server(server)
    }

    /// The servers of the view that wait for a sign-in, as far as is known now. It starts no server.
    pub fn awaiting_sign_in(&self) -> Vec<ServerName> {
        self.open.awaiting_sign_in()
    }

    /// Searches the known tools by keywords, best match first. Call [`Toolset::list`] first, so that the tools are known.
    pub fn find(&self, question: &str, most: usize) -> Vec<FoundTool> {
        ToolSearch::new(&self.open).find(question, most)
    }

    /// Searches the known tools by keywords and by meaning, best match first. Meaning counts only with an embedder, see
    /// [`View::embedder`](crate::View::embedder), and if its vectors arrive within a few seconds; otherwise this is the same as
    /// [`Toolset::find`].
    pub async fn search(&self, question: &str, most: usize) -> Vec<FoundTool> {
        ToolSearch::new(&self.open).search(question, most).await
    }

    /// An estimate of the tokens of each server's definitions, by server.
    pub fn cost(&self) -> Vec<ServerCost> {
        Lister::new(&self.open).estimate_costs()
    }

    /// Returns the part of a system prompt about this view's servers: instructions of the config for them and their tools, the servers' own
    /// instructions, their prompts, and which servers are unavailable. It does not wait for servers and leaves out those that start
    /// for the first time, so call [`Toolset::list`] first.
    ///
    /// Invisible characters are removed from the servers' texts. In our own format only the texts of servers with `trust = true` are
    /// included, because a server's text can instruct a model to do anything.
    pub fn instructions(&self, options: &Instructions) -> String {
        write_instructions(&self.open, options)
    }

    /// Notices changes of the view's tools, resources and prompts from now on, without starting a server. Unlike
    /// [`Pegboard::events`](crate::Pegboard::events) it costs calls nothing.
    pub fn list_changes(&self) -> ListChanges {
        ListChanges::new(&self.open)
    }

    /// Calls a tool. Every failure is a reply too. Dropping the future cancels the call on the server.
    ///
    /// ```
    /// # use pegboard::{Toolset, ToolCall};
    /// # use serde_json::json;
    /// # async fn calls(tools: &Toolset) {
    /// let reply = tools.call("time.now").await;
    /// let reply = tools.call(("time.now", json!({"zone": "UTC"}))).await;
    /// let reply = tools.call(ToolCall::new("time.now").arg("zone", "UTC")).await;
    /// println!("{reply}");
    /// # }
    /// ```
    pub fn call(&self, call: impl Into<ToolCall>) -> BoxFuture<'_, Reply> {
        self.calls().call(call.into(), None)
    }

    /// Calls a tool, and reads its answer as a type of the program: see [`Reply::json`].
    ///
    /// ```
    /// # use pegboard::{Toolset, outcome::CallError};
    /// # use serde_json::json;
    /// #[derive(serde::Deserialize)]
    /// struct Weather {
    ///     celsius: f64,
    /// }
    ///
    /// async fn celsius(tools: &Toolset, city: &str) -> Result<f64, CallError> {
    ///     let weather: Weather = tools.call_as(("weather.now", json!({"city": city}))).await?;
    ///     Ok(weather.celsius)
    /// }
    /// ```
    pub async fn call_as<T: DeserializeOwned>(&self, call: impl Into<ToolCall>) -> Result<T, CallError> {
        self.call(call).await.json()
    }

    /// Makes all calls concurrently, as far as queues allow, and returns the replies in the order of the calls.
    ///
    /// With [`View::writes_in_turn`](crate::View::writes_in_turn), calls of tools that are not known to be read-only run one after the other,
    /// in the given order. A tool of a server without `trust = true` is never known to be read-only.
    pub async fn call_all<C: Into<ToolCall>>(&self, calls: impl IntoIterator<Item = C>) -> Vec<Reply> {
        let calls: Vec<ToolCall> = calls.into_iter().map(Into::into).collect();
        let make = |call| self.call(call);
        if !self.open.view.writes_in_turn {
            return join_all(calls.into_iter().map(make)).await;
        }
        write_in_turn(calls, |call| self.calls().only_reads(call), make).await
    }

    /// Calls a tool and streams its events: created, progress, and completed with the reply. The channel set with
    /// [`ToolCall::progress`] gets no progress then.
    pub fn stream(&self, call: impl Into<ToolCall>) -> CallStream {
        let call = call.into();
        let (steps, progress) = mpsc::channel(STEPS);
        let (id, name) = (call.id.clone(), call.name.clone());
        let (toolset, call) = (self.clone(), call.progress(steps));
        CallStream::new(id, name, Box::pin(async move { toolset.call(call).await }), progress)
    }

    /// Starts a tool as a task and returns as soon as its server has accepted it. The reply to a call that could not be started says why.
    pub async fn start(&self, call: impl Into<ToolCall>) -> Result<TaskHandle, Box<Reply>> {
        self.calls().start(call.into()).await
    }

    /// Resumes a task that was started earlier, even by another program. `name` is its tool and `id` its [`TaskHandle::id`]. Requests the
    /// task's status from the server.
    pub async fn task(&self, name: &str, id: &str) -> Result<TaskHandle, Failure> {
        self.calls().attach(name, id).await
    }

    /// Refuses a call whose caller lacks a right that the program grants, such as a scope of its token. Nothing is sent to a server.
    ///
    /// The refusal is counted, published and written to the audit log like any other, by the rule `scope`.
    #[doc(hidden)]
    pub fn refuse_call(&self, call: &ToolCall, why: &str) -> Reply {
        self.calls().refuse(call, why)
    }

    /// Calls a tool like [`Toolset::call`], and returns the result as the server sent it.
    ///
    /// Everything before and after the exchange is as for [`Toolset::call`]: routing, policy, approval, queue, retries, limits, events and
    /// counters. In a view with [`View::whole_results`](crate::View::whole_results) or
    /// [`View::configured_limits`](crate::View::configured_limits) the result is passed on as bytes unless a rule needs its parts: a setting of
    /// `result` that changes it, a cache, a check of structured results, a hook or an idempotency key. Otherwise it is parsed, processed as the
    /// view and the config say, and written again: fenced, joined and truncated in its blocks.
    ///
    /// ```
    /// use pegboard::{Toolset, ToolCall, forward::{Forwarded, Forwarding}};
    ///
    /// async fn pass_on(tools: &Toolset) -> Option<pegboard::bytes::Bytes> {
    ///     match tools.forward_call(ToolCall::new("time.now"), &Forwarding::new()).await {
    ///         Forwarded::Result(result) => Some(result.into_bytes()),
    ///         _ => None,
    ///     }
    /// }
    /// ```
    #[doc(hidden)]
    pub async fn forward_call(&self, call: ToolCall, forwarding: &Forwarding) -> Forwarded {
        if let Err(failure) = check_forwarding(forwarding) {
            return Forwarded::Failed(failure);
        }
        let forwarded = ForwardedCall::new(forwarding);
        let reply = self.calls().call(call, Some(&forwarded)).await;
        let server = reply.server.clone();
        let answered = call::forward_reply(forwarded, reply);
        if let (Some(result), Some(server)) = (answered.result(), server) {
            self.open.view.forwarded_tasks.note(&server, result);
        }
        answered
    }

    /// Passes any request but a tool call on to one server: `resources/read`, `prompts/get`, `completion/complete`, `tasks/…`, and methods of
    /// extensions.
    ///
    /// `params` is a JSON object. Of the fields of its `_meta`, those that are reserved for the protocol are replaced by ours. `progress`
    /// receives the server's progress; when it is full, updates are dropped. [`Forwarding::params`] is ignored.
    ///
    /// Requests count within [`View::rate`](crate::View::rate) and [`View::max_in_flight`](crate::View::max_in_flight), except `tasks/cancel`, and take
    /// turns with those of other views, except `tasks/…`.
    ///
    /// Refused are requests about tasks that this view did not start by [`Toolset::forward_call`] or [adopt](Toolset::adopt_task), and methods
    /// that have other ways because they concern all views of the server: `tools/…`, subscriptions, log levels and the handshake.
    #[doc(hidden)]
    pub async fn forward(
        &self,
        server: &str,
        method: &str,
        params: &RawValue,
        forwarding: &Forwarding,
        progress: Option<mpsc::Sender<Progress>>,
    ) -> Forwarded {
        let request = PassedRequest {
            method,
            params,
            forwarding,
            progress,
        };
        match Forwarder::new(&self.open).pass(server, request).await {
            Ok(result) => Forwarded::Result(result),
            Err(forwarded) => *forwarded,
        }
    }

    /// Lets this toolset ask after a task that another toolset started by [`Toolset::forward_call`], for example before the program opened this one for
    /// the same client. The program vouches that the task belongs to the principal of this toolset.
    ///
    /// Fails if the toolset has no such server.
    #[doc(hidden)]
    pub fn adopt_task(&self, server: &str, id: &str) -> Result<(), Failure> {
        let name = ServerRequests::new(&self.open).parse_name(server)?;
        self.open.view.forwarded_tasks.add(&name, id);
        Ok(())
    }

    /// Lists the resources of all servers. Servers that are not ready are started and waited for, concurrently and at most for `patience`.
    pub async fn resources(&self, patience: Duration) -> ResourceListing {
        Resources::new(&self.open).list(patience).await
    }

    /// Reads a resource of a server, up to 4 MiB.
    ///
    /// ```no_run
    /// # async fn read(tools: &pegboard::Toolset) -> Result<(), pegboard::Failure> {
    /// let contents = tools.read_resource("docs", "file:///notes.md").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn read_resource(&self, server: impl AsRef<str>, uri: &str) -> Result<Vec<ResourceContents>, Failure> {
        self.read_resource_within(server, uri, MAX_READ).await
    }

    /// Reads a resource of a server. Fails if it has more than `limit` bytes, because a truncated resource would look complete.
    pub async fn read_resource_within(
        &self,
        server: impl AsRef<str>,
        uri: &str,
        limit: usize,
    ) -> Result<Vec<ResourceContents>, Failure> {
        Resources::new(&self.open).read(server.as_ref(), uri, limit).await
    }

    /// Expands a URI template of a server. If the server lists templates, this must be one of them.
    pub async fn expand_template(
        &self,
        server: impl AsRef<str>,
        template: &str,
        values: &Map<String, Value>,
    ) -> Result<String, Failure> {
        let resources = Resources::new(&self.open);
        resources.expand_template(server.as_ref(), template, values).await
    }

    /// Lists the prompts of all servers. Servers that are not ready are started and waited for, concurrently and at most for `patience`.
    pub async fn prompts(&self, patience: Duration) -> PromptListing {
        Prompts::new(&self.open).list(patience).await
    }

    /// Gets a prompt of a server with its arguments filled in. Arguments are strings; numbers and booleans are converted.
    pub async fn get_prompt(
        &self,
        server: impl AsRef<str>,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<FilledPrompt, Failure> {
        Prompts::new(&self.open).get(server.as_ref(), name, arguments).await
    }

    /// Requests completions for an argument that begins with `value`. `context` holds the arguments that are set already.
    pub async fn complete(
        &self,
        server: impl AsRef<str>,
        of: &CompletionOf,
        argument: &str,
        value: &str,
        context: &Map<String, Value>,
    ) -> Result<Completion, Failure> {
        completion::complete(&self.open, server.as_ref(), of, argument, value, context).await
    }

    /// Returns what a server declared about itself when its session began: protocol version, capabilities, `serverInfo` with all its fields, and
    /// instructions. Starts the server and waits until it is ready, for a limited time. Secrets are masked, and invisible characters removed.
    pub async fn server_info(&self, server: impl AsRef<str>) -> Result<ServerDeclaration, Failure> {
        read_declaration(&self.open, server.as_ref()).await
    }

    /// Subscribes to all notifications of a server from now on, across restarts. A slow subscriber misses some and is notified of that.
    pub fn events(&self, server: impl AsRef<str>) -> Result<ServerEvents, Failure> {
        Subscriptions::new(&self.open).listen(server.as_ref())
    }

    /// Subscribes to updates of a resource until the subscription is dropped. It is renewed in every new session, and keeps the server from
    /// being stopped as idle.
    pub async fn subscribe(&self, server: impl AsRef<str>, uri: &str) -> Result<Subscription, Failure> {
        Subscriptions::new(&self.open).subscribe(server.as_ref(), uri).await
    }

    /// Sets the log level of a server, for this session and all later ones. The log messages arrive through [`Toolset::events`].
    ///
    /// The server logs from a lower level on while that is [wanted](Toolset::want_logs).
    pub async fn set_log_level(&self, server: impl AsRef<str>, level: LogLevel) -> Result<(), Failure> {
        let subscriptions = Subscriptions::new(&self.open);
        subscriptions.set_log_level(server.as_ref(), level).await
    }

    /// Makes a server log from a level on, until the returned value is dropped. The server logs from the lowest level that is wanted.
    pub async fn want_logs(&self, server: impl AsRef<str>, level: LogLevel) -> Result<WantedLogs, Failure> {
        Subscriptions::new(&self.open).want_logs(server.as_ref(), level).await
    }

    /// Sets the roots of a server that this view owns, or of a shared server for all views. A server with a handshake is notified of the
    /// change; if it had no roots when it was started, it learns of them at its next start.
    pub fn set_roots(&self, server: impl AsRef<str>, roots: &[Root]) -> Result<(), Failure> {
        Subscriptions::new(&self.open).set_roots(server.as_ref(), roots)
    }

    /// Tells a server with a handshake that the roots of this view's callers have changed. The view's host answers when the server asks for them.
    pub fn roots_changed(&self, server: impl AsRef<str>) -> Result<(), Failure> {
        Subscriptions::new(&self.open).announce_roots(server.as_ref())
    }

    /// The untrusted servers whose output has reached the agent since the view was opened or [`Toolset::clear_taint`] was called. With
    /// [`View::after_untrusted`](crate::View::after_untrusted) or `taint` in the config, calls of high risk are restricted while there are any.
    pub fn taint(&self) -> Vec<ServerName> {
        self.open.view.rules.taint.servers()
    }

    /// Forgets which untrusted output has reached the agent. Call it only when that output is no longer in the model's context, or when a
    /// person has seen what the agent is about to do.
    pub fn clear_taint(&self) {
        self.open.view.rules.taint.clear();
    }

    /// Whether the view or its board is closed, so that calls are refused.
    pub fn is_closed(&self) -> bool {
        self.open.is_closed()
    }

    /// Closes the view: it accepts no more calls, the servers that it owns are stopped, and its spilled outputs are removed, unless other
    /// toolsets of its principal may read them. Waits until that is done. All clones of the toolset close together.
    pub async fn close(&self) {
        self.open.close().await;
    }

    fn calls(&self) -> ToolCalls<'_> {
        ToolCalls::new(&self.open, &self.selections)
    }
}

#[cfg(feature = "bench")]
impl Toolset {
    /// Resolves the name of a tool. Its server is started and waited for if needed.
    pub(crate) async fn resolve(&self, name: &str, deadline: Deadline) -> Option<Arc<call::Route>> {
        let (route, _) = Resolver::new(&self.open).resolve(name, deadline).await.ok()?;
        Some(route)
    }
}

#[cfg(test)]
impl Toolset {
    /// The revision of the view's servers. Snapshots of older revisions are rebuilt.
    pub(crate) fn revision(&self) -> (u64, u64) {
        self.open.servers.revision()
    }

    /// Whether both toolsets use the same route table.
    pub(crate) fn has_table_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.table(), &other.table())
    }

    pub(super) fn table(&self) -> Arc<call::RouteTable> {
        self.open.table()
    }

    pub(super) fn open_view(&self) -> &OpenView {
        &self.open
    }
}
