//! What one agent's view of the board is made of.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Map, Value};

use super::{
    cache::Cache,
    embeddings::{Embedder, Embeddings},
    hook::{Budget, Called, Hook, Hooks},
    idempotency::IdempotencyKeys,
    result_options::ResultOptions,
    rules::Rules,
};
use crate::{
    event::EventSender,
    metrics::BoardCounters,
    name::{NameRules, NameStyle, ServerName},
    native::NativeTools,
    outcome::{Failure, Kind},
    provider::Provider,
    session::Root,
};

/// How one agent sees the board: which servers and tools, under which names, and what is done with its calls and their results.
///
/// Everything not set here is as the config says.
#[derive(Debug, Clone, Default)]
#[must_use]
#[non_exhaustive]
pub struct View {
    /// What status and events call it; set when it is opened.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) roots: Option<Vec<Root>>,
    /// The tools that it brings along, and the server's name under which they stand once it is opened.
    pub(crate) tools: Option<NativeTools>,
    pub(crate) home: Option<ServerName>,
    /// What it may do.
    pub(crate) rules: Rules,
    pub(crate) naming: Option<NameStyle>,
    pub(crate) name_rules: Option<NameRules>,
    pub(crate) provider: Provider,
    pub(crate) schema_budget: Option<usize>,
    /// How many tokens the definitions of all tools may take.
    pub(crate) tool_budget: Option<usize>,
    /// Whether a model may list and read resources.
    pub(crate) resource_tools: bool,
    /// Who finds tools by meaning.
    pub(crate) embeddings: Option<Arc<Embeddings>>,
    pub(crate) hooks: Hooks,
    /// Whether the calls of a batch that may change something run one after the other.
    pub(crate) writes_in_turn: bool,
    /// What becomes of results, and what was put aside of them.
    pub(crate) outputs: ResultOptions,
    // What is kept between calls. A toolset has its own: see `opened`.
    pub(crate) cache: Arc<Cache>,
    pub(crate) keys: Arc<IdempotencyKeys>,
    pub(crate) events: EventSender,
    pub(crate) tallies: Arc<BoardCounters>,
    /// Set when the view is closed, for calls that waited for a person's agreement until then.
    pub(crate) is_closed: Arc<AtomicBool>,
}

impl View {
    /// A view of everything, as the config says.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds tools that only this view has: those of one agent, or of one request.
    ///
    /// A model sees them under their own names, whatever the style of the other names is. Such a tool takes the place of a server's tool of
    /// the same name: that one is not listed, and whoever calls it, under whatever name, gets this one. The rest is as for every other tool:
    /// arguments are checked, results are masked and bounded, hooks and checks see the calls. What the view denies stays denied, but its list
    /// of allowed tools, its selection and its grants are about servers' tools only.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use pegboard::{Answer, Config, NativeTool, NativeTools, Pegboard, ToolCall, View};
    /// use serde_json::json;
    ///
    /// let basket = NativeTool::new("basket", "Shows the basket.", json!({"type": "object"}), |_| async {
    ///     Ok(Answer::from_text("3 apples"))
    /// });
    /// let board = Pegboard::open(Config::default());
    /// let tools = board.toolset_with(View::new().tools(NativeTools::new([basket])));
    /// assert_eq!(tools.call(ToolCall::new("basket")).await.text(), "3 apples");
    /// # Ok(())
    /// # }
    /// ```
    pub fn tools(mut self, tools: NativeTools) -> Self {
        self.tools = Some(match &self.tools {
            Some(before) => before.and(&tools),
            None => tools,
        });
        self
    }

    /// Names the view, for the events of servers that only this view uses. Without this it is `view-1`, `view-2` and so on.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into().into());
        self
    }

    /// Sets how tools are named.
    pub fn naming(mut self, style: NameStyle) -> Self {
        self.naming = Some(style);
        self
    }

    /// Sets the model provider that the tools are defined for: its rules for names, its dialect of JSON Schema.
    pub fn provider(mut self, provider: Provider) -> Self {
        self.provider = provider;
        self
    }

    /// Sets what names may look like, in place of the provider's rules.
    pub fn name_rules(mut self, rules: NameRules) -> Self {
        self.name_rules = Some(rules);
        self
    }

    /// Sets how many bytes of JSON the schema of one tool may have. A larger one loses what it can spare, the least important first.
    pub fn schema_budget(mut self, bytes: usize) -> Self {
        self.schema_budget = Some(bytes);
        self
    }

    /// Takes the style from the config where none is set.
    pub(crate) fn with_default_naming(mut self, style: &NameStyle) -> Self {
        self.naming.get_or_insert_with(|| style.clone());
        self
    }

    /// How tools are named, and what the names may look like.
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

    /// Sets about how many tokens the definitions of all tools may take. When they take more, the model is shown `find_tools`, `describe_tool` and
    /// `call_tool` instead, and the tools that the config says to load always.
    pub fn tool_budget(mut self, tokens: usize) -> Self {
        self.tool_budget = Some(tokens);
        self
    }

    /// The same as a share of a model's context window: at most so many percent of `window` tokens.
    ///
    /// ```
    /// # use pegboard::View;
    /// let view = View::new().tool_budget_percent(10, 200_000); // 20,000 tokens
    /// ```
    pub fn tool_budget_percent(self, percent: u8, window: usize) -> Self {
        let hundredths = window / 100 * usize::from(percent);
        self.tool_budget(hundredths + window % 100 * usize::from(percent) / 100)
    }

    /// Lets the model read resources: it is shown `list_resources`, `list_resource_templates` and `read_resource`, which reach the resources of
    /// all servers that this view may use. What they give is masked and bounded as results of tools are; bytes that are no picture are put
    /// aside under a handle. A server whose config leaves `resources` out of its `capabilities` is left alone.
    pub fn resource_tools(mut self) -> Self {
        self.resource_tools = true;
        self
    }

    /// Sets who turns texts into vectors, so that tools are found by what they mean as well as by their words: [`Toolset::search`] and
    /// `find_tools` then rank by both. The vectors of tools are kept, and shared with the clones of this view. Without answers in time, words
    /// have to do.
    ///
    /// [`Toolset::search`]: crate::Toolset::search
    pub fn embedder(mut self, embedder: impl Embedder) -> Self {
        self.embeddings = Some(Arc::new(Embeddings::new(embedder)));
        self
    }

    /// Adds a hook around every call, inside those that were added before.
    pub fn hook(mut self, hook: impl Hook) -> Self {
        self.hooks.around.push(Arc::new(hook));
        self
    }

    /// Sets who counts what replies cost, and refuses calls when nothing is left.
    pub fn budget(mut self, budget: impl Budget) -> Self {
        self.hooks.budget = Some(Arc::new(budget));
        self
    }

    /// Sets what every call carries in its `_meta`; a call's own facts win.
    pub fn meta(mut self, meta: impl Fn(Called<'_>) -> Map<String, Value> + Send + Sync + 'static) -> Self {
        self.hooks.meta = Some(Arc::new(meta));
        self
    }

    /// Runs the calls of a batch that may change something one after the other, in the order given.
    pub fn writes_in_turn(mut self) -> Self {
        self.writes_in_turn = true;
        self
    }

    /// The same view for one toolset: nothing that is kept between calls is shared with another one.
    pub(crate) fn opened(self, events: EventSender, tallies: Arc<BoardCounters>) -> Self {
        Self {
            cache: Arc::default(),
            keys: Arc::default(),
            outputs: self.outputs.opened(),
            events,
            tallies,
            is_closed: Arc::default(),
            ..self
        }
    }

    /// Whether a call that was let in may still be made.
    pub(super) fn check_open(&self) -> Result<(), Failure> {
        if self.is_closed.load(Ordering::Acquire) {
            let message = "this view was closed before the call was made. Go on without tools.";
            return Err(Failure::new(Kind::Unavailable, message));
        }
        Ok(())
    }
}
