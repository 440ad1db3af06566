//! Tools that are plain Rust functions. They stand beside the tools of servers and are treated in the same way: named, filtered, checked,
//! queued, masked and recorded.

mod serve;

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use serde_json::{Map, Value, json};

use crate::{
    catalog::ToolKind,
    outcome::Answer,
    transport::{ByteSink, ByteSource, Dialer},
};

/// How many bytes may be on their way to or from native tools.
const PIPE: usize = 256 << 10;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Run = Arc<dyn Fn(Map<String, Value>) -> Boxed<Result<Answer, String>> + Send + Sync>;

/// A tool that is a Rust function.
#[derive(Clone)]
#[must_use]
pub struct NativeTool {
    name: String,
    definition: Map<String, Value>,
    run: Run,
}

impl NativeTool {
    /// A tool with a name, words about what it does, and a JSON Schema of its arguments. An `Err` is told to the model as the tool's failure.
    pub fn new<F, R>(name: impl Into<String>, description: impl Into<String>, schema: Value, run: F) -> Self
    where
        F: Fn(Map<String, Value>) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Answer, String>> + Send + 'static,
    {
        let name = name.into();
        let mut definition = Map::new();
        definition.insert("name".into(), name.as_str().into());
        definition.insert("description".into(), description.into().into());
        definition.insert("inputSchema".into(), schema);
        Self {
            name,
            definition,
            run: Arc::new(move |arguments| Box::pin(run(arguments))),
        }
    }

    /// Says that the tool only reads.
    pub fn read_only(self) -> Self {
        self.hint("readOnlyHint", true)
    }

    /// Says one of the hints that MCP knows about a tool's effects, such as `destructiveHint`.
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

/// Native tools: under one server's name on a board ([`Builder::in_process`](crate::Builder::in_process)), or those that one view brings along
/// ([`View::tools`](crate::View::tools)).
///
/// ```
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use pegboard::{Answer, Arguments, Config, NativeTool, NativeTools, Pegboard, ServerName, ToolCall};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
/// let shout = NativeTool::new("shout", "Says it louder.", schema, |arguments| async move {
///     let text = arguments["text"].as_str().ok_or("`text` must be a text")?;
///     Ok(Answer::from_text(text.to_uppercase()))
/// });
/// let board = Pegboard::builder(Config::default())
///     .in_process(ServerName::parse("local")?, NativeTools::new([shout]))
///     .open();
///
/// let call = ToolCall::new("local.shout").arguments(Arguments::parse(r#"{"text": "hello"}"#)?);
/// assert_eq!(board.toolset().call(call).await.text(), "HELLO");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct NativeTools(Arc<[NativeTool]>);

impl NativeTools {
    /// These tools.
    pub fn new(tools: impl IntoIterator<Item = NativeTool>) -> Self {
        Self(tools.into_iter().collect())
    }

    /// These tools and more. Of two with one name the later one counts.
    pub(crate) fn and(&self, more: &Self) -> Self {
        let stays = |tool: &&NativeTool| more.find(&tool.name).is_none();
        Self(self.0.iter().filter(stays).chain(more.0.iter()).cloned().collect())
    }

    /// The tools as a listing has them.
    pub(crate) fn items(&self) -> Vec<Value> {
        self.0.iter().map(|tool| tool.definition.clone().into()).collect()
    }

    fn find(&self, name: &str) -> Option<&NativeTool> {
        self.0.iter().find(|tool| tool.name == name)
    }
}

impl Dialer for NativeTools {
    fn dial(&self) -> (ByteSource, ByteSink) {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        // It ends when the board lets go of the other end.
        tokio::spawn(serve::serve(self.clone(), theirs));
        let (read, write) = tokio::io::split(ours);
        (Box::new(read), Box::new(write))
    }

    fn tool_kind(&self) -> ToolKind {
        ToolKind::Native
    }
}
