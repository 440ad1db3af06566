//! The definition of native tools.

use pegboard_base::BoxFuture;
use std::{fmt, sync::Arc};

use serde_json::{Map, Value, json};

use super::{
    context::ToolContext,
    into_answer::{IntoAnswer, ToolError},
};
use pegboard_tools::outcome::Answer;

/// The function of a tool.
type Run = Arc<dyn Fn(Map<String, Value>, ToolContext) -> BoxFuture<'static, Result<Answer, ToolError>> + Send + Sync>;

/// A tool that is a Rust function.
#[derive(Clone)]
#[must_use]
pub struct NativeTool {
    name: String,
    pub(super) definition: Map<String, Value>,
    pub(super) run: Run,
}

impl NativeTool {
    /// Creates a tool with a name, a description and a JSON Schema of its arguments. Its function returns an answer, a text or JSON; `?` turns every
    /// error and every text into an error of the tool, which the model sees.
    ///
    /// The function of [`NativeTool::with_context`] also knows the caller; that of `NativeTool::typed` (feature `schemars`) takes typed arguments.
    pub fn new<F, R, A>(name: impl Into<String>, description: impl Into<String>, schema: Value, run: F) -> Self
    where
        F: Fn(Map<String, Value>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<A, ToolError>> + Send + 'static,
        A: IntoAnswer,
    {
        Self::with_context(name, description, schema, move |arguments, _| run(arguments))
    }

    /// Like [`NativeTool::new`], for a function that also gets the context of the call and may return everything that is [`IntoAnswer`]: a
    /// text, JSON, or a `Result` with any error.
    ///
    /// ```
    /// # mod pegboard { pub use pegboard_client::{native as in_process, native::*}; }
    /// use pegboard::{NativeTool, in_process::ToolError};
    /// use serde_json::json;
    ///
    /// let tool = NativeTool::with_context("whoami", "Names the user.", json!({"type": "object"}), |_, context| async move {
    ///     let principal = context.caller().principal.cloned().ok_or("there is no user")?;
    ///     Ok::<_, ToolError>(format!("you are {principal}"))
    /// });
    /// ```
    pub fn with_context<F, R>(name: impl Into<String>, description: impl Into<String>, schema: Value, run: F) -> Self
    where
        F: Fn(Map<String, Value>, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output: IntoAnswer> + Send + 'static,
    {
        let name = name.into();
        let mut definition = Map::new();
        definition.insert("name".into(), name.as_str().into());
        definition.insert("description".into(), description.into().into());
        definition.insert("inputSchema".into(), schema);
        Self {
            name,
            definition,
            run: Arc::new(move |arguments, context| {
                let running = run(arguments, context);
                Box::pin(async { running.await.into_answer() })
            }),
        }
    }

    /// Describes the structured content of the tool's results by a JSON Schema.
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.definition.insert("outputSchema".into(), schema);
        self
    }

    /// Declares the tool as read-only.
    pub fn read_only(self) -> Self {
        self.hint("readOnlyHint", true)
    }

    /// Sets one of MCP's tool annotations, such as `destructiveHint`.
    pub fn hint(mut self, name: &str, value: bool) -> Self {
        let hints = self.definition.entry("annotations").or_insert_with(|| json!({}));
        if let Value::Object(hints) = hints {
            hints.insert(name.to_owned(), value.into());
        }
        self
    }
}

impl fmt::Debug for NativeTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NativeTool").field(&self.name).finish()
    }
}

/// A set of native tools: under one server name on a board (`Builder::in_process`), or in one view
/// (`View::tools`).
///
/// ```
/// # mod pegboard { pub use {pegboard_client::native::*, pegboard_tools::Answer}; }
/// use pegboard::{Answer, NativeTool, NativeTools};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
/// let shout = NativeTool::new("shout", "Says it louder.", schema, |arguments| async move {
///     let text = arguments["text"].as_str().ok_or("`text` must be a text")?;
///     Ok(Answer::from_text(text.to_uppercase()))
/// });
/// let tools = NativeTools::new([shout]);
/// ```
#[derive(Debug, Clone)]
pub struct NativeTools(Arc<[NativeTool]>);

impl NativeTools {
    /// Creates a set of these tools.
    pub fn new(tools: impl IntoIterator<Item = NativeTool>) -> Self {
        Self(tools.into_iter().collect())
    }

    /// The set with one more tool, in place of one of the same name.
    #[must_use]
    pub fn tool(self, tool: NativeTool) -> Self {
        self.and(&Self::new([tool]))
    }

    /// Joins two sets. A tool of `more` replaces one of the same name.
    #[doc(hidden)]
    pub fn and(&self, more: &Self) -> Self {
        let is_kept = |tool: &&NativeTool| more.find(&tool.name).is_none();
        Self(self.0.iter().filter(is_kept).chain(more.0.iter()).cloned().collect())
    }

    /// The definitions of the tools, as `tools/list` returns them.
    #[doc(hidden)]
    pub fn items(&self) -> Vec<Value> {
        self.0.iter().map(|tool| tool.definition.clone().into()).collect()
    }

    pub(super) fn find(&self, name: &str) -> Option<&NativeTool> {
        self.0.iter().find(|tool| tool.name == name)
    }
}

/// A set of one tool.
impl From<NativeTool> for NativeTools {
    fn from(tool: NativeTool) -> Self {
        Self::new([tool])
    }
}

impl<const N: usize> From<[NativeTool; N]> for NativeTools {
    fn from(tools: [NativeTool; N]) -> Self {
        Self::new(tools)
    }
}

impl From<Vec<NativeTool>> for NativeTools {
    fn from(tools: Vec<NativeTool>) -> Self {
        Self::new(tools)
    }
}

impl FromIterator<NativeTool> for NativeTools {
    fn from_iter<I: IntoIterator<Item = NativeTool>>(tools: I) -> Self {
        Self::new(tools)
    }
}
