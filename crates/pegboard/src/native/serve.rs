//! The few messages of MCP that native tools need, over a pair of streams in this process.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream},
    task::{AbortHandle, JoinError, JoinSet},
};

use super::NativeTools;
use crate::outcome::Answer;

/// The protocol version that native tools speak.
const VERSION: &str = "2025-11-25";
/// The largest message that is read. The board that writes them has a bound of its own.
const MAX_MESSAGE: usize = 64 << 20;
/// The most calls under way at once; the board's own limits come first.
const MAX_CALLS: usize = 1024;

/// Answers until the other end is closed. Calls under way end with it.
pub(super) async fn serve(tools: NativeTools, stream: DuplexStream) {
    let (read, mut write) = tokio::io::split(stream);
    let mut read = BufReader::new(read);
    let mut line = Vec::new();
    let mut calls = Calls::default();
    loop {
        let answer = tokio::select! {
            // What was read before another event came stays in `line`.
            more = read.read_until(b'\n', &mut line) => {
                if !matches!(more, Ok(1..)) || line.len() > MAX_MESSAGE {
                    return;
                }
                let message = serde_json::from_slice(&line).unwrap_or_default();
                line.clear();
                answer(&tools, &mut calls, message)
            }
            Some(ended) = calls.running.join_next_with_id(), if !calls.running.is_empty() => calls.ended(ended),
        };
        if let Some(answer) = answer {
            let mut text = answer.to_string();
            text.push('\n');
            if write.write_all(text.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// The calls under way.
#[derive(Default)]
struct Calls {
    running: JoinSet<Result<Answer, String>>,
    /// The request that each task answers.
    requests: HashMap<tokio::task::Id, Value>,
    /// How each request can be given up.
    handles: HashMap<String, AbortHandle>,
}

impl Calls {
    fn start(&mut self, tools: &NativeTools, id: &Value, params: &Value) -> Option<Value> {
        let name = params["name"].as_str().unwrap_or_default();
        let Some(tool) = tools.find(name) else {
            return Some(refusal(id, -32602, "there is no such tool"));
        };
        if self.running.len() >= MAX_CALLS {
            return Some(refusal(id, -32603, "too many calls are under way"));
        }
        let arguments = params["arguments"].as_object().cloned().unwrap_or_default();
        // The function itself runs within the task as well: it may panic before it has made a future.
        let run = tool.run.clone();
        let handle = self.running.spawn(async move { run(arguments).await });
        self.requests.insert(handle.id(), id.clone());
        self.handles.insert(id.to_string(), handle);
        None
    }

    fn cancel(&mut self, id: &Value) {
        if let Some(handle) = self.handles.get(&id.to_string()) {
            handle.abort();
        }
    }

    /// The answer to the request whose call has ended. One that was cancelled has none.
    fn ended(&mut self, ended: Result<(tokio::task::Id, Result<Answer, String>), JoinError>) -> Option<Value> {
        let (task, result) = match ended {
            Ok((task, result)) => (task, Some(result)),
            Err(error) if error.is_cancelled() => (error.id(), None),
            Err(panic) => (panic.id(), Some(Err("the tool panicked".to_owned()))),
        };
        let id = self.requests.remove(&task)?;
        self.handles.remove(&id.to_string());
        let result = match result? {
            Ok(answer) => result_of(answer, false),
            Err(problem) => result_of(Answer::from_text(problem), true),
        };
        Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }
}

fn answer(tools: &NativeTools, calls: &mut Calls, mut message: Value) -> Option<Value> {
    let (id, params) = (message["id"].take(), message["params"].take());
    let result = match message["method"].as_str()? {
        "tools/call" => return calls.start(tools, &id, &params),
        "notifications/cancelled" => {
            calls.cancel(&params["requestId"]);
            return None;
        }
        "initialize" => json!({
            "protocolVersion": VERSION,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "native", "version": env!("CARGO_PKG_VERSION")},
        }),
        "tools/list" => {
            let definitions: Vec<_> = tools.0.iter().map(|tool| &tool.definition).collect();
            json!({ "tools": definitions })
        }
        "ping" => json!({}),
        _ if id.is_null() => return None,
        _ => return Some(refusal(&id, -32601, "native tools do not know this method")),
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn refusal(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

fn result_of(answer: Answer, is_error: bool) -> Value {
    let mut result = Map::new();
    result.insert("content".into(), json!(answer.content));
    result.insert("isError".into(), is_error.into());
    if let Some(structured) = answer.structured {
        result.insert("structuredContent".into(), structured);
    }
    if let Some(meta) = answer.meta {
        result.insert("_meta".into(), meta.into());
    }
    result.into()
}
