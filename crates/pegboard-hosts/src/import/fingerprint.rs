//! Which servers are the same: the same program or URL, with the same variables, headers and rules for tools.

use std::collections::{BTreeMap, BTreeSet};

use pegboard_config::Loaded;
use serde_json::{Map, Value};

use crate::executable;

/// The settings that tell a server from another one, beside its command line.
const SINGLE: [&str; 5] = ["url", "cwd", "env_file", "bearer_token", "bearer_token_env_var"];
/// The tables that do.
const TABLES: [&str; 2] = ["env", "headers"];

/// What tells a server from another one. Two accounts with the same program are two servers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct ServerFingerprint {
    line: Vec<String>,
    settings: BTreeMap<String, String>,
    policy: Policy,
}

/// Which tools of a server can be called, and which of them only after approval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Policy {
    /// Empty means all.
    allow: BTreeSet<String>,
    deny: BTreeSet<String>,
    approval: Option<String>,
    /// The approval of single tools.
    tools: BTreeMap<String, String>,
    /// Counts only where approval is asked for.
    exempt: BTreeSet<String>,
}

impl Policy {
    fn read(server: &Map<String, Value>) -> Self {
        let mut policy = Self::default();
        for (key, value) in server {
            // Files may have the names that other programs use.
            let key = Loaded::setting(key, true).map_or_else(|| key.clone(), |(name, _)| name);
            match (key.as_str(), value) {
                ("allow", value) => policy.allow = texts(value),
                ("deny", value) => policy.deny = texts(value),
                ("approval_exempt", value) => policy.exempt = texts(value),
                ("approval", Value::String(mode)) => policy.approval = Some(mode.clone()),
                ("tools", Value::Object(tools)) => {
                    let modes = tools
                        .iter()
                        .filter_map(|(name, tool)| Some((name, tool.get("approval")?)));
                    policy.tools = modes.map(|(name, mode)| (name.clone(), text(mode))).collect();
                }
                _ => {}
            }
        }
        if policy.allow.contains("*") {
            policy.allow.clear();
        }
        if !policy.asks() {
            policy.exempt.clear();
        }
        policy
    }

    fn asks(&self) -> bool {
        self.approval.is_some() || !self.tools.is_empty()
    }

    /// Whether it permits nothing that `other` does not permit.
    fn is_within(&self, other: &Self) -> bool {
        let allows = other.allow.is_empty() || (!self.allow.is_empty() && self.allow.is_subset(&other.allow));
        let mut tools = other.tools.iter();
        allows
            && other.deny.is_subset(&self.deny)
            && (other.approval.is_none() || other.approval == self.approval)
            && tools.all(|(name, mode)| self.tools.get(name) == Some(mode))
            && (!other.asks() || self.exempt.is_subset(&other.exempt))
    }
}

impl ServerFingerprint {
    pub(super) fn new(server: &Map<String, Value>) -> Self {
        let words = [server.get("command"), server.get("args")].into_iter().flatten();
        let words = words.flat_map(|value| match value {
            Value::Array(list) => list.iter().map(text).collect(),
            value => vec![text(value)],
        });
        let mut line: Vec<String> = words.collect();
        // `doctor --fix` writes the path of a program in place of its name.
        let has_own_path = server.get("env").is_some_and(|env| env.get("PATH").is_some());
        if let Some(program) = line.first_mut().filter(|_| !has_own_path) {
            *program = executable::shorten(&program.replace("$$", "$")).to_owned();
        }
        let single = SINGLE
            .iter()
            .filter_map(|key| Some(((*key).to_owned(), server.get(*key)?)));
        // Servers may serve both at one URL, and the older transport is not always tried.
        let is_sse = |value: &&Value| value.as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("sse"));
        let kind = ["type", "transport"]
            .iter()
            .find_map(|key| server.get(*key))
            .filter(is_sse);
        let single = single.chain(kind.map(|kind| ("type".to_owned(), kind)));
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
            line,
            settings: settings.map(|(key, value)| (key, text(value))).collect(),
            policy: Policy::read(server),
        }
    }

    /// The same without the rules for tools.
    pub(super) fn without_policy(&self) -> Self {
        Self {
            policy: Policy::default(),
            ..self.clone()
        }
    }

    /// Whether this server of our config may be `found`, which has the same name: a person has answered the host's questions since, moved a
    /// secret out of the file, given a package its version, or permitted fewer tools.
    pub(super) fn may_come_from(&self, found: &Self) -> bool {
        let is_asked = |found: &str| found.contains("${input:");
        let is_moved = |key: &str, ours: &str, found: &str| {
            !matches!(key, "url" | "cwd" | "env_file") && ours.contains("${") && !found.contains("${")
        };
        // `init` and `call` keep what a variable held as a secret of the user.
        let is_kept = |ours: &str, found: &str| ours.contains("${secret:") && ours.replace("${secret:", "${") == found;
        let line = self.line.iter().zip(&found.line);
        let settings = self.settings.iter().zip(&found.settings);
        self.line.len() == found.line.len()
            && line
                .into_iter()
                .all(|(ours, found)| ours == found || is_asked(found) || is_pinned(ours, found) || is_kept(ours, found))
            && self.policy.is_within(&found.policy)
            && self.settings.len() == found.settings.len()
            && settings.into_iter().all(|((key, ours), (name, found))| {
                key == name && (ours == found || is_asked(found) || is_moved(key, ours, found) || is_kept(ours, found))
            })
    }
}

/// Whether an argument is the package `found` with a version.
fn is_pinned(ours: &str, found: &str) -> bool {
    let name = found.strip_suffix("@latest").unwrap_or(found);
    let rest = ours.strip_prefix(name).filter(|_| !name.is_empty()).unwrap_or_default();
    let version = rest.strip_prefix('@').or_else(|| rest.strip_prefix("=="));
    version.is_some_and(|version| version.starts_with(|c: char| c.is_ascii_digit()))
}

fn texts(value: &Value) -> BTreeSet<String> {
    match value {
        Value::Array(list) => list.iter().map(text).collect(),
        Value::Null => BTreeSet::new(),
        value => BTreeSet::from([text(value)]),
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn identity(server: &Value) -> ServerFingerprint {
        ServerFingerprint::new(server.as_object().unwrap())
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
        let found_variable = identity(&json!({"command": "x", "env": {"TOKEN": "a ${TOKEN}"}}));
        let kept =
            |token: &str| identity(&json!({"command": "x", "env": {"TOKEN": token}})).may_come_from(&found_variable);
        assert!(kept("a ${secret:TOKEN}") && !kept("a ${secret:OTHER}") && !kept("b ${secret:TOKEN}"));
        assert!(!moved("${A}", "def"));
        let found = identity(&json!({"command": "npx", "args": ["-y", "@scope/server"]}));
        let pinned =
            |package: &str| identity(&json!({"command": "npx", "args": ["-y", package]})).may_come_from(&found);
        assert!(pinned("@scope/server@1.2.3"));
        assert!(!pinned("@scope/server-other"));
    }

    #[test]
    fn servers_with_other_rules_for_tools_are_other_servers() {
        let server = |rules: &Value| {
            let mut server = json!({"command": "x"});
            server
                .as_object_mut()
                .unwrap()
                .extend(rules.as_object().unwrap().clone());
            identity(&server)
        };
        let free = server(&json!({}));
        assert_eq!(
            free,
            server(&json!({"allow": ["*"], "deny": [], "approval_exempt": ["a"]}))
        );
        let one = json!({"allow": ["a", "b"], "deny": ["c"], "approval": "always"});
        assert_eq!(
            server(&one),
            server(&json!({"toolsAllowed": ["b", "a"], "deny": ["c"], "approval": "always"}))
        );
        for other in [
            json!({"allow": ["a"]}),
            json!({"deny": ["a"]}),
            json!({"approval": "always"}),
            json!({"tools": {"a": {"approval": "always"}}}),
        ] {
            assert_ne!(free, server(&other));
            // A person may have permitted less in our config, and never more.
            assert!(server(&other).may_come_from(&free), "{other}");
            assert!(!free.may_come_from(&server(&other)), "{other}");
        }
        assert!(
            server(&json!({"allow": ["a"], "deny": ["c", "d"], "approval": "always"})).may_come_from(&server(&one))
        );
    }

    #[test]
    #[cfg(unix)]
    fn the_path_of_a_program_is_its_name_where_the_name_leads_there() {
        let server = |program: &str| identity(&json!({"command": program, "args": ["a"]}));
        let path = std::env::var_os("PATH").unwrap();
        let found = executable::resolve("sh", &path, None).unwrap().display().to_string();
        assert_eq!(server("sh"), server(&found));
        assert_ne!(server("sh"), server("/elsewhere/sh"));
        let own = |program: &str| identity(&json!({"command": program, "env": {"PATH": "/elsewhere"}}));
        assert_ne!(own("sh"), own(&found));
    }
}
