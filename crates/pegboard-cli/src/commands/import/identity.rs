//! Which servers are the same: the same program or URL, with the same variables and headers.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The settings that tell a server from another one, beside its command line.
const SINGLE: [&str; 5] = ["url", "cwd", "env_file", "bearer_token", "bearer_token_env_var"];
/// The tables that do.
const TABLES: [&str; 2] = ["env", "headers"];

/// What tells a server from another one. Two accounts with the same program are two servers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    line: Vec<String>,
    settings: BTreeMap<String, String>,
}

impl Identity {
    pub(super) fn of(server: &Map<String, Value>) -> Self {
        let words = [server.get("command"), server.get("args")].into_iter().flatten();
        let line = words.flat_map(|value| match value {
            Value::Array(list) => list.iter().map(text).collect(),
            value => vec![text(value)],
        });
        let single = SINGLE
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), server.get(*key)?)));
        let tables = TABLES
            .iter()
            .filter_map(|key| Some((*key, server.get(*key)?.as_object()?)));
        let tables = tables.flat_map(|(key, table)| {
            table.iter().map(move |(name, value)| match key {
                "headers" => (format!("{key}.{}", name.to_lowercase()), value),
                _ => (format!("{key}.{name}"), value),
            })
        });
        let settings = single.chain(tables).filter(|(_, value)| !value.is_null());
        Self {
            line: line.collect(),
            settings: settings.map(|(key, value)| (key, text(value))).collect(),
        }
    }

    /// Whether this server of our config may be `found`, which has the same name: a person has answered the host's questions since, or moved
    /// a secret out of the file.
    pub(super) fn may_come_from(&self, found: &Self) -> bool {
        let is_asked = |found: &str| found.contains("${input:");
        let is_moved = |key: &str, ours: &str, found: &str| {
            !matches!(key, "url" | "cwd" | "env_file") && ours.contains("${") && !found.contains("${")
        };
        let line = self.line.iter().zip(&found.line);
        let settings = self.settings.iter().zip(&found.settings);
        self.line.len() == found.line.len()
            && line.into_iter().all(|(ours, found)| ours == found || is_asked(found))
            && self.settings.len() == found.settings.len()
            && settings.into_iter().all(|((key, ours), (name, found))| {
                key == name && (ours == found || is_asked(found) || is_moved(key, ours, found))
            })
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn identity(server: &Value) -> Identity {
        Identity::of(server.as_object().unwrap())
    }

    #[test]
    fn servers_with_other_values_are_other_servers() {
        let one = identity(&json!({"command": ["x", "y"], "env": {"DB": "a"}}));
        let rest = json!({"command": "x", "args": ["y"], "env": {"DB": "a"}, "description": "d", "timeout": "3s"});
        assert_eq!(one, identity(&rest));
        for other in [
            json!({"command": "x", "args": ["y"], "env": {"DB": "b"}}),
            json!({"command": "x", "args": ["y"]}),
            json!({"command": "x", "args": ["y"], "env": {"DB": "a"}, "cwd": "/"}),
        ] {
            assert_ne!(one, identity(&other));
        }
        let header = |name: &str| identity(&json!({"url": "https://a.example", "headers": {name: "1"}}));
        assert_eq!(header("X-Key"), header("x-key"));
    }

    #[test]
    fn a_server_is_found_again_after_its_secret_was_moved_or_its_input_answered() {
        let found = identity(&json!({"command": "x", "args": ["${input:a}"], "env": {"TOKEN": "abc"}}));
        let moved = |args: &str, token: &str| {
            identity(&json!({"command": "x", "args": [args], "env": {"TOKEN": token}})).may_come_from(&found)
        };
        assert!(moved("answer", "${keyring:pegboard/token}"));
        assert!(moved("${A}", "abc"));
        assert!(!moved("${A}", "def"));
    }
}
