//! The resolved configuration of one server.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    choice::words,
    field::{DefaultValue, ValueKind, Via},
    from_setting::{self, FromSetting, is_version},
    key::{choice, either, flag, map, text, texts, unless, word},
    lifecycle::IdleStop,
    limits::Limits,
    policy::{Pins, Policy, Scan, Scope},
    setting::Setting,
    settings::settings,
    transport::{Command, Transport},
};
use pegboard_base::secret::Secret;

/// After how long [`IdleStop::Auto`] stops an idle server.
pub const IDLE: Duration = Duration::from_secs(300);

settings! {
    /// The resolved configuration of one server, with all defaults filled in.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct ServerConfig in basics of server {
        /// Whether the server is used at all.
        enabled: bool [default = "is_enabled"] = flag(true).converted(&[("disabled", Via::Negated)]).common().live();
        /// Whether the board is ready only when this server is ready.
        required: bool = flag(false)
            .for_all_as("Whether the board is ready only when every server is ready; a server's own setting overrides it.", &[])
            .common()
            .live();
        /// When the server is started: with the board, when it is first needed, or only when the program or an operator connects it.
        start: Start = choice().aka(&["start_mode"]).for_all(&[]).common().live();
        /// The protocol era to use: auto, probe, modern, legacy, or one protocol version such as `2025-06-18`.
        era: EraChoice = either(ERA_KINDS, EraChoice::Auto, DefaultValue::Text("auto"))
            .syntax(|text| unless(is_version(text), "must be auto, probe, modern, legacy, or a version such as `2025-06-18`"), "")
            .aka(&["protocol_version"])
            .for_all(&[]);
        /// Globs of the tools that are visible; empty means all.
        allow: Vec<String> = texts()
            .aka(&["tools_allowed", "allowed_tools", "enabled_tools", "include_tools", "available_tools"])
            .protects()
            .common()
            .live();
        /// Globs of the tools that are hidden, even if `allow` matches them.
        deny: Vec<String> = texts()
            .aka(&["tools_denied", "denied_tools", "disabled_tools", "exclude_tools"])
            .protects()
            .common()
            .live();
        /// Directories and other URIs that are reported to the server as roots.
        roots: Vec<String> = texts().live();
        /// A description of the server for people.
        description: Option<String> = text().aka(&["title", "display_name"]).live();
        /// Instructions for the model about this server.
        instructions: Option<String> = text().aka(&["server_instructions"]).common().live();
        /// Tools that the server does not list, by name: the JSON Schema of the arguments, or a definition with `description`, `inputSchema` and
        /// other fields of a listing. Tools that the server lists override them.
        tool_schemas: BTreeMap<String, Value> = map(&ValueKind::Map(&ValueKind::Any))
            .shown(DefaultValue::None)
            .via(from_setting::json_objects);
    }
    needs {
        /// How the server is reached.
        transport: Transport;
    }
    fields {
        /// Timeouts and size limits.
        limits: Limits = Limits::default();
        /// How its calls and results are handled.
        policy: Policy = Policy::default();
        /// Secrets of its settings that the other fields do not show: values of variables, and settings without effect.
        hidden: Vec<Secret> [skip_serializing_if = "Vec::is_empty"] = Vec::new();
    }
}

const ERA_KINDS: &[ValueKind] = &[
    ValueKind::Word(&[word("auto"), word("probe"), word("modern"), word("legacy")]),
    ValueKind::Text,
];

impl ServerConfig {
    /// Creates a server with the default settings.
    pub fn new(transport: Transport) -> Self {
        Self::with(transport)
    }

    /// Creates an in-process server with the default settings, for `Builder::in_process_with`.
    pub fn in_process() -> Self {
        // A placeholder: the dialer of an in-process server ignores the transport.
        let mut config = Self::new(Transport::Stdio(Command::new("in-process")));
        // Its definitions are part of this program.
        config.policy.pins = Pins::Off;
        config.policy.scan = Scan::Off;
        config
    }

    /// After how long an idle connection is closed; `None` for never.
    pub fn idle_after(&self) -> Option<Duration> {
        match self.policy.idle_stop {
            IdleStop::After(idle) => Some(idle),
            IdleStop::Never => None,
            IdleStop::Auto => {
                let may_stop = self.start == Start::Lazy && self.policy.scope != Scope::Session && !self.required;
                may_stop.then_some(IDLE)
            }
        }
    }

    /// Whether a connection made under these settings serves `new` as well: whether they differ only in settings that are declared as live.
    #[doc(hidden)]
    pub fn serves(&self, new: &Self) -> bool {
        let mut tuned = self.clone();
        tuned.tune(new);
        tuned.limits.tune(&new.limits);
        tuned.policy.tune(&new.policy);
        tuned.policy.health.tune(&new.policy.health);
        // Whether there are roots at all is declared once, in the handshake.
        let same_handshake = self.roots.is_empty() == new.roots.is_empty();
        // A server that may hold tools is not started without a place for its pins, and the start checks that.
        let holds_from_now = new.policy.pins.holds() && !self.policy.pins.holds();
        tuned == *new && same_handshake && !holds_from_now
    }

    /// The working directory of a stdio server, if one is set.
    pub fn cwd(&self) -> Option<&PathBuf> {
        match &self.transport {
            Transport::Stdio(command) => command.cwd.as_ref(),
            Transport::Remote { .. } => None,
        }
    }
}

/// The default of [`ServerConfig::enabled`].
fn is_enabled() -> bool {
    true
}

words! {
    /// When a server is started.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[non_exhaustive]
    pub enum Start as "start mode" default Eager {
        /// When the board opens, concurrently with the other servers and without blocking callers.
        Eager = "eager" | "background" | "auto",
        /// When it is first needed.
        Lazy = "lazy",
        /// Only on request: `Pegboard::connect`, `reconnect` or `enable`.
        Explicit = "explicit" | "manual",
    }
}

/// The protocol era that is used with a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EraChoice {
    /// Detected and remembered: `initialize` first on stdio, `server/discover` first on HTTP.
    #[default]
    Auto,
    /// Detected, with `server/discover` first on every transport, as the specification recommends.
    Probe,
    /// Only the era without a handshake (2026-07-28).
    Modern,
    /// Only the era with a handshake (2025-11-25 and earlier).
    Legacy,
    /// Only this protocol version.
    Version(String),
}

impl FromSetting for EraChoice {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Word("auto") => Some(Self::Auto),
            Setting::Word("probe") => Some(Self::Probe),
            Setting::Word("modern") => Some(Self::Modern),
            Setting::Word("legacy") => Some(Self::Legacy),
            Setting::Text(text) if is_version(&text.value) => Some(Self::Version(text.value.clone())),
            _ => None,
        }
    }
}

impl EraChoice {
    /// Whether only one era is allowed.
    #[doc(hidden)]
    pub fn is_firm(&self) -> bool {
        match self {
            Self::Auto | Self::Probe => false,
            Self::Modern | Self::Legacy | Self::Version(_) => true,
        }
    }
}
