//! The configuration and the state of one agent's view of the board.

mod from_config;
mod permissions;
mod results;

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serde_json::{Map, Value};

use super::{
    audience::Audience,
    cache::Cache,
    call_limits::CallLimits,
    call_memory::CallMemory,
    embeddings::{Embedder, Embeddings},
    error::closed,
    forwarded_tasks::ForwardedTasks,
    hook::{Budget, Called, Hook, Hooks},
    idempotency::IdempotencyKeys,
    journal::Journal,
    owner_usage::{InFlightSlot, OwnerUsage},
    rates::Limited,
    result_options::ResultOptions,
    view_rules::Rules,
};
use crate::{
    audit::AuditLog,
    event::EventSender,
    metrics::{BoardCounters, SumCounters, ViewCounters},
};
use pegboard_base::{
    caller::{Caller, CallerView, Principal, QuotaOwner},
    name::{NameRules, NameStyle, ServerName},
    telemetry::Telemetry,
};
use pegboard_client::{
    credential::{CallerRights, Credentials, ViewCredentials},
    native::NativeTools,
    session::{Host, HostHandle, OnBehalf, Root},
};
use pegboard_config::Rate;
use pegboard_tools::tool_call::ToolCall;
use pegboard_tools::{args::CompiledSchemas, outcome::Failure, provider::Provider};

/// What a view lists of servers that are not ready.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Lists {
    /// Nothing, after a listing has waited for them.
    #[default]
    Nothing,
    /// What was last known of them.
    Known,
    /// What was last known of them; the view calls no tool.
    Catalog,
}

/// How one agent sees the board: which servers and tools, under which names, and how its calls and their results are processed.
///
/// Everything not set here follows the config.
#[derive(Debug, Clone, Default)]
#[must_use]
#[non_exhaustive]
pub struct View {
    /// The name in status and events; set when the view is opened.
    pub(crate) name: Option<Arc<str>>,
    /// Whom the calls are made for.
    pub(crate) principal: Option<Principal>,
    /// Which of the principal's access tokens may be exchanged.
    pub(crate) caller_rights: Option<CallerRights>,
    /// To whom calls that wait belong; set when the view is opened.
    pub(crate) owner: QuotaOwner,
    pub(crate) credentials: Option<ViewCredentials>,
    /// The variables of header templates.
    pub(crate) variables: BTreeMap<String, String>,
    /// Answers what servers ask during the calls of this view.
    pub(crate) host: Option<HostHandle>,
    pub(crate) roots: Option<Vec<Root>>,
    /// The view's own tools, and the name of the in-process server that holds them once the view is opened.
    pub(crate) tools: Option<NativeTools>,
    pub(crate) home: Option<ServerName>,
    /// What the view may do.
    pub(crate) rules: Rules,
    pub(crate) naming: Option<NameStyle>,
    pub(crate) name_rules: Option<NameRules>,
    pub(crate) provider: Provider,
    pub(crate) schema_budget: Option<usize>,
    /// The most tokens that the definitions of all tools may take.
    pub(crate) tool_budget: Option<usize>,
    /// Whether a model may list and read resources.
    pub(crate) resource_tools: bool,
    /// What it lists of servers that are not ready.
    pub(crate) lists: Lists,
    /// Searches tools by meaning.
    pub(crate) embeddings: Option<Arc<Embeddings>>,
    pub(crate) hooks: Hooks,
    /// Whether calls of a batch that may write run one after the other.
    pub(crate) writes_in_turn: bool,
    /// Who reads the texts of failures.
    pub(crate) audience: Audience,
    /// How results are processed, and the spilled outputs.
    pub(crate) result_options: ResultOptions,
    // State that outlives a call: see `opened`.
    /// The cached answers, idempotency keys and spilled outputs of a principal; set when the view is opened.
    pub(crate) memory: Option<CallMemory>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) idempotency_keys: Arc<IdempotencyKeys>,
    /// The tasks that clients of this view poll by themselves.
    pub(crate) forwarded_tasks: Arc<ForwardedTasks>,
    pub(crate) events: EventSender,
    pub(crate) tallies: Arc<BoardCounters>,
    /// The label in metrics, and the counters of all views that have it; the latter are set when the view is opened.
    pub(crate) label: Option<Arc<str>>,
    pub(crate) label_counts: Option<Arc<ViewCounters>>,
    /// The counters of the principal; set when the view is opened.
    pub(crate) principal_counts: Option<Arc<SumCounters>>,
    /// How often the view's owner may call, and how many of its calls may be in flight.
    pub(crate) rate: Option<Rate>,
    pub(crate) max_in_flight: Option<usize>,
    /// What the owner uses of these limits; set when the view is opened.
    pub(crate) usage: Arc<OwnerUsage>,
    /// The repeated calls of the view.
    pub(crate) call_limits: Arc<CallLimits>,
    pub(crate) audit: Option<AuditLog>,
    /// Notes the calls in flight.
    pub(crate) journal: Journal,
    /// Receives the spans of calls; set when the view is opened.
    pub(crate) telemetry: Option<Arc<dyn Telemetry>>,
    /// The compiled schemas of the board's tools.
    pub(crate) compiled_schemas: Arc<CompiledSchemas>,
    /// Set when the view is closed, for calls that waited for approval meanwhile.
    pub(crate) is_closed: Arc<AtomicBool>,
}

impl View {
    /// Whether the view only lists what is known of the servers.
    pub(crate) fn is_catalog_only(&self) -> bool {
        self.lists == Lists::Catalog
    }

    /// Whether the view lists what was last known of servers that are not ready.
    pub(crate) fn lists_known(&self) -> bool {
        self.lists == Lists::Known
    }

    /// Creates a view of all servers, with the settings of the config.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds tools that only this view has: those of one agent, or of one request.
    ///
    /// A model sees them under their own names, in every naming style. Such a tool replaces a server's tool of the same name: that one is
    /// not listed, and calls of it, under any of its names, run this one. Everything else works as for other tools: arguments are
    /// validated, results are masked and truncated, hooks and checks see the calls. What the view denies stays denied, but its list of
    /// allowed tools, its selection and its grants apply to servers' tools only.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use pegboard::{Config, NativeTool, Pegboard, ToolCall, View};
    /// use serde_json::json;
    ///
    /// let basket = NativeTool::new("basket", "Shows the basket.", json!({"type": "object"}), |_| async {
    ///     Ok("3 apples")
    /// });
    /// let board = Pegboard::open(Config::default());
    /// let tools = board.toolset_with(View::new().tools(basket));
    /// assert_eq!(tools.call(ToolCall::new("basket")).await.text(), "3 apples");
    /// # Ok(())
    /// # }
    /// ```
    pub fn tools(mut self, tools: impl Into<NativeTools>) -> Self {
        let tools = tools.into();
        self.tools = Some(match &self.tools {
            Some(before) => before.and(&tools),
            None => tools,
        });
        self
    }

    /// Names the view, for the audit log and for the events of servers that only this view uses. The default is `view-1`, `view-2` and so on.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into().into());
        self
    }

    /// Sets the label under which metrics count the calls of this view, together with those of other views that have it. Labels should be few,
    /// such as names of the config. Without one, and without [`Builder::metric_labels`](crate::Builder::metric_labels), nothing is counted by view.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into().into());
        self
    }

    /// Sets whom the calls of this view are made for. Callbacks see it in their [`Caller`](crate::Caller).
    ///
    /// Views with equal principals and [credentials](View::credentials) share connections to remote servers, with their sessions and catalogs;
    /// others never do. The connections stay open for a minute after the last of these views, so a view can be opened for each request.
    pub fn principal(mut self, principal: impl Into<Principal>) -> Self {
        self.principal = Some(principal.into());
        self
    }

    /// Sets which of the principal's [access tokens](pegboard_client::credential::CallerTokens) is exchanged for servers whose config says so. Views of one
    /// principal with other rights share no connections to remote servers. Without it no token is exchanged.
    #[doc(hidden)]
    pub fn caller_rights(mut self, rights: CallerRights) -> Self {
        self.caller_rights = Some(rights);
        self
    }

    /// Sets the credentials that this view's servers are used with, in addition to those of the config.
    ///
    /// Every request to a server is made with the credentials of the view that it is made for: views with equal principals share a connection
    /// only if they are clones with one provider, have clones of one `Arc`, or if [`Credentials::identity`] says that their credentials allow the
    /// same. A view without a principal shares its connections with no other view. A stdio server is shared by all views unless
    /// [`Credentials::covers`] returns `true` for its process; it then has a process for each principal and identity.
    ///
    /// ```
    /// use pegboard::{BoxFuture, Credential, Credentials, View, credential::{CredentialError, CredentialRequest}};
    ///
    /// struct UserToken(String);
    ///
    /// impl Credentials for UserToken {
    ///     fn credential<'a>(
    ///         &'a self,
    ///         _request: CredentialRequest<'a>,
    ///     ) -> BoxFuture<'a, Result<Credential, CredentialError>> {
    ///         Box::pin(async { Ok(Credential::bearer(&self.0)) })
    ///     }
    /// }
    ///
    /// let view = View::new().principal("alice").credentials(UserToken("token of alice".to_owned()));
    /// ```
    pub fn credentials(mut self, credentials: impl Credentials) -> Self {
        self.credentials = Some(ViewCredentials::new(credentials));
        self
    }

    /// Sets a variable: `{{NAME}}` in the `headers` of a server's config is replaced by its value for this view. `{{SESSION_ID}}` is the view's
    /// name unless it is set here, and `{{PRINCIPAL}}` is always the view's principal. A header is omitted if one of its variables is not set.
    ///
    /// Each view has its own connection to a server whose headers have variables, except `{{PRINCIPAL}}`, whose connection the views of a
    /// principal share. The values are not masked: secrets belong in [`View::credentials`]. If a value cannot be sent in a header, calls of the
    /// server fail with an error that names the header.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Sets the host that answers what servers ask during the calls of this view, in place of the board's host: elicitation and sampling.
    ///
    /// Servers must be offered what they may ask for. In protocol version 2026-07-28 every request declares what the host of the calling
    /// view offers. Before that, the handshake declares it for the whole connection: on the connections that only this view uses, what this
    /// host offers; on those of a principal, what the host of its first view offers; on those that views share, what the board's host offers ([`Builder::host`](crate::Builder::host)). So for shared servers,
    /// offer it on the board's host and answer it per view. A request for something that the view's host does not offer is rejected as
    /// unsupported.
    ///
    /// `HostContext` describes how requests are attributed to calls.
    pub fn host(mut self, host: impl Host) -> Self {
        self.host = Some(HostHandle::new(Arc::new(host)));
        self
    }

    /// Sets the naming style.
    pub fn naming(mut self, style: NameStyle) -> Self {
        self.naming = Some(style);
        self
    }

    /// Sets the model provider that the tools are defined for: its rules for names, its dialect of JSON Schema. Texts then name tools as their
    /// definitions do, instead of `server.tool`.
    pub fn provider(mut self, provider: Provider) -> Self {
        self.provider = provider;
        if self.audience == Audience::Agent {
            self.audience = Audience::Model;
        }
        self
    }

    /// Sets which names are valid, in place of the provider's rules.
    pub fn name_rules(mut self, rules: NameRules) -> Self {
        self.name_rules = Some(rules);
        self
    }

    /// Sets the most bytes of JSON that the schema of one tool may have. A larger schema is reduced, least important parts first.
    pub fn schema_budget(mut self, bytes: usize) -> Self {
        self.schema_budget = Some(bytes);
        self
    }

    /// Sets the naming style of the config if the view has none.
    pub(crate) fn with_default_naming(mut self, style: &NameStyle) -> Self {
        self.naming.get_or_insert_with(|| style.clone());
        self
    }

    /// The naming style, and the rules for valid names.
    pub(crate) fn names(&self) -> (NameStyle, NameRules) {
        let rules = self.name_rules.unwrap_or_else(|| self.provider.name_rules());
        (self.naming.clone().unwrap_or_default(), rules)
    }

    pub(crate) fn dialect(&self) -> (Provider, Option<usize>) {
        (self.provider, self.schema_budget)
    }

    /// Sets the roots of the servers that only this view uses, instead of those of their config.
    pub fn roots(mut self, roots: Vec<Root>) -> Self {
        self.roots = Some(roots);
        self
    }

    pub(crate) fn own_roots(&self) -> Option<&[Root]> {
        self.roots.as_deref()
    }

    /// Sets about how many tokens the definitions of all tools may take. When they take more, the model sees `find_tools`, `describe_tool`
    /// and `call_tool` instead, and the tools that the config always loads.
    pub fn tool_budget(mut self, tokens: usize) -> Self {
        self.tool_budget = Some(tokens);
        self
    }

    /// Sets the tool budget as a share of a model's context window: at most `percent` of `window` tokens.
    ///
    /// ```
    /// # use pegboard::View;
    /// let view = View::new().tool_budget_percent(10, 200_000); // 20,000 tokens
    /// ```
    pub fn tool_budget_percent(self, percent: u8, window: usize) -> Self {
        let hundredths = window / 100 * usize::from(percent);
        self.tool_budget(hundredths + window % 100 * usize::from(percent) / 100)
    }

    /// Lets the model read resources through `list_resources`, `list_resource_templates` and `read_resource`, which reach the resources of
    /// all servers that this view may use. Their results are masked and truncated like results of tools; binary content other than images
    /// is spilled and replaced with a handle. Servers whose config leaves `resources` out of `capabilities` are skipped.
    pub fn resource_tools(mut self) -> Self {
        self.resource_tools = true;
        self
    }

    /// Sets the embedding model, so that tools are found by meaning as well as by keywords: [`Toolset::search`] and `find_tools` then rank
    /// by both. The vectors of tools are cached and shared with clones of this view. If vectors do not arrive in time, the search uses
    /// keywords only.
    ///
    /// [`Toolset::search`]: crate::Toolset::search
    pub fn embedder(mut self, embedder: impl Embedder) -> Self {
        self.embeddings = Some(Arc::new(Embeddings::new(embedder)));
        self
    }

    /// Adds a hook around every call, inside those added before.
    pub fn hook(mut self, hook: impl Hook) -> Self {
        self.hooks.around.push(Arc::new(hook));
        self
    }

    /// Sets the budget that counts the tokens of replies, and refuses calls when it is used up.
    pub fn budget(mut self, budget: impl Budget) -> Self {
        self.hooks.budget = Some(Arc::new(budget));
        self
    }

    /// Sets a function that adds entries to the `_meta` of every call; the call's own entries win.
    pub fn meta(mut self, meta: impl Fn(Called<'_>) -> Map<String, Value> + Send + Sync + 'static) -> Self {
        self.hooks.meta = Some(Arc::new(meta));
        self
    }

    /// Makes a view that lists tools, resources and prompts and calls none, for dashboards and APIs.
    ///
    /// It gets no instances of session-scoped servers, so opening it starts nothing. A server is started only if nothing is known of it, and
    /// the tools of a server that is down are kept, with [`ListedTool::available`](crate::ListedTool::available) set to `false`.
    pub fn catalog_only(mut self) -> Self {
        self.lists = Lists::Catalog;
        self
    }

    /// Lists what was last known of servers that are starting or down, instead of waiting for them: for clients that list once.
    ///
    /// A listing still starts such a server, and a call waits for it or fails as it would otherwise. A server that is down stays listed for an
    /// hour from the beginning of its outage, with [`ListedTool::available`](crate::ListedTool::available) set to `false`. One that needs a
    /// sign-in is not listed. [`Builder::catalog_store`](crate::Builder::catalog_store) has what earlier runs of the program have seen.
    pub fn list_known(mut self) -> Self {
        self.lists = Lists::Known;
        self
    }

    /// Answers for a client of the program, such as one that calls over MCP, which knows only the tools that it was shown.
    ///
    /// Built-in tools such as `find_tools` and `read_output` are listed under these names, with a prefix only if another tool has the name.
    /// Failures and notes name tools as they are listed, instead of `server.tool`. A tool that the view does not show is answered exactly like
    /// one that does not exist; only the audit log tells them apart. By default a failure says why the tool may not be used.
    pub fn for_client(mut self) -> Self {
        self.audience = Audience::Client;
        self
    }

    /// Runs the calls of a batch that may write one after the other, in the order given.
    pub fn writes_in_turn(mut self) -> Self {
        self.writes_in_turn = true;
        self
    }

    /// Prepares the view for one toolset: state that outlives a call is not shared with other toolsets, except the memory of a principal.
    pub(crate) fn prepare_for_toolset(
        self,
        name: Arc<str>,
        number: u64,
        events: EventSender,
        tallies: Arc<BoardCounters>,
    ) -> Self {
        let owner = self.principal.clone().map(QuotaOwner::Principal);
        let memory = self.memory.clone();
        let memory = memory.unwrap_or_else(|| CallMemory::new(self.result_options.spill_limits()));
        Self {
            name: Some(name),
            owner: owner.unwrap_or(QuotaOwner::View(number)),
            cache: memory.cache.clone(),
            idempotency_keys: memory.idempotency_keys.clone(),
            forwarded_tasks: Arc::default(),
            call_limits: Arc::default(),
            result_options: self.result_options.prepare_with(memory.spill.clone()),
            memory: Some(memory),
            events,
            tallies,
            is_closed: Arc::default(),
            ..self
        }
    }

    /// The part of [`Caller`] that all calls of this view have in common.
    pub(crate) fn caller_view(&self) -> CallerView<'_> {
        CallerView {
            name: self.name.as_deref().unwrap_or_default(),
            principal: self.principal.as_ref(),
        }
    }

    /// The context of a call for the callbacks of the program.
    pub(super) fn caller<'a>(&'a self, call: &'a ToolCall) -> Caller<'a> {
        self.caller_view().caller(&call.id, &call.meta)
    }

    /// For whom the request of a call is sent.
    pub(super) fn on_behalf<'a>(&'a self, call: &'a ToolCall) -> OnBehalf<'a> {
        self.on_behalf_of(&call.id, &call.meta)
    }

    /// For whom a request is sent, by the id and the metadata of the call.
    pub(crate) fn on_behalf_of<'a>(&'a self, call: &'a str, meta: &'a Map<String, Value>) -> OnBehalf<'a> {
        OnBehalf {
            caller: self.caller_view().caller(call, meta),
            host: self.host.as_ref(),
        }
    }

    /// Counts a call in flight until the returned value is dropped, or refuses it. `None` without a limit.
    pub(super) fn begin_call(&self) -> Result<Option<InFlightSlot>, Failure> {
        self.max_in_flight.map(|most| self.usage.begin(most)).transpose()
    }

    /// Counts a request that is no tool call within the limits of the view, or refuses it.
    pub(crate) async fn begin_request(&self) -> Result<Option<InFlightSlot>, Failure> {
        let slot = self.begin_call()?;
        if let Some(rate) = self.rate {
            let spent = self.usage.spend([Some((Limited::View, rate))], String::new).await;
            spent.map_err(|denied| denied.rule.explain(*denied.failure, None))?;
        }
        Ok(slot)
    }

    /// Returns an error if the view was closed after the call was admitted.
    pub(super) fn check_open(&self) -> Result<(), Failure> {
        if self.is_closed.load(Ordering::Acquire) {
            return Err(closed("this view was closed before the call was made"));
        }
        Ok(())
    }
}
