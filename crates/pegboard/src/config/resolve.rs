//! Puts checked settings together into a server as it is meant.

mod arguments;
mod life;
pub(super) mod masking;
mod remote;
pub(super) mod results;
mod schemas;
mod stdio;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    expand::Env,
    life::RetryClass,
    limits::Limits,
    policy::{Approval, Capabilities, Pins, Policy, ToolPolicy},
    problem::{Report, join},
    server::{EraChoice, ServerConfig, Start},
    setting::{Rank, Setting, Values},
    transport::Transport,
    tree::Place,
};
use crate::mask::Masking;

use life::Life;

/// How long answers are kept when the config says only that they are.
const CACHE: Duration = Duration::from_secs(300);

/// Settings that mean something to a child process only.
pub(super) const STDIO_ONLY: &[&str] = &[
    "args",
    "env",
    "env_file",
    "env_pass",
    "env_policy",
    "allow_loader_env",
    "cwd",
    "rlimits",
];

/// Settings that mean something to a server with a URL only.
pub(super) const REMOTE_ONLY: &[&str] = &[
    "headers",
    "env_headers",
    "auth",
    "auth_type",
    "bearer_token",
    "tls",
    "insecure",
];

/// What a server's settings are understood against.
pub(super) struct Resolve<'a> {
    pub(super) report: &'a mut Report,
    pub(super) env: &'a Env<'a>,
    /// The folder of the config file.
    pub(super) base: Option<&'a Path>,
    /// `servers.NAME`.
    pub(super) path: &'a str,
    /// Where the server's name stands.
    pub(super) at: Place,
}

/// Reports values that no server could use: those of a server's own table, or those of the top of a file.
pub(super) fn check(values: &Values, path: &str, report: &mut Report) {
    results::check(values, path, report);
    life::check(values, path, report);
    if let Some(Setting::Text(text)) = values.get("era")
        && !is_version(&text.value)
    {
        let message = "must be auto, probe, modern, legacy, or a version such as `2025-06-18`";
        report.error(text.at, &join(path, "era"), message);
    }
    let (idle, total) = (values.duration("call_timeout"), values.duration("call_total_timeout"));
    if let (Some(idle), Some(total), Some(found)) = (idle, total, values.find("call_total_timeout"))
        && total < idle
    {
        let path = join(path, &found.key);
        report.error(found.at, &path, "must not be less than `call_timeout`");
    }
}

impl Resolve<'_> {
    /// The server, or nothing when it cannot be said how to reach it.
    pub(super) fn server(&mut self, values: &Values) -> Option<ServerConfig> {
        let transport = self
            .transport(values)
            .and_then(|transport| self.allowed(transport, values));
        let transport = transport?;
        self.warn_if_not_built(&transport);
        let mut server = ServerConfig::new(transport);
        server.enabled = values.bool("enabled").unwrap_or(server.enabled);
        server.required = values.bool("required").unwrap_or(server.required);
        server.start = match values.word("start") {
            Some("lazy") => Start::Lazy,
            Some("explicit") => Start::Explicit,
            _ => Start::Eager,
        };
        server.era = era(values);
        server.limits = limits(values);
        server.allow = values.strings("allow");
        server.deny = values.strings("deny");
        server.roots = values.strings("roots");
        server.description = values.value("description");
        server.instructions = values.value("instructions");
        server.tool_schemas = schemas::tools(values);
        server.policy = policy(values, Life::of(values));
        if let Some(found) = values.find("masking") {
            masking::check(self.report, self.path, found);
        }
        Some(server)
    }

    fn transport(&mut self, values: &Values) -> Option<Transport> {
        let kind = values.word("type");
        let command = values.at("command");
        let url = values.at("url");
        match (command, url, kind) {
            (Some(_), Some(at), _) => self.refuse(at, "url", "a server has either `command` or `url`, not both"),
            (None, None, Some("stdio")) => self.refuse(self.at, "command", "a stdio server needs `command`"),
            (None, None, Some(_)) => self.refuse(self.at, "url", "a server of this type needs `url`"),
            (None, None, None) => self.refuse(self.at, "url", "a server needs either `command` or `url`"),
            (None, Some(at), Some("stdio")) => self.refuse(at, "url", "a stdio server has `command`, not `url`"),
            (Some(at), None, Some("http" | "sse" | "websocket" | "remote")) => {
                self.refuse(at, "command", "a server of this type has `url`, not `command`")
            }
            (Some(_), None, _) => {
                self.without_effect(values, "stdio", REMOTE_ONLY);
                stdio::command(self, values).map(Transport::Stdio)
            }
            (None, Some(at), kind) => {
                self.without_effect(values, "remote", STDIO_ONLY);
                remote::transport(self, values, kind, at)
            }
        }
    }

    /// The server stays: another program may read the same file.
    fn warn_if_not_built(&mut self, transport: &Transport) {
        let kind = transport.kind();
        if !transport.is_built() {
            let message = format!("this program was built without servers over `{kind}`");
            let hint = format!("build it with the feature `{kind}` of the crate `pegboard`");
            self.report.warn_with(self.at, self.path, message, hint);
        }
    }

    /// Refuses a transport that `transports` leaves out.
    fn allowed(&mut self, transport: Transport, values: &Values) -> Option<Transport> {
        let Some((Setting::List(words), found)) = values.find("transports").map(|found| (&found.setting, found)) else {
            return Some(transport);
        };
        let allowed: Vec<&str> = words.iter().filter_map(Setting::word).collect();
        let fits = |word: &&str| match &transport {
            Transport::Auto(_) => matches!(*word, "http" | "sse" | "remote"),
            other => *word == other.kind(),
        };
        if allowed.iter().any(fits) {
            return Some(transport);
        }
        let key = if matches!(transport, Transport::Stdio(_)) {
            "command"
        } else {
            "url"
        };
        let kind = transport.kind();
        let (of, hint) = match found.rank {
            Rank::Preset => (
                format!(" of preset `{}`", found.file),
                format!("write `transports = [\"{kind}\"]` in the server's table if it is meant"),
            ),
            Rank::Top | Rank::Server => (String::new(), format!("add `{kind}` to `{}`", found.key)),
        };
        let list = if allowed.is_empty() {
            "nothing".to_owned()
        } else {
            allowed.join(" and ")
        };
        let message = format!("the server is reached over {kind}, and `transports`{of} allows {list}");
        let at = values.at(key).unwrap_or(self.at);
        self.report.error_with(at, &join(self.path, key), message, hint);
        None
    }

    fn refuse<T>(&mut self, at: Place, key: &str, message: &str) -> Option<T> {
        self.report.error(at, &join(self.path, key), message);
        None
    }

    fn without_effect(&mut self, values: &Values, kind: &str, names: &[&str]) {
        for found in names.iter().filter_map(|name| values.find(name)) {
            let path = join(self.path, &found.key);
            self.report
                .warn(found.at, &path, format!("has no effect on a {kind} server"));
        }
    }

    /// A path relative to the config file, with `~` for the home folder.
    fn resolve_path(&self, written: &str) -> PathBuf {
        let home = || self.env.get("HOME").or_else(|| self.env.get("USERPROFILE"));
        if (written == "~" || written.starts_with("~/"))
            && let Some(home) = home()
        {
            return Path::new(&home).join(written.trim_start_matches('~').trim_start_matches('/'));
        }
        match self.base {
            // A leading `.` says nothing more.
            Some(base) => base.join(written.strip_prefix("./").unwrap_or(written)),
            None => PathBuf::from(written),
        }
    }
}

fn limits(values: &Values) -> Limits {
    let mut limits = Limits::default();
    for (name, limit) in [
        ("connect_timeout", &mut limits.connect),
        ("list_timeout", &mut limits.list),
        ("call_timeout", &mut limits.call_idle),
        ("call_total_timeout", &mut limits.call_total),
        ("write_timeout", &mut limits.write),
        ("era_silence", &mut limits.era_silence),
        ("stop_timeout", &mut limits.stop),
    ] {
        *limit = values.duration(name).unwrap_or(*limit);
    }
    for (name, limit) in [
        ("max_message", &mut limits.message_bytes),
        ("max_pages", &mut limits.pages),
        ("max_items", &mut limits.items),
        ("max_in_flight", &mut limits.in_flight),
    ] {
        *limit = values.count(name).unwrap_or(*limit);
    }
    if limits.call_total < limits.call_idle {
        // The weaker of the two yields, a default or a preset's to a written one.
        if values.rank("call_total_timeout") > values.rank("call_timeout") {
            limits.call_idle = limits.call_total;
        } else {
            limits.call_total = limits.call_idle;
        }
    }
    limits
}

fn era(values: &Values) -> EraChoice {
    match values.get("era") {
        Some(Setting::Word("probe")) => EraChoice::Probe,
        Some(Setting::Word("modern")) => EraChoice::Modern,
        Some(Setting::Word("legacy")) => EraChoice::Legacy,
        Some(Setting::Text(text)) if is_version(&text.value) => EraChoice::Version(text.value.clone()),
        _ => EraChoice::Auto,
    }
}

fn is_version(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(index, b)| match index {
            4 | 7 => b == b'-',
            _ => b.is_ascii_digit(),
        })
}

fn policy(values: &Values, life: Life) -> Policy {
    Policy {
        scope: life.scope,
        capabilities: capabilities(values),
        idle_stop: life.idle_stop,
        restart: life.restart,
        health: life.health,
        retries: life.retries,
        breaker: life.breaker,
        queue: values.value("queue"),
        tool_queues: life::tool_queues(values),
        serial: values.bool("serial").unwrap_or(false),
        cache: values.get("cache").and_then(lifetime),
        always_load: match values.bool("always_load") {
            Some(true) => vec!["*".to_owned()],
            Some(false) | None => values.strings("always_load"),
        },
        tools_cache: match values.get("tools_cache") {
            Some(Setting::Map(tools)) => tools
                .iter()
                .map(|(name, time)| (name.clone(), lifetime(time)))
                .collect(),
            _ => BTreeMap::new(),
        },
        approval: approval(values).unwrap_or_default(),
        approval_exempt: values.strings("approval_exempt"),
        tools: tools(values),
        case_insensitive: values.bool("case_insensitive").unwrap_or(false),
        pins: match values.word("pins") {
            Some("warn") => Pins::Warn,
            Some("block") => Pins::Block,
            _ => Pins::Off,
        },
        retry: retry(values),
        trust: values.bool("trust") == Some(true) || values.word("trust") == Some("trusted"),
        args: arguments::rules(values),
        output_check: arguments::output_check(values).unwrap_or_default(),
        // The settings for all servers come under these once every layer is read.
        masking: masking::layered(&Masking::default(), values.get("masking")),
        ..results::of(values)
    }
}

fn capabilities(values: &Values) -> Capabilities {
    let Some(Setting::List(words)) = values.get("capabilities") else {
        return Capabilities::default();
    };
    let has = |wanted| words.iter().any(|word| word.word() == Some(wanted));
    Capabilities {
        resources: has("resources"),
        prompts: has("prompts"),
    }
}

fn approval(values: &Values) -> Option<Approval> {
    Some(match values.word("approval")? {
        "writes" => Approval::Writes,
        "always" => Approval::Always,
        "never" => Approval::Never,
        _ => Approval::Auto,
    })
}

/// What else is said about single tools.
fn tools(values: &Values) -> BTreeMap<String, ToolPolicy> {
    let Some(Setting::Map(tools)) = values.get("tools") else {
        return BTreeMap::new();
    };
    let said = |(name, tool): (&String, &Setting)| {
        let Setting::Table(tool) = tool else { return None };
        let said = ToolPolicy {
            enabled: tool.bool("enabled"),
            approval: approval(tool),
            instructions: tool.value("instructions"),
            requires: tool.strings("requires"),
        };
        (said != ToolPolicy::default()).then(|| (name.clone(), said))
    };
    tools.iter().filter_map(said).collect()
}

/// How long answers are kept: a time, `true` for a time of our choice, or not at all.
fn lifetime(setting: &Setting) -> Option<Duration> {
    match setting {
        Setting::Duration(time) => Some(*time),
        Setting::Count(millis) => Some(Duration::from_millis(*millis)),
        Setting::Bool(true) => Some(CACHE),
        _ => None,
    }
}

/// What is said about repeating calls of single tools.
fn retry(values: &Values) -> BTreeMap<String, RetryClass> {
    let Some(Setting::Map(tools)) = values.get("tools") else {
        return BTreeMap::new();
    };
    let class = |tool: &Setting| {
        let Setting::Table(tool) = tool else { return None };
        match (tool.word("retry"), tool.table("retry")) {
            (Some("safe"), _) => Some(RetryClass::Safe),
            (Some("idempotent"), _) => Some(RetryClass::Idempotent),
            (Some(_), _) => Some(RetryClass::Never),
            (None, Some(keyed)) => keyed.value("key_argument").map(RetryClass::Key),
            (None, None) => None,
        }
    };
    tools
        .iter()
        .filter_map(|(name, tool)| Some((name.clone(), class(tool)?)))
        .collect()
}
