//! The designs that a config may start from: plain settings, written as in a config file, for everything that it leaves open.

use super::{
    Format, Preset,
    check::Check,
    expand::Env,
    fields::SERVER,
    problem::Report,
    resolve::{REMOTE_ONLY, STDIO_ONLY},
    setting::Values,
    tree,
};

/// A server per agent that is started anew on demand, text of any form as arguments, long results summarised.
const TARSY: &str = r#"
scope = "session"
restart = false
breaker = "off"
health_probe = "list_tools"
health_interval = "15s"
health_timeout = "5s"
connect_timeout = "30s"
call_timeout = "60s"
call_total_timeout = "60s"
retry = 1
env_policy = "inherit"
transports = ["stdio", "http", "sse"]
call_arguments = { read = "cascade", check = "off" }
summarise = true
"#;

/// Shared servers that are warmed up and restarted for ever, and handles for results over 12 KiB.
const AI_AGENT: &str = r#"
connect_timeout = "60s"
call_timeout = "300s"
call_total_timeout = "300s"
retry = 0
restart = { backoff = ["0s", "1s", "2s", "5s", "10s", "30s", "60s"] }
breaker = "off"
health_interval = "off"
health_timeout = "3s"
call_arguments = { check = "coerce" }
result = { join = "nothing", max_bytes = 12288, mode = "spill" }
"#;

/// Remote servers that are reached when first used. Nothing is repeated, nothing is asked whether it is well.
const ANTWORT: &str = r#"
start = "lazy"
restart = false
connect_timeout = "30s"
call_timeout = "24h"
call_total_timeout = "24h"
retry = 0
breaker = "off"
health_probe = "none"
transports = ["http", "sse"]
call_arguments = { read = "json", check = "off" }
"#;

/// A client per agent that connects when it is told to and tries again with growing pauses.
const GOAT: &str = r#"
scope = "session"
start = "explicit"
call_timeout = "24h"
call_total_timeout = "24h"
retry = 0
restart = { backoff = ["1s", "2s", "4s", "8s", "16s", "30s"] }
breaker = "off"
health_probe = "none"
env_policy = "inherit"
transports = ["stdio", "http"]
call_arguments = { check = "required" }
"#;

/// Shared servers on first use, three repetitions, a breaker, and the first block of a result.
const MINION: &str = r#"
start = "lazy"
connect_timeout = "30s"
call_timeout = "60s"
call_total_timeout = "60s"
retry = 3
restart = { backoff = ["1s", "2s", "4s", "8s", "16s", "30s"], max_attempts = 3 }
breaker = { failures = 5, percent = 50, of = 10, open = "30s", probes = 3, successes = 2 }
health_interval = "30s"
env_policy = "inherit"
transports = ["stdio", "http"]
call_arguments = { check = "relaxed" }
result = { join = "first" }
"#;

impl Preset {
    /// Its settings for a server; ours are the defaults.
    fn settings(self) -> &'static str {
        match self {
            Self::Pegboard => "",
            Self::Tarsy => TARSY,
            Self::AiAgent => AI_AGENT,
            Self::Antwort => ANTWORT,
            Self::Goat => GOAT,
            Self::Minion => MINION,
        }
    }

    /// The same, checked like every other setting. They hold no variables, so that it does not matter whose environment is asked.
    fn values(self) -> Values {
        let mut report = Report::new("preset");
        let root = tree::read(self.settings(), Some(Format::Toml));
        let entries = root.ok().and_then(tree::Node::into_entries).unwrap_or_default();
        let env = Env::new(|_| None);
        Check::new(&mut report, &env).section(&SERVER, &entries, "preset")
    }
}

/// A server's settings with those of its preset, or of the file's, for all that neither the server nor the top of the file says.
pub(super) fn filled(mut written: Values, top: &Values) -> Values {
    let preset = Preset::named(written.word("preset").or_else(|| top.word("preset")));
    let useless = if written.find("url").is_some() {
        STDIO_ONLY
    } else {
        REMOTE_ONLY
    };
    for (name, found) in preset.values().iter() {
        if written.find(name).is_none() && top.find(name).is_none() && !useless.contains(&name) {
            written.insert(name, found.clone());
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_a_config_without_problems() {
        let names = ["tarsy", "ai-agent", "antwort", "goat", "minion"];
        for preset in names.map(|name| Preset::named(Some(name))) {
            let mut report = Report::new("preset");
            let root = tree::read(preset.settings(), Some(Format::Toml)).unwrap();
            let entries = root.into_entries().unwrap();
            let env = Env::new(|_| None);
            let values = Check::new(&mut report, &env).section(&SERVER, &entries, "preset");
            let problems: Vec<_> = report.into_problems().iter().map(ToString::to_string).collect();
            assert!(problems.is_empty(), "{preset:?}: {problems:?}");
            assert!(values.iter().count() > 8, "{preset:?}");
        }
    }
}
