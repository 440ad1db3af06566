//! What a tool asks the client and tells it, written once for both eras.

use pegboard_protocol::method::{self, notification};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A question to the client. A legacy server sends it as a request during the call, a modern one in an `input_required` result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Its name: the key in `inputRequests`, and in the legacy era the id of the request, unless one with this id is open.
    pub key: String,
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: String,
    /// The parameters. `{name}` in a text stands for the argument `name` of the call.
    pub params: Value,
}

impl Question {
    /// An elicitation with a form of this JSON Schema.
    pub fn form(key: &str, message: &str, schema: impl Into<Value>) -> Self {
        let params = json!({ "mode": "form", "message": message, "requestedSchema": schema.into() });
        Self::new(key, method::ELICITATION_CREATE, params)
    }

    /// An elicitation that sends the user to a URL.
    pub fn url(key: &str, message: &str, url: &str) -> Self {
        let params = json!({ "mode": "url", "message": message, "url": url, "elicitationId": key });
        Self::new(key, method::ELICITATION_CREATE, params)
    }

    /// A request to the client's model.
    pub fn sampling(key: &str, prompt: &str, max_tokens: u32) -> Self {
        let message = json!({ "role": "user", "content": { "type": "text", "text": prompt } });
        Self::new(
            key,
            method::SAMPLING_CREATE_MESSAGE,
            json!({ "messages": [message], "maxTokens": max_tokens }),
        )
    }

    /// The client's roots.
    pub fn roots(key: &str) -> Self {
        Self::new(key, method::ROOTS_LIST, json!({}))
    }

    fn new(key: &str, method: &str, params: Value) -> Self {
        Self {
            key: key.into(),
            method: method.into(),
            params,
        }
    }

    /// The client capability that it needs.
    pub(crate) fn capability(&self) -> &'static str {
        match self.method.as_str() {
            method::SAMPLING_CREATE_MESSAGE => "sampling",
            method::ROOTS_LIST => "roots",
            _ => "elicitation",
        }
    }
}

/// The log levels, least severe first.
const LEVELS: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

/// One log message of a tool. A legacy client gets it unless it set a higher level, a modern one if its request names a level.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogLine {
    /// `debug` … `emergency`.
    pub level: String,
    /// The text.
    pub text: String,
    /// The wait before it.
    #[serde(default)]
    pub delay_ms: u64,
}

impl LogLine {
    /// The notification.
    pub(crate) fn notice(&self) -> Value {
        let params = json!({ "level": self.level, "logger": "fake", "data": self.text });
        json!({ "jsonrpc": "2.0", "method": notification::MESSAGE, "params": params })
    }

    /// Returns `true` if it is at least as severe as `threshold`. An unknown level is the least severe.
    pub(crate) fn reaches(&self, threshold: &str) -> bool {
        severity(&self.level) >= severity(threshold)
    }
}

fn severity(level: &str) -> usize {
    LEVELS.iter().position(|known| *known == level).unwrap_or(0)
}

/// A change of the server that a call makes before its response, with the notification about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Adds a tool, or removes it if it is there: `notifications/tools/list_changed`.
    ToggleTool(Box<super::Tool>),
    /// Adds a prompt, or removes it if it is there: `notifications/prompts/list_changed`.
    TogglePrompt(Value),
    /// Sets the text of a resource: its subscribers get `notifications/resources/updated`.
    SetResource {
        /// The resource.
        uri: String,
        /// The new text. `{name}` stands for the argument `name` of the call.
        text: String,
    },
    /// Completes the tasks of a tool, which asks nothing any more: `notifications/tasks/status`.
    FinishTask(String),
}

impl Effect {
    /// Changes the script. Returns the notification's method and parameters.
    pub(crate) fn apply(&self, script: &mut super::Script) -> (&'static str, Value) {
        match self {
            Self::ToggleTool(tool) => {
                let before = script.tools.len();
                script.tools.retain(|known| known.name() != tool.name());
                if script.tools.len() == before {
                    script.tools.push(super::Tool::clone(tool));
                }
                (notification::TOOLS_LIST_CHANGED, Value::Null)
            }
            Self::TogglePrompt(prompt) => {
                let before = script.prompts.len();
                script.prompts.retain(|known| known["name"] != prompt["name"]);
                if script.prompts.len() == before {
                    script.prompts.push(prompt.clone());
                }
                (notification::PROMPTS_LIST_CHANGED, Value::Null)
            }
            Self::SetResource { uri, text } => {
                for resource in script.resources.iter_mut().filter(|known| known["uri"] == **uri) {
                    resource["text"] = text.clone().into();
                }
                (notification::RESOURCES_UPDATED, json!({ "uri": uri }))
            }
            Self::FinishTask(name) => {
                let mut state = Value::Null;
                for tool in script.tools.iter_mut().filter(|tool| tool.name() == name) {
                    tool.questions.clear();
                    state = tool.task_state("completed");
                }
                (notification::TASKS_STATUS, state)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_line_is_heard_from_its_own_level_on() {
        let line = LogLine {
            level: "warning".into(),
            text: "hot".into(),
            delay_ms: 0,
        };
        assert!(line.reaches("debug") && line.reaches("warning") && !line.reaches("error"));
    }

    #[test]
    fn a_toggled_tool_comes_and_goes() {
        let mut script = crate::Script::new("s");
        let effect = Effect::ToggleTool(Box::new(crate::Tool::new("guest")));
        effect.apply(&mut script);
        assert_eq!(script.tools.len(), 1);
        effect.apply(&mut script);
        assert_eq!(script.tools.len(), 0);
    }
}
