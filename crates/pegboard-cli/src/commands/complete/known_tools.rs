//! The tools that are known without starting a server: the pinned definitions of earlier runs.

use std::collections::BTreeMap;

use pegboard::pin::PinStore;
use serde_json::Value;

use super::candidate::Candidate;
use crate::settings::{self, Settings};

/// The configured servers, and what is known of their tools.
pub(super) struct KnownTools {
    /// The definitions of tools, by server and tool.
    servers: BTreeMap<String, BTreeMap<String, Value>>,
}

impl KnownTools {
    pub(super) fn load(settings: &Settings) -> Self {
        let config = &settings.loaded.config;
        let names = config.servers.keys().chain(config.misconfigured.keys());
        let mut servers: BTreeMap<String, BTreeMap<String, Value>> =
            names.map(|name| (name.as_str().to_owned(), BTreeMap::new())).collect();
        // A store that cannot be read only costs candidates.
        let pinned = settings::pins_folder().and_then(|folder| PinStore::new(folder).servers().ok());
        for server in pinned.unwrap_or_default() {
            let Some(tools) = servers.get_mut(&server.server) else {
                continue;
            };
            for (name, pin) in server.tools {
                let definition = pin.definition.and_then(|text| serde_json::from_str(&text).ok());
                tools.insert(name, definition.unwrap_or(Value::Null));
            }
        }
        Self { servers }
    }

    pub(super) fn servers(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// `server.tool` of all tools. Tools by their own name are offered once such a name is begun.
    pub(super) fn names(&self, current: &str) -> Vec<Candidate> {
        let dotted = self
            .tools()
            .map(|(server, tool, definition)| Candidate::new(format!("{server}.{tool}"), about(definition)));
        let mut found: Vec<Candidate> = dotted.collect();
        let has_dotted = found.iter().any(|candidate| candidate.value.starts_with(current));
        if !current.is_empty() && !has_dotted {
            found.extend(
                self.tools()
                    .map(|(_, tool, definition)| Candidate::new(tool, about(definition))),
            );
        }
        found
    }

    pub(super) fn candidates_of_server(&self, server: &str) -> Vec<Candidate> {
        let tools = self.servers.get(server).into_iter().flatten();
        tools
            .map(|(tool, definition)| Candidate::new(tool, about(definition)))
            .collect()
    }

    /// `key=` for each argument that is not given yet; after `key=` its values, if they are few.
    pub(super) fn arguments(&self, tool: &str, given: &[&str], current: &str) -> Vec<Candidate> {
        let mut meant = self.tools().filter(|(server, name, _)| {
            format!("{server}.{name}") == tool || format!("{server}__{name}") == tool || *name == tool
        });
        let Some((_, _, definition)) = meant.next() else {
            return Vec::new();
        };
        let Some(properties) = definition["inputSchema"]["properties"].as_object() else {
            return Vec::new();
        };
        if let Some((key, _)) = current.split_once('=') {
            let values = properties.get(key).map(values).unwrap_or_default();
            return values
                .into_iter()
                .map(|value| Candidate::new(format!("{key}={value}"), ""))
                .collect();
        }
        let is_given = |key: &str| given.iter().any(|word| word.split(['=', ':']).next() == Some(key));
        let left = properties.iter().filter(|(key, _)| !is_given(key));
        left.map(|(key, schema)| Candidate::new(format!("{key}="), schema["description"].as_str().unwrap_or_default()))
            .collect()
    }

    fn tools(&self) -> impl Iterator<Item = (&str, &str, &Value)> {
        self.servers.iter().flat_map(|(server, tools)| {
            tools
                .iter()
                .map(move |(name, definition)| (server.as_str(), name.as_str(), definition))
        })
    }
}

fn about(definition: &Value) -> &str {
    definition["description"].as_str().unwrap_or_default()
}

fn values(schema: &Value) -> Vec<String> {
    match (&schema["enum"], schema["type"].as_str()) {
        (Value::Array(values), _) => values
            .iter()
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            .collect(),
        (_, Some("boolean")) => vec!["true".to_owned(), "false".to_owned()],
        _ => Vec::new(),
    }
}
