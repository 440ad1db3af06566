//! A scripted tool: its definition and its behaviour.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::question::{Effect, LogLine, Question};

/// The interval at which clients should poll tasks.
const POLL_MS: u64 = 50;

/// One tool of a fake server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tool {
    /// The definition as `tools/list` shows it.
    pub definition: Map<String, Value>,
    /// Its result.
    pub answer: Answer,
    /// The delay before the response; an argument `delay_ms` is added.
    pub delay_ms: u64,
    /// The number of progress notifications before the response, if the request has a token.
    pub progress: u64,
    /// The time between two progress notifications.
    pub progress_every_ms: u64,
    /// The requests that it sends to the client during the call, one after the other (legacy era).
    pub asks: Vec<Ask>,
    /// How many times it responds `input_required` first (modern era).
    pub input_rounds: u32,
    /// The gate at which it waits until the test opens it.
    pub gate: Option<String>,
    /// The JSON Schema of its elicitation form; a colour if absent.
    pub form: Option<Value>,
    /// Whether its calls become tasks. A task is completed when it is first polled.
    pub task: bool,
    /// The rounds of questions to the client, in the form of either era. The answers are appended to the result.
    pub questions: Vec<Vec<Question>>,
    /// The log messages during the call.
    pub logs: Vec<LogLine>,
    /// The changes that the call makes.
    pub effects: Vec<Effect>,
}

impl Default for Tool {
    fn default() -> Self {
        Self::new("tool")
    }
}

impl Tool {
    /// A tool that takes any object and returns `ok`.
    pub fn new(name: impl Into<String>) -> Self {
        let mut definition = Map::new();
        definition.insert("name".into(), name.into().into());
        definition.insert("description".into(), "A scripted tool.".into());
        definition.insert("inputSchema".into(), json!({ "type": "object" }));
        Self {
            definition,
            answer: Answer::Text("ok".into()),
            delay_ms: 0,
            progress: 0,
            progress_every_ms: 0,
            asks: Vec::new(),
            input_rounds: 0,
            gate: None,
            form: None,
            task: false,
            questions: Vec::new(),
            logs: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// The name it is listed and called under.
    #[must_use]
    pub fn name(&self) -> &str {
        self.definition.get("name").and_then(Value::as_str).unwrap_or_default()
    }

    /// Sets any member of the definition: `title`, `icons`, `_meta`, `annotations`.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.definition.insert(key.into(), value.into());
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn description(self, text: &str) -> Self {
        self.with("description", text)
    }

    /// Sets the input schema, which need not be valid.
    #[must_use]
    pub fn schema(self, schema: impl Into<Value>) -> Self {
        self.with("inputSchema", schema)
    }

    /// Sets the output schema.
    #[must_use]
    pub fn output_schema(self, schema: impl Into<Value>) -> Self {
        self.with("outputSchema", schema)
    }

    /// Adds one annotation such as `readOnlyHint`.
    #[must_use]
    pub fn hint(mut self, key: &str, value: impl Into<Value>) -> Self {
        let annotations = self.definition.entry("annotations").or_insert_with(|| json!({}));
        annotations[key] = value.into();
        self
    }

    /// Sets `readOnlyHint`.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.hint("readOnlyHint", true)
    }

    /// Sets `idempotentHint`.
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.hint("idempotentHint", true)
    }

    /// Sets `destructiveHint`.
    #[must_use]
    pub fn destructive(self) -> Self {
        self.hint("destructiveHint", true)
    }

    /// Declares that this string argument is mirrored into the header `Mcp-Param-HEADER`.
    #[must_use]
    pub fn mirrors(mut self, argument: &str, header: &str) -> Self {
        let schema = self
            .definition
            .entry("inputSchema")
            .or_insert_with(|| json!({ "type": "object" }));
        schema["properties"][argument] = json!({ "type": "string", "x-mcp-header": header });
        self
    }

    /// Returns one text block.
    #[must_use]
    pub fn answers_text(self, text: impl Into<String>) -> Self {
        self.answers(Answer::Text(text.into()))
    }

    /// Returns these blocks; see [`Block`].
    #[must_use]
    pub fn answers_blocks(self, blocks: impl IntoIterator<Item = Value>) -> Self {
        self.answers(Answer::Blocks(blocks.into_iter().collect()))
    }

    /// Returns structured content, and the same as text.
    #[must_use]
    pub fn answers_structured(self, value: impl Into<Value>) -> Self {
        self.answers(Answer::Structured(value.into()))
    }

    /// Returns a result with `isError: true`.
    #[must_use]
    pub fn fails_with(self, text: impl Into<String>) -> Self {
        self.answers(Answer::Failure(text.into()))
    }

    /// Responds with a JSON-RPC error.
    #[must_use]
    pub fn refuses(self, code: i64, message: impl Into<String>) -> Self {
        self.answers(Answer::RpcError {
            code,
            message: message.into(),
            data: None,
        })
    }

    /// Returns its arguments, as text and structured.
    #[must_use]
    pub fn echoes(self) -> Self {
        self.answers(Answer::Arguments)
    }

    /// Returns the argument `nonce` as text. The ledger records nonces of every tool.
    #[must_use]
    pub fn echoes_nonce(self) -> Self {
        self.answers(Answer::Nonce)
    }

    /// Returns the environment of the server, structured.
    #[must_use]
    pub fn shows_env(self) -> Self {
        self.answers(Answer::Environment)
    }

    /// Returns the working directory of the server.
    #[must_use]
    pub fn shows_cwd(self) -> Self {
        self.answers(Answer::WorkingDirectory)
    }

    /// Returns the process id of the server.
    #[must_use]
    pub fn shows_pid(self) -> Self {
        self.answers(Answer::Pid)
    }

    /// Returns who called, structured: see [`Answer::Caller`].
    #[must_use]
    pub fn shows_caller(self) -> Self {
        self.answers(Answer::Caller)
    }

    /// Sets the result, for kinds of [`Answer`] without a method of their own.
    #[must_use]
    pub fn answers(mut self, answer: Answer) -> Self {
        self.answer = answer;
        self
    }

    /// Waits this long before the response.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay_ms = millis(delay);
        self
    }

    /// Sets the JSON Schema of the form in its elicitations, in place of a colour.
    #[must_use]
    pub fn form(mut self, schema: impl Into<Value>) -> Self {
        self.form = Some(schema.into());
        self
    }

    /// Runs as a task: the call returns one, which is completed when it is first polled.
    #[must_use]
    pub fn runs_as_task(mut self) -> Self {
        self.task = true;
        self.with("execution", json!({ "taskSupport": "required" }))
    }

    /// The state of its task, in the fields of both eras.
    pub(crate) fn task_state(&self, status: &str) -> Value {
        let at = "2026-07-28T10:00:00Z";
        json!({
            "taskId": format!("task-{}", self.name()), "status": status, "createdAt": at, "lastUpdatedAt": at,
            "ttl": null, "ttlMs": null, "pollInterval": POLL_MS, "pollIntervalMs": POLL_MS,
        })
    }

    /// Sends progress this many times before the response.
    #[must_use]
    pub fn progress(mut self, times: u64, every: Duration) -> Self {
        self.progress = times;
        self.progress_every_ms = millis(every);
        self
    }

    /// Sends a request to the client during the call and appends the response to the result (legacy era).
    #[must_use]
    pub fn asks(mut self, ask: Ask) -> Self {
        self.asks.push(ask);
        self
    }

    /// Responds `input_required` this many times first (modern era).
    #[must_use]
    pub fn needs_input(mut self, rounds: u32) -> Self {
        self.input_rounds = rounds;
        self
    }

    /// Asks the client these questions together, after those of earlier rounds: by requests in the legacy era, by
    /// `input_required` in the modern one. The answers are appended to the result, one text block `{"KEY": ANSWER}` each.
    #[must_use]
    pub fn asks_for(mut self, round: impl IntoIterator<Item = Question>) -> Self {
        self.questions.push(round.into_iter().collect());
        self
    }

    /// Sends these log messages, each after `every`.
    #[must_use]
    pub fn logs(mut self, level: &str, texts: &[&str], every: Duration) -> Self {
        self.logs.extend(texts.iter().map(|text| LogLine {
            level: level.into(),
            text: (*text).into(),
            delay_ms: millis(every),
        }));
        self
    }

    /// Changes the server when it is called.
    #[must_use]
    pub fn causes(mut self, effect: Effect) -> Self {
        self.effects.push(effect);
        self
    }

    /// Waits until the test opens the gate. In a separate process the gate is the absolute path of a file, and opens when it exists.
    #[must_use]
    pub fn waits_at(mut self, gate: impl Into<String>) -> Self {
        self.gate = Some(gate.into());
        self
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The result of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// One text block.
    Text(String),
    /// These content blocks.
    Blocks(Vec<Value>),
    /// Structured content, and the same as text.
    Structured(Value),
    /// One text block with `isError: true`.
    Failure(String),
    /// A JSON-RPC error.
    RpcError {
        /// The code.
        code: i64,
        /// The message.
        message: String,
        /// The data, if any.
        data: Option<Value>,
    },
    /// The arguments, as text and structured.
    Arguments,
    /// The argument `nonce`.
    Nonce,
    /// One text block of this many bytes.
    Bytes(usize),
    /// The environment of the server, structured.
    Environment,
    /// The working directory of the server.
    WorkingDirectory,
    /// The process id of the server.
    Pid,
    /// Who called, structured: `owner` is the bearer token up to its first `.`, or the same of the variable `CALLER_TOKEN` of a process;
    /// `session` is the `Mcp-Session-Id` or the process id, `tenant` the header `X-Tenant`, and `nonce` the argument. The argument `pad` is
    /// the number of lines that are added.
    Caller,
    /// The command line of the server, structured.
    CommandLine,
    /// What a hostile server can do: the result of each attempt to leave its sandbox, structured.
    Escape,
    /// This result object, unchanged.
    Result(Value),
}

/// A request that a tool sends to the client during a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// `roots/list`.
    Roots,
    /// `elicitation/create`.
    Elicitation,
    /// `sampling/createMessage`.
    Sampling,
    /// `ping`.
    Ping,
    /// `ping` under the id of the client's own request.
    PingWithTheSameId,
    /// An unknown method.
    Unknown,
}

/// Content blocks as JSON.
#[derive(Debug, Clone, Copy)]
pub struct Block;

impl Block {
    /// A text block.
    #[must_use]
    pub fn text(text: &str) -> Value {
        json!({ "type": "text", "text": text })
    }

    /// A tiny PNG.
    #[must_use]
    pub fn image() -> Value {
        json!({ "type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png" })
    }

    /// A tiny WAV.
    #[must_use]
    pub fn audio() -> Value {
        json!({ "type": "audio", "data": "UklGRg==", "mimeType": "audio/wav" })
    }

    /// An embedded text resource.
    #[must_use]
    pub fn resource(uri: &str, text: &str) -> Value {
        json!({ "type": "resource", "resource": { "uri": uri, "mimeType": "text/plain", "text": text } })
    }

    /// A link to a resource.
    #[must_use]
    pub fn link(uri: &str) -> Value {
        json!({ "type": "resource_link", "uri": uri, "name": uri })
    }

    /// A block of an unknown type.
    #[must_use]
    pub fn unknown() -> Value {
        json!({ "type": "hologram", "depth": 3 })
    }
}
