//! The script: the behaviour of a fake server as a value that serialises to JSON.

mod question;
mod tool;

pub use question::{Effect, LogLine, Question};
pub use tool::{Answer, Ask, Block, Tool};

use std::path::PathBuf;

use pegboard_protocol::{Version, code};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fault::{Fault, Rule, When};

/// The behaviour of a fake server. Missing fields take the defaults of [`Script::new`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// The name in `serverInfo`.
    pub name: String,
    /// The version in `serverInfo`.
    pub server_version: String,
    /// Which eras it speaks.
    pub era: Era,
    /// The legacy protocol versions it speaks; an unknown one is answered with the last of these.
    pub versions: Vec<String>,
    /// The modern protocol versions it speaks.
    pub modern_versions: Vec<String>,
    /// Server instructions, given in the handshake or in discovery.
    pub instructions: Option<String>,
    /// The declared capabilities; if absent they follow from tools, resources and prompts.
    pub capabilities: Option<Value>,
    /// The tools, in listing order.
    pub tools: Vec<Tool>,
    /// Resources: objects with `uri`, `name` and optionally `text` (the text when it is read).
    pub resources: Vec<Value>,
    /// Resource templates: objects with `uriTemplate`, `name` and `text`, in which `{variable}` stands for its value in the URI.
    pub templates: Vec<Value>,
    /// Prompts: objects with `name` and what is not listed: `text` or `messages` (when it is got; `{argument}` stands for its
    /// value), `questions` (rounds of [`Question`]s, as of a tool) and `completions` (values by argument).
    pub prompts: Vec<Value>,
    /// How many tools one page of a list holds; all when absent.
    pub page_size: Option<usize>,
    /// The `ttlMs` of modern lists.
    pub ttl_ms: u64,
    /// The `cacheScope` of modern lists.
    pub cache_scope: String,
    /// How a modern-only server refuses `initialize`.
    pub on_initialize: Refusal,
    /// How a legacy-only server refuses `server/discover`.
    pub on_discover: Refusal,
    /// How the HTTP form behaves.
    pub http: HttpStyle,
    /// The token that the network transports require as `Authorization: Bearer …`; none if absent.
    pub bearer: Option<String>,
    /// Whether cancelled requests get a response too.
    pub ignores_cancel: bool,
    /// The ledger: a file that gets a line `executed NONCE` for every executed call with a `nonce` argument.
    pub ledger: Option<PathBuf>,
    /// The file that gets every received message and every start, as JSON lines.
    pub log: Option<PathBuf>,
    /// The faults and their triggers.
    pub faults: Vec<Rule>,
    /// Another script for later starts.
    pub later: Option<Later>,
}

impl Script {
    /// A healthy server that speaks every legacy version and offers nothing.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            server_version: "1.0.0".into(),
            era: Era::Legacy,
            versions: Version::LEGACY.iter().rev().map(Version::to_string).collect(),
            modern_versions: vec![Version::LATEST_MODERN.to_string()],
            instructions: None,
            capabilities: None,
            tools: Vec::new(),
            resources: Vec::new(),
            templates: Vec::new(),
            prompts: Vec::new(),
            page_size: None,
            ttl_ms: 60_000,
            cache_scope: "public".into(),
            on_initialize: Refusal::Error {
                code: code::METHOD_NOT_FOUND,
            },
            on_discover: Refusal::Error {
                code: code::METHOD_NOT_FOUND,
            },
            http: HttpStyle::default(),
            bearer: None,
            ignores_cancel: false,
            ledger: None,
            log: None,
            faults: Vec::new(),
            later: None,
        }
    }

    /// The script for the start with this number, the first being 1.
    #[must_use]
    pub fn for_start(&self, number: u32) -> &Self {
        match &self.later {
            Some(later) if number > later.after => later.script.for_start(number - later.after),
            _ => self,
        }
    }

    /// Returns `true` if the script has such a fault, with any trigger.
    pub(crate) fn has(&self, wanted: impl Fn(&Fault) -> bool) -> bool {
        self.faults.iter().any(|rule| wanted(&rule.fault))
    }

    pub(crate) fn add_fault(&mut self, fault: Fault, when: When) {
        self.faults.push(Rule { fault, when });
    }
}

impl Default for Script {
    fn default() -> Self {
        Self::new("fake")
    }
}

/// The eras a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Era {
    /// `initialize` first: 2024-11-05 to 2025-11-25.
    Legacy,
    /// No handshake, `_meta` on every request: 2026-07-28.
    Modern,
    /// Each request is served in its own era.
    Both,
}

/// How a server refuses the first request of an era that it does not speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Responds with this JSON-RPC error code.
    Error {
        /// The code; real servers use -32601 and -32602.
        code: i64,
    },
    /// Ends the process or the connection.
    Exit {
        /// The exit code of the process form.
        code: i32,
    },
    /// Does not respond and keeps running.
    Silence,
}

/// The behaviour of streamable HTTP without faults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "independent switches of a script")]
pub struct HttpStyle {
    /// Responses are event streams instead of JSON bodies.
    pub streams: bool,
    /// Events carry ids, streams open with an empty priming event and can be resumed.
    pub event_ids: bool,
    /// The `retry:` field of the priming event.
    pub retry_ms: Option<u64>,
    /// Legacy: session ids are neither assigned nor required.
    pub stateless: bool,
    /// Legacy: GET is refused with 405.
    pub no_get_stream: bool,
    /// Requests with a `Host` or `Origin` other than this computer are refused with 403.
    pub local_only: bool,
}

/// Another script for later starts: for a server that comes up at the third attempt, or in another era.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Later {
    /// The number of starts with the first script.
    pub after: u32,
    /// The script of the later starts.
    pub script: Box<Script>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_survives_the_way_through_json() {
        let mut script = Script::new("k8s");
        script
            .tools
            .push(Tool::new("get_pods").answers_text("pod-1").asks(Ask::Roots));
        script.add_fault(Fault::DiesAfterExecuting { code: 7 }, When::default().nth(3));
        let json = serde_json::to_string(&script).unwrap();
        assert_eq!(serde_json::from_str::<Script>(&json).unwrap(), script);
    }

    #[test]
    fn later_starts_follow_the_later_script() {
        let third = Script::new("third");
        let mut first = Script::new("first");
        first.later = Some(Later {
            after: 2,
            script: Box::new(third),
        });
        assert_eq!(first.for_start(2).name, "first");
        assert_eq!(first.for_start(3).name, "third");
    }
}
