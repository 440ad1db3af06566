//! Executors of your own, mixed with a board: one with tools that need no server, and one around all tools that limits what an agent does.
//!
//! For plain functions, `NativeTools` is simpler: see `in_process_server`. An executor is for tools that come from elsewhere (another protocol, a
//! database of macros, a queue of human workers), and for behaviour around every call.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, ensure};
use pegboard::{
    Answer, BoxFuture, Config, Kind, ListedTool, Listing, NativeTool, NativeTools, Pegboard, Provider, Reply,
    ServerName, ToolCall, ToolExecutor, View, toolset::ChainedTools,
};
use serde_json::{Value, json};

/// How long a listing waits for servers that start.
const PATIENCE: Duration = Duration::from_secs(30);

/// The memory of one agent, as two tools.
#[derive(Default)]
struct Memory(Mutex<BTreeMap<String, String>>);

impl Memory {
    /// The value of a `key`, stored if there is a `value`.
    fn answer(&self, call: &ToolCall) -> Reply {
        let arguments: Value = serde_json::from_str(call.arguments.as_str()).unwrap_or_default();
        let Some(key) = arguments["key"].as_str() else {
            return Reply::refused(call, Kind::InvalidArguments, "`key` is missing");
        };
        let mut facts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (call.name.as_str(), arguments["value"].as_str()) {
            ("remember", Some(value)) => {
                facts.insert(key.to_owned(), value.to_owned());
                Reply::done(call, "remembered")
            }
            ("remember", None) => Reply::refused(call, Kind::InvalidArguments, "`value` is missing"),
            _ => match facts.get(key) {
                Some(value) => Reply::done(call, value.as_str()),
                None => Reply::failed(call, "there is nothing under that key"),
            },
        }
    }
}

impl ToolExecutor for Memory {
    fn list(&self, _patience: Duration) -> BoxFuture<'_, Listing> {
        let text = json!({"type": "string"});
        let schema = |properties: Value| json!({"type": "object", "properties": properties, "required": ["key"]});
        let remember = schema(json!({"key": text, "value": text}));
        let tools = [
            ListedTool::new("remember", "Stores a fact.", remember),
            ListedTool::new("recall", "Finds a fact.", schema(json!({"key": text}))),
        ];
        // A definition that is not valid is left out. These are.
        Box::pin(async { Listing::from_tools(tools.into_iter().flatten()) })
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'_, Reply> {
        Box::pin(async move {
            match call.name.as_str() {
                "remember" | "recall" => self.answer(&call),
                // Says that the next executor of a chain may have it.
                _ => Reply::refused(&call, Kind::UnknownTool, "the memory has no such tool"),
            }
        })
    }
}

/// Any tools, with a limit on the number of calls.
struct AtMost<T> {
    tools: T,
    calls: AtomicUsize,
}

impl<T: ToolExecutor> ToolExecutor for AtMost<T> {
    fn list(&self, patience: Duration) -> BoxFuture<'_, Listing> {
        self.tools.list(patience)
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'_, Reply> {
        let left = self
            .calls
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        match left {
            Ok(_) => self.tools.call(call),
            Err(_) => {
                Box::pin(
                    async move { Reply::refused(&call, Kind::LimitExceeded, "no more calls are allowed; answer now") },
                )
            }
        }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.tools.close()
    }

    fn is_closed(&self) -> bool {
        self.tools.is_closed()
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let on_call = NativeTool::new(
        "on_call",
        "Tells who is on call.",
        json!({"type": "object"}),
        |_| async { Ok(Answer::from_text("Mara")) },
    );
    let board = Pegboard::builder(Config::default())
        .in_process(ServerName::parse("people")?, NativeTools::new([on_call.read_only()]))
        .open();

    // The board comes last: it looks for unknown names among servers that are still starting.
    let toolset = board.toolset_with(View::new().provider(Provider::OpenAi));
    let tools = AtMost {
        tools: ChainedTools::new().and(Memory::default()).and(toolset),
        calls: AtomicUsize::new(4),
    };

    // An agent sees one list, in the format of its model.
    let listing = tools.list(PATIENCE).await;
    for definition in listing.definitions() {
        println!("{}", definition["function"]["name"].as_str().context("a name")?);
    }
    ensure!(listing.tools.len() == 3, "{:?}", listing.warnings);

    let fact = json!({"key": "on call", "value": "Mara"});
    for (name, arguments, expected) in [
        ("people__on_call", json!({}), "Mara"),
        ("remember", fact, "remembered"),
        ("recall", json!({"key": "on call"}), "Mara"),
    ] {
        let reply = tools.call(ToolCall::new(name).arguments(arguments)).await;
        println!("{name} → {}", reply.text());
        ensure!(reply.text() == expected && !reply.is_error());
    }
    let unknown = tools.call(ToolCall::new("forget")).await;
    ensure!(unknown.outcome.kind() == Kind::UnknownTool, "{}", unknown.text());
    let fifth = tools.call(ToolCall::new("recall")).await;
    println!("the fifth call → {}", fifth.text());
    ensure!(fifth.outcome.kind() == Kind::LimitExceeded && !fifth.outcome.may_have_executed());

    tools.close().await;
    board.shutdown().await;
    Ok(())
}
