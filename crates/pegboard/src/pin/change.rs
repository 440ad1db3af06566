//! One definition that differs from its pin, or has none.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use pegboard_base::{
    label::label,
    name::{ServerName, format_dotted},
};
use pegboard_tools::catalog::{DefinitionHash, Finding};

/// The name of a server's instructions beside those of its tools.
const INSTRUCTIONS: &str = "(instructions)";

/// A definition that is not as it was pinned, or that the scanner found suspicious.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PinChange {
    /// The server, by its name in the config.
    pub server: ServerName,
    /// The tool; `None` for the server's instructions.
    pub tool: Option<String>,
    /// How it differs from its pin.
    pub state: PinState,
    /// Whether it is withheld from agents until it is accepted.
    pub held: bool,
    /// What the scanner found in it.
    pub findings: Vec<Finding>,
    /// The hash of its current definition.
    pub hash: DefinitionHash,
    /// The pinned definition as JSON, or the pinned instructions. `None` if there is no pin, or the definition was too long to keep.
    pub old: Option<String>,
    /// The current definition as JSON, or the current instructions.
    pub new: String,
}

/// How a definition compares with its pin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PinState {
    /// It is as it was pinned.
    Unchanged,
    /// The server is known, and this definition is not.
    New,
    /// The server has no pins, and the config requires that a person accepts its definitions.
    NewServer,
    /// It differs from its pin.
    Changed,
    /// It is pinned, but no person has accepted it, and the config requires that.
    NotAccepted,
}

impl PinState {
    /// The name in text and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::New => "new",
            Self::NewServer => "new_server",
            Self::Changed => "changed",
            Self::NotAccepted => "not_accepted",
        }
    }
}

label!(
    PinState,
    "state of a pin",
    [Unchanged, New, NewServer, Changed, NotAccepted]
);

/// One field of a definition that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FieldChange {
    /// The field, such as `description` or `inputSchema`.
    pub field: String,
    /// Its pinned value as text; `None` if it was absent or not kept.
    pub old: Option<String>,
    /// Its current value as text; `None` if it is absent.
    pub new: Option<String>,
}

impl PinChange {
    /// The name for people: `server.tool`.
    pub fn name(&self) -> String {
        format_dotted(self.server.as_str(), self.tool.as_deref().unwrap_or(INSTRUCTIONS))
    }

    /// The fields that differ between the pinned and the current definition.
    pub fn changed_fields(&self) -> Vec<FieldChange> {
        if self.tool.is_none() {
            let text = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
            return vec![FieldChange {
                field: "instructions".to_owned(),
                old: self.old.as_ref().and_then(text),
                new: text(&self.new),
            }];
        }
        let parse = |text: &str| -> Value { serde_json::from_str(text).unwrap_or_default() };
        let (old, new) = (self.old.as_deref().map(parse).unwrap_or_default(), parse(&self.new));
        let fields = new.as_object().into_iter().flatten();
        let changed = fields.filter(|(field, value)| old.get(field.as_str()).unwrap_or(&Value::Null) != *value);
        changed
            .map(|(field, value)| FieldChange {
                field: field.clone(),
                old: old.get(field).and_then(field_text),
                new: field_text(value),
            })
            .collect()
    }

    /// Why the definition is withheld, or would be under a stricter policy: the end of a sentence that begins with the tool.
    pub fn reason(&self) -> String {
        let of_pin = match self.state {
            PinState::Unchanged => None,
            PinState::New => Some("it was not there when its server was pinned"),
            PinState::NewServer => Some("its server is new, and its definitions are not accepted yet"),
            PinState::Changed => Some("its definition changed since it was pinned"),
            PinState::NotAccepted => Some("its definition was never accepted"),
        };
        match (of_pin, self.findings.first()) {
            (Some(reason), _) => reason.to_owned(),
            (None, Some(finding)) => format!("its definition looks like an attack ({finding})"),
            (None, None) => "its definition is as it was pinned".to_owned(),
        }
    }
}

fn field_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// The name of a tool in a command for people to copy. A name with other characters could end the command and begin another, so only its
/// server is named then.
pub(crate) fn command_name(server: &ServerName, tool: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    match tool.chars().all(is_plain) {
        true => format_dotted(server.as_str(), tool),
        false => server.to_string(),
    }
}
