//! Servers that cannot be used as they are configured.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize};

use super::{
    choice::{Choice as _, TransportKind},
    field::{Field, find_word},
    fields::{SERVER, server},
    problem::Problem,
    server::ServerConfig,
    transport::{Command, Endpoint, Transport},
    tree::{KeyValue, Value},
};
use pegboard_base::{
    diagnosis::{self, Diagnosis},
    secret::SafeUrl,
};

/// A server whose config has errors, or whose project file is not approved. It keeps its name and its status row, so that its absence is visible.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Misconfigured {
    /// All errors in one line, without file and line.
    pub why: String,
    /// Every error, with its file, line and setting. Values of variables never appear in them.
    pub problems: Vec<String>,
    /// The transport, if the settings name one: `stdio`, `http`, `sse` or `websocket`.
    pub transport: Option<&'static str>,
    /// Whether the board is ready only when this server is ready.
    pub required: bool,
    /// The project file that must be approved before the server is used; `None` if the config has errors.
    pub pending_trust: Option<PathBuf>,
    /// What is wrong, as data: the first error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Box<Diagnosis>>,
}

/// A misconfigured server as it is read.
#[derive(Default, Deserialize)]
#[serde(default)]
struct StoredMisconfigured {
    why: String,
    problems: Vec<String>,
    transport: Option<String>,
    required: bool,
    pending_trust: Option<PathBuf>,
    #[serde(deserialize_with = "diagnosis::known")]
    diagnosis: Option<Box<Diagnosis>>,
}

// Not derived: serde would take the lifetime of `transport` for that of the input.
impl<'de> Deserialize<'de> for Misconfigured {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = StoredMisconfigured::deserialize(deserializer)?;
        // An unknown transport, such as that of a later version, is left out.
        let known = ["stdio", "http", "sse", "websocket"];
        Ok(Self {
            why: stored.why,
            problems: stored.problems,
            transport: stored
                .transport
                .and_then(|name| known.into_iter().find(|kind| *kind == name)),
            required: stored.required,
            pending_trust: stored.pending_trust,
            diagnosis: stored.diagnosis,
        })
    }
}

impl Misconfigured {
    /// The config of a server that is never started and only has a status row.
    #[doc(hidden)]
    pub fn placeholder(&self) -> ServerConfig {
        let nowhere = || SafeUrl::parse("http://misconfigured.invalid").map(Endpoint::from);
        let transport = match (self.transport, nowhere()) {
            (Some("http"), Ok(endpoint)) => Transport::http(endpoint),
            (Some("sse"), Ok(endpoint)) => Transport::sse(endpoint),
            (Some("websocket"), Ok(endpoint)) => Transport::websocket(endpoint),
            _ => Transport::Stdio(Command::new("misconfigured")),
        };
        let mut config = ServerConfig::new(transport);
        config.required = self.required;
        config
    }

    /// Creates the entry of a server whose project file is not approved.
    pub(super) fn from_unapproved(settings: &[KeyValue], file: PathBuf, hint: &str) -> Self {
        Self {
            why: format!("{} is not approved", file.display()),
            problems: vec![hint.to_owned()],
            transport: transport(settings),
            // An unapproved file does not decide whether the board is ready.
            required: false,
            pending_trust: Some(file),
            diagnosis: None,
        }
    }

    /// Creates the entry of a server with these settings and errors. `required` holds for servers that do not set it themselves.
    pub(super) fn new<'a>(settings: &[KeyValue], required: bool, errors: impl Iterator<Item = &'a Problem>) -> Self {
        let (mut why, mut problems, mut diagnosis) = (Vec::new(), Vec::new(), None);
        for error in errors {
            let setting = error.field.splitn(3, '.').nth(2);
            why.push(match setting {
                Some(setting) => format!("`{setting}`: {}", error.message),
                None => error.message.clone(),
            });
            problems.push(error.to_string());
            diagnosis.get_or_insert_with(|| Box::new(error.diagnosis()));
        }
        if why.is_empty() {
            // Beyond `MAX_PROBLEMS`, problems are only counted.
            why.push("the config has too many errors".to_owned());
        }
        Self {
            why: why.join("; "),
            problems,
            transport: transport(settings),
            required: find(settings, &server::required).map_or(required, |own| *own == Value::Bool(true)),
            pending_trust: None,
            diagnosis,
        }
    }
}

/// The value of a setting, under any of its names.
fn find<'a>(settings: &'a [KeyValue], field: &Field) -> Option<&'a Value> {
    let is_it = |entry: &&KeyValue| {
        let found = SERVER.find(&entry.key);
        found.is_some_and(|found| found.via.is_none() && found.field.name == field.name)
    };
    settings.iter().find(is_it).map(|entry| &entry.value.value)
}

fn transport(settings: &[KeyValue]) -> Option<&'static str> {
    if let Some(Value::Text(word)) = find(settings, &server::kind) {
        let word = find_word(TransportKind::WORDS, word)?;
        return Some(if word == "remote" { "http" } else { word });
    }
    match (find(settings, &server::command), find(settings, &server::url)) {
        (Some(_), None) => Some("stdio"),
        (None, Some(Value::Text(url))) => Some(match url.trim().trim_end_matches('/') {
            url if url.starts_with("ws:") || url.starts_with("wss:") => "websocket",
            url if url.ends_with("/sse") => "sse",
            _ => "http",
        }),
        _ => None,
    }
}
