//! A minimal MCP server for native tools, over a stream in this process.

use std::collections::HashMap;

use pegboard_protocol::{
    Version, code,
    method::{self, notification},
};
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream},
    sync::mpsc,
    task::{AbortHandle, JoinError, JoinSet},
};

use super::{context::ToolContext, into_answer::ToolError, tool::NativeTools};
use pegboard_tools::outcome::Answer;

/// The protocol version that native tools speak.
const VERSION: &str = Version::LATEST_LEGACY.as_str();
/// The largest message that is read. The board that writes them enforces its own limit.
const MAX_MESSAGE: usize = 64 << 20;
/// The most calls in flight. No setting of a board allows more.
const MAX_CALLS: usize = 65_536;
/// The most progress reports that wait to be written. Further ones are dropped.
const MAX_REPORTS: usize = 256;

/// Serves requests until the other end is closed. Calls in flight are cancelled then.
pub(super) async fn serve(tools: NativeTools, stream: DuplexStream) {
    let (read, mut write) = tokio::io::split(stream);
    let mut read = BufReader::new(read);
    let mut line = Vec::new();
    let (report, mut reports) = mpsc::channel(MAX_REPORTS);
    let mut calls = Calls::new(report);
    loop {
        let response = tokio::select! {
            // Cancel-safe: what was read before another branch completed stays in `line`.
            more = read.read_until(b'\n', &mut line) => {
                if !matches!(more, Ok(1..)) || line.len() > MAX_MESSAGE {
                    return;
                }
                let message = serde_json::from_slice(&line).unwrap_or_default();
                line.clear();
                handle(&tools, &mut calls, message)
            }
            Some(report) = reports.recv() => Some(report),
            Some(ended) = calls.running.join_next_with_id(), if !calls.running.is_empty() => {
                // The reports of a call come before its response.
                for _ in 0..MAX_REPORTS {
                    let Ok(report) = reports.try_recv() else { break };
                    if write_line(&mut write, &report).await.is_err() {
                        return;
                    }
                }
                calls.finish(ended)
            }
        };
        if let Some(response) = response
            && write_line(&mut write, &response).await.is_err()
        {
            return;
        }
    }
}

async fn write_line(write: &mut (impl AsyncWrite + Unpin), message: &Value) -> std::io::Result<()> {
    let mut text = message.to_string();
    text.push('\n');
    write.write_all(text.as_bytes()).await
}

/// The calls in flight.
struct Calls {
    running: JoinSet<Result<Answer, ToolError>>,
    /// The request id of each task.
    requests: HashMap<tokio::task::Id, Value>,
    /// The abort handle of each request, by its id.
    handles: HashMap<String, AbortHandle>,
    /// Receives the progress reports of all calls.
    report: mpsc::Sender<Value>,
}

impl Calls {
    fn new(report: mpsc::Sender<Value>) -> Self {
        Self {
            running: JoinSet::new(),
            requests: HashMap::new(),
            handles: HashMap::new(),
            report,
        }
    }

    /// Starts a call. Returns a response only if it fails at once.
    fn start(&mut self, tools: &NativeTools, id: &Value, mut params: Value) -> Option<Value> {
        let Some(tool) = tools.find(params["name"].as_str().unwrap_or_default()) else {
            return Some(error_response(id, code::INVALID_PARAMS, "there is no such tool"));
        };
        if self.running.len() >= MAX_CALLS {
            return Some(error_response(id, code::INTERNAL_ERROR, "too many calls are under way"));
        }
        let arguments = match params["arguments"].take() {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
        let context = ToolContext::from_meta(params["_meta"].take(), &self.report);
        // The function is called within the task too, because it may panic before it returns a future.
        let run = tool.run.clone();
        let handle = self.running.spawn(async move { run(arguments, context).await });
        self.requests.insert(handle.id(), id.clone());
        self.handles.insert(id.to_string(), handle);
        None
    }

    fn cancel(&mut self, id: &Value) {
        if let Some(handle) = self.handles.get(&id.to_string()) {
            handle.abort();
        }
    }

    /// The response to the request whose call has ended. A cancelled request gets none.
    fn finish(&mut self, ended: Result<(tokio::task::Id, Result<Answer, ToolError>), JoinError>) -> Option<Value> {
        let (task, result) = match ended {
            Ok((task, result)) => (task, Some(result)),
            Err(error) if error.is_cancelled() => (error.id(), None),
            Err(panic) => (panic.id(), Some(Err(ToolError::new("the tool panicked")))),
        };
        let id = self.requests.remove(&task)?;
        self.handles.remove(&id.to_string());
        let result = match result? {
            Ok(answer) => result_of(answer, false),
            Err(problem) => result_of(problem.into_inner(), true),
        };
        Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }
}

/// Handles one message. Returns the response, if it has one already.
fn handle(tools: &NativeTools, calls: &mut Calls, mut message: Value) -> Option<Value> {
    let (id, params) = (message["id"].take(), message["params"].take());
    let result = match message["method"].as_str()? {
        method::TOOLS_CALL => return calls.start(tools, &id, params),
        notification::CANCELLED => {
            calls.cancel(&params["requestId"]);
            return None;
        }
        method::INITIALIZE => json!({
            "protocolVersion": VERSION,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "native", "version": env!("CARGO_PKG_VERSION")},
        }),
        method::TOOLS_LIST => json!({ "tools": tools.items() }),
        method::PING => json!({}),
        _ if id.is_null() => return None,
        _ => {
            return Some(error_response(
                &id,
                code::METHOD_NOT_FOUND,
                "native tools do not know this method",
            ));
        }
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn error_response(id: &Value, code: i64, message: &str) -> Value {
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
