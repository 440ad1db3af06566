//! The designs that a config may start from: plain settings, written as in a config file, for everything that it leaves open.

use super::{
    Format, Preset,
    check::Check,
    expand::Env,
    fields::SERVER,
    merge,
    problem::Report,
    resolve::{REMOTE_ONLY, STDIO_ONLY},
    setting::{Rank, Values},
    tree,
};
use crate::name::NameStyle;

/// A server per agent that is started anew on demand, text of any form as arguments, long results summarised.
const TARSY: &str = r#"
scope = "session"
restart = false
breaker = "off"
health_probe = "list_tools"
health_interval = "15s"
health_timeout = "5s"
health_restart = true
connect_timeout = "30s"
list_timeout = "10s"
call_timeout = "60s"
call_total_timeout = "60s"
retry = { attempts = 1, backoff = ["500ms"], jitter = 50 }
env_policy = "inherit"
transports = ["stdio", "http", "sse"]
capabilities = ["tools"]
call_arguments = { read = "cascade", check = "off" }
summarise = true
"#;

/// Shared servers that are warmed up and restarted until they are ready, and handles for results over 12 KiB.
const AI_AGENT: &str = r#"
connect_timeout = "60s"
start_wait = "60s"
call_timeout = "300s"
call_total_timeout = "300s"
retry = 0
restart = { backoff = ["0s", "1s", "2s", "5s", "10s", "30s", "60s"] }
breaker = "off"
health_interval = "off"
health_timeout = "3s"
capabilities = ["tools", "prompts"]
case_insensitive = true
call_arguments = { read = "json", check = "coerce" }
result = { join = "nothing", max_bytes = 12288, mode = "spill" }
"#;

/// Servers that are reached when first used. Nothing is repeated, and results are cleaned and fenced, for they are untrusted input.
const ANTWORT: &str = r#"
start = "lazy"
restart = false
connect_timeout = "30s"
call_timeout = "24h"
call_total_timeout = "24h"
retry = 0
breaker = "off"
health_interval = "60s"
health_restart = true
transports = ["stdio", "http", "sse"]
capabilities = ["tools"]
call_arguments = { read = "json", check = "off" }
result = { clean = true, fence = true }
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
capabilities = ["tools", "resources"]
call_arguments = { read = "json", check = "required" }
"#;

/// Shared servers on first use, three repetitions, a breaker, and the first block of a result.
const MINION: &str = r#"
start = "lazy"
connect_timeout = "30s"
start_wait = "30s"
call_timeout = "60s"
call_total_timeout = "250s"
retry = { attempts = 3, backoff = ["1s", "2s", "4s", "8s", "16s", "30s"] }
restart = { backoff = ["1s", "2s", "4s", "8s", "16s", "30s"], max_attempts = 4 }
breaker = { failures = 5, percent = 50, of = 10, open = "30s", probes = 3, successes = 2 }
health_interval = "30s"
env_policy = "inherit"
transports = ["stdio", "http"]
capabilities = ["tools"]
call_arguments = { read = "json", check = "relaxed" }
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

    /// How it names tools, when a file that starts from it says nothing.
    pub(super) fn naming(self) -> NameStyle {
        match self {
            Self::Pegboard | Self::AiAgent => NameStyle::Dunder,
            Self::Tarsy => NameStyle::Dot,
            Self::Antwort => NameStyle::Bare,
            Self::Goat => NameStyle::McpDunder,
            Self::Minion => NameStyle::McpSingle,
        }
    }

    /// The same settings, checked like every other setting. They hold no variables, so that it does not matter whose environment is asked.
    pub(super) fn values(self) -> Values {
        let mut report = Report::new(self.as_str());
        let root = tree::read(self.settings(), Some(Format::Toml));
        let entries = root.ok().and_then(tree::Node::into_entries).unwrap_or_default();
        let env = Env::new(|_| None);
        Check::new(&mut report, &env, Rank::Preset).section(&SERVER, &entries, "preset")
    }
}

/// A server's settings; under them those of the top of the file; under both those of the preset that either names.
pub(super) fn filled(written: Values, top: &Values) -> Values {
    let preset = Preset::named(written.word("preset").or_else(|| top.word("preset")));
    let mut values = merge::plain(written);
    let useless = if values.find("url").is_some() {
        STDIO_ONLY
    } else {
        REMOTE_ONLY
    };
    for lower in [merge::plain(top.clone()), merge::plain(preset.values())] {
        merge::under(&mut values, lower, useless);
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Capabilities, Config, Policy};

    #[test]
    fn the_preset_of_the_file_names_the_tools_unless_the_file_does() {
        let naming = |text: &str| Config::from_text(text, Format::Toml, &Env::new(|_| None)).config.naming;
        for (preset, expected) in [
            ("pegboard", NameStyle::Dunder),
            ("tarsy", NameStyle::Dot),
            ("ai-agent", NameStyle::Dunder),
            ("antwort", NameStyle::Bare),
            ("goat", NameStyle::McpDunder),
            ("minion", NameStyle::McpSingle),
        ] {
            assert_eq!(naming(&format!("preset = '{preset}'")), expected, "{preset}");
            let text = format!("preset = '{preset}'\nnaming = 'dot'");
            assert_eq!(naming(&text), NameStyle::Dot, "{preset}");
        }
        // Names are those of the whole view, so that one server's preset cannot choose them.
        let one = "[servers.x]\ncommand = 'a'\npreset = 'goat'";
        assert_eq!(naming(one), NameStyle::Dunder);
    }

    #[test]
    fn what_a_server_is_asked_for_is_written_or_all() {
        let policy = |settings: &str| -> Policy {
            let text = format!("[servers.x]\ncommand = 'a'\n{settings}");
            let loaded = Config::from_text(&text, Format::Toml, &Env::new(|_| None));
            assert_eq!(loaded.problems, [], "{settings}");
            let mut servers = loaded.config.servers.into_values();
            servers.next().unwrap().policy
        };
        for (settings, resources, prompts) in [
            ("", true, true),
            ("capabilities = ['tools']", false, false),
            ("capabilities = []", false, false),
            ("capabilities = ['prompts']", false, true),
            ("primitives = ['tools', 'resources']", true, false),
            ("preset = 'goat'\ncapabilities = ['prompts']", false, true),
        ] {
            let expected = Capabilities { resources, prompts };
            assert_eq!(policy(settings).capabilities, expected, "{settings}");
        }
    }

    #[test]
    fn every_preset_is_a_config_without_problems() {
        let names = ["tarsy", "ai-agent", "antwort", "goat", "minion"];
        for preset in names.map(|name| Preset::named(Some(name))) {
            let mut report = Report::new("preset");
            let root = tree::read(preset.settings(), Some(Format::Toml)).unwrap();
            let entries = root.into_entries().unwrap();
            let env = Env::new(|_| None);
            let values = Check::new(&mut report, &env, Rank::Preset).section(&SERVER, &entries, "preset");
            let problems: Vec<_> = report.into_problems().iter().map(ToString::to_string).collect();
            assert!(problems.is_empty(), "{preset:?}: {problems:?}");
            assert!(values.iter().count() > 8, "{preset:?}");
        }
    }
}
