//! The calls that every client makes, and the tools that it must be offered.

use std::{collections::BTreeSet, path::Path};

use serde::Deserialize;
use serde_json::{Value, json};

/// Every tool of every server is called at least once, in an order in which each call finds what it needs.
const CALLS: &str = include_str!("calls.json");

/// Tools that are listed but not called.
const UNCALLED: &[(&str, &str)] = &[
    // It runs as a task of at least four seconds.
    ("everything", "simulate-research-query"),
    // They ask for what only a few of the clients have: a model, roots, a browser, or tasks of their own.
    ("everything", "get-roots-list"),
    ("everything", "trigger-elicitation-request-async"),
    ("everything", "trigger-sampling-request"),
    ("everything", "trigger-sampling-request-async"),
    ("everything", "trigger-url-elicitation"),
];

/// The content of the answer to every question.
pub(crate) const NAME: &str = "Ada";

/// One call, and a part of the text that it must give.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call {
    server: String,
    tool: String,
    pub(crate) arguments: Value,
    pub(crate) expect: String,
    /// Whether the tool reports an error.
    #[serde(default)]
    pub(crate) fails: bool,
    /// Whether the tool reports progress, with a pause before its result. Without one, a client may drop reports that it reads together with the
    /// result.
    #[serde(default)]
    pub(crate) progress: bool,
    /// The question that the tool asks the user.
    #[serde(default)]
    pub(crate) asks: Option<String>,
}

/// The calls of one client, which works in a folder and under a label of its own, because all clients use the same servers.
#[derive(Debug)]
pub(crate) struct Plan {
    calls: Vec<Call>,
    /// The only server at the endpoint, with its own names; `None` is the whole board.
    server: Option<String>,
}

impl Plan {
    pub(crate) fn of_board(label: &str, folder: &Path) -> Self {
        // Both are plain words in JSON.
        let calls = CALLS
            .replace("{label}", label)
            .replace("{folder}", folder.to_str().unwrap());
        Self {
            calls: serde_json::from_str(&calls).unwrap(),
            server: None,
        }
    }

    /// The calls to one server, under the names that the server itself gives its tools.
    pub(crate) fn of_server(server: &str, label: &str, folder: &Path) -> Self {
        let mut plan = Self::of_board(label, folder);
        plan.calls.retain(|call| call.server == server);
        plan.server = Some(server.to_owned());
        plan
    }

    /// Leaves out the calls that need a user.
    pub(crate) fn without_questions(mut self) -> Self {
        self.calls.retain(|call| call.asks.is_none());
        self
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = (String, &Call)> {
        self.calls
            .iter()
            .map(|call| (self.name(&call.server, &call.tool), call))
    }

    fn name(&self, server: &str, tool: &str) -> String {
        match &self.server {
            Some(_) => tool.to_owned(),
            None => format!("{server}__{tool}"),
        }
    }

    /// The names of all tools at the endpoint.
    pub(crate) fn tools(&self) -> BTreeSet<String> {
        let all: Vec<Call> = serde_json::from_str(CALLS).unwrap();
        let called = all.iter().map(|call| (call.server.as_str(), call.tool.as_str()));
        called
            .chain(UNCALLED.iter().copied())
            .filter(|(server, _)| self.server.as_deref().is_none_or(|only| only == *server))
            .map(|(server, tool)| self.name(server, tool))
            .collect()
    }

    /// A resource, if a server at the endpoint offers any.
    pub(crate) fn resource(&self) -> Option<&'static str> {
        self.has_everything()
            .then_some("demo://resource/static/document/features.md")
    }

    /// A prompt, if a server at the endpoint offers any.
    pub(crate) fn prompt(&self) -> Option<String> {
        self.has_everything().then(|| self.name("everything", "simple-prompt"))
    }

    fn has_everything(&self) -> bool {
        self.server.as_deref().is_none_or(|only| only == "everything")
    }

    /// The plan as the programs in `tests/peers/clients` read it.
    pub(crate) fn to_json(&self) -> Value {
        let calls: Vec<Value> = self
            .calls()
            .map(|(tool, call)| json!({"tool": tool, "arguments": call.arguments}))
            .collect();
        json!({
            "tools": self.tools(),
            "calls": calls,
            "resource": self.resource(),
            "prompt": self.prompt().map(|name| json!({"name": name, "arguments": {}})),
            "answer": {"name": NAME},
        })
    }
}
