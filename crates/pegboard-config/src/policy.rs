//! The policy of one server: sharing, queues, caching, approval, retries, health probes, masking and results.

pub(crate) mod call_limits;
pub(crate) mod mask_settings;
mod modes;
pub(crate) mod results;
pub(crate) mod tool_policy;

pub use call_limits::{Rate, Taint};
pub use modes::{Approval, OnCrossing, Pins, Scan};
pub use results::{Images, Join, Results, Structured, Summarise, SummaryModel, TooLong};
pub use tool_policy::ToolPolicy;

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    choice::{Capability, words},
    duration_text,
    field::{DefaultValue, Floor, InProject, ValueKind, Via, Word},
    floor::{at_least, at_least_default, weaker},
    from_setting::{self, FromSetting, only_field},
    key::{
        LIMIT, Nested, TEXTS, WAIT, choice, count, duration, either, flag, list, map, number, optional_choice,
        optional_count, optional_size, switch, table, text, texts, unless, word, word_kind,
    },
    lifecycle::{BreakerPolicy, Health, IdleStop, Restart, Retry, RetryClass, breaker, restart, retry},
    setting::Setting,
    settings::settings,
};
use call_limits::{allows_more_repeats, is_faster};
use mask_settings::masking;
use pegboard_mask::Masking;
use results::{RESULT_SIZE, result, summarise};
use tool_policy::tool;

/// Who shares the connection to a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// All agents.
    #[default]
    Shared,
    /// None: each agent's session has its own connection.
    Session,
    /// All agents, over up to this many connections. Each call uses the least busy one.
    Pool(usize),
}

/// The most connections of one pool.
const MAX_POOL: usize = 64;

impl FromSetting for Scope {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Word("shared") => Some(Self::Shared),
            Setting::Word("session") => Some(Self::Session),
            Setting::Text(text) => pool(&text.value).map(Self::Pool),
            Setting::Table(values) => only_field(values).map(Self::Pool),
            _ => None,
        }
    }
}

/// `pool(4)`.
pub(crate) fn pool(text: &str) -> Option<usize> {
    let size = text.trim().strip_prefix("pool")?.trim_start();
    let size = size.strip_prefix('(')?.strip_suffix(')')?.trim().parse().ok()?;
    (1..=MAX_POOL).contains(&size).then_some(size)
}

/// What is listed besides tools, if the server declares the capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    /// Resources and resource templates.
    pub resources: bool,
    /// Prompts.
    pub prompts: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            resources: true,
            prompts: true,
        }
    }
}

words! {
    /// How text is parsed into the arguments of a call.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Reading as "way to read arguments" default Json {
        /// The text must be a JSON object.
        Json = "json" | "strict",
        /// A JSON object in which common mistakes are repaired: trailing commas, code fences, single quotes, Python literals.
        Repair = "repair",
        /// The first that parses of: a JSON object, other JSON, nested YAML, `key: value` or `key=value` pairs; else the whole text as `input`.
        Cascade = "cascade",
        /// Like `Cascade`, guided by the tool's schema: mistakes are repaired, values may contain commas, and values get the declared types.
        Guided = "guided" | "schema",
    }
}

words! {
    /// How arguments are validated against the tool's schema before a call.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Check as "check of arguments" default Coerce {
        /// Not at all.
        Off = "off" | "none",
        /// Only that required arguments are present.
        Required = "required",
        /// Like `Coerce`, but unknown arguments are allowed.
        Relaxed = "relaxed",
        /// Types are converted where that makes a value valid (`"5"` for an integer); then everything must be valid.
        Coerce = "coerce",
        /// Everything must be valid as it is.
        Strict = "strict",
    }
}

settings! {
    /// How the arguments of a call are parsed and validated.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    #[non_exhaustive]
    pub struct ArgumentRules in call_arguments = "call_arguments" {
        /// How text is parsed into arguments: only JSON; JSON with common mistakes repaired; JSON, YAML, `key: value` pairs or plain text; or the
        /// same, guided by the tool's schema.
        read: Reading = choice().aka(&["reading"]).preset_only();
        /// How arguments are validated against the tool's schema: not at all, only that required ones are present, all but unknown ones, or all.
        /// `relaxed` and `coerce` convert types where that makes a value valid.
        check: Check = choice().aka(&["validation"]);
    }
}

words! {
    /// What happens when structured content does not match the tool's output schema.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[non_exhaustive]
    pub enum OutputCheck as "check of output" default Warn {
        /// It is not validated.
        Off = "off",
        /// The result carries a warning.
        Warn = "warn",
        /// The call fails.
        Error = "error",
    }
}

settings! {
    /// How the calls and results of a server are handled. Loading warns about settings that have no effect yet.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct Policy in policy_keys of server {
        /// Who shares the connection: all agents; none, each session has its own; or all, over up to four connections with `pool(4)`.
        scope: Scope = either(SCOPE_KINDS, Scope::Shared, DefaultValue::Text("shared"))
            .syntax(|text| unless(pool(text).is_some(), "must be shared, session, or pool(N) with N from 1 to 64"), "")
            .converted(&[("shared", Via::SharedFlag)])
            .protects()
            .floor(Floor::Both)
            .for_all(&[])
            .common();
        /// After how long without a call the server is stopped; the next call starts it. `auto` is five minutes for shared servers that start lazily
        /// and are not required, else never.
        idle_stop: IdleStop = either(&[ValueKind::Word(IDLE_WORDS), LIMIT], IdleStop::Auto, DefaultValue::Text("auto"))
            .aka(&["idle_timeout", "idle_ttl"])
            .for_all(&[])
            .live();
        /// The queue that its calls wait in.
        queue: Option<String> = text().live();
        /// Whether its calls run one after the other.
        serial: bool = flag(false).converted(&[("supports_parallel_tool_calls", Via::Negated)]).live();
        /// How long results of tools with `readOnlyHint` are cached, if the server is trusted; `true` means five minutes.
        cache: Option<Duration> as "duration_text" = either(TTL, None, DefaultValue::Bool(false))
            .aka(&["cache_ttl", "response_cache"])
            .via(from_setting::lifetime)
            .live();
        /// How long results of individual tools are cached, by name or glob; results of tools that declare that they write are never cached.
        tools_cache: BTreeMap<String, Option<Duration>> as "duration_text" = map(&ValueKind::Either(TTL))
            .via(from_setting::lifetimes)
            .live();
        /// Tools that are listed even when there are too many to list all, by name or glob; `true` for all.
        always_load: Vec<String> = either(&[ValueKind::Bool, TEXTS], Vec::new(), DefaultValue::EmptyList)
            .via(from_setting::globs)
            .live();
        /// Which calls a person must approve.
        approval: Approval = choice()
            .aka(&["approval_mode", "default_tools_approval_mode"])
            .protects()
            .floor(at_least::<Approval>())
            .in_project(InProject::Approval)
            .for_all(&[])
            .common()
            .live();
        /// Globs of the tools that never need approval.
        approval_exempt: Vec<String> = texts().aka(&["always_allow", "auto_approve"]).live();
        /// How often one agent may call tools of the server, such as `60/min`; further calls are refused until there is room.
        rate: Option<Rate> = text()
            .syntax(Rate::problem, "")
            .aka(&["rate_limit"])
            .protects()
            .floor(Floor::Users(|own, users| weaker(own, users, is_faster)))
            .for_all(&[])
            .live();
        /// How often one agent may repeat a call with the same arguments and the same kind of outcome within ten minutes; zero means no limit.
        loop_limit: usize = count((0, 1_000_000), 0)
            .protects()
            .floor(Floor::Users(|own, users| weaker(own, users, allows_more_repeats)))
            .for_all(&[])
            .live();
        /// What happens to calls of high risk after the agent has read output of an untrusted server: nothing, they need approval, or they are
        /// refused.
        taint: Taint = choice().protects().floor(at_least::<Taint>()).for_all(&[]).live();
        /// Whether `allow` and `deny` ignore case.
        case_insensitive: bool = flag(false).aka(&["ignore_case"]).protects().floor(Floor::Both).for_all(&[]).preset_only().live();
        /// What happens when a call would send a secret of another server to this one: the call is refused, the secret is masked, the reply has a
        /// warning, or nothing.
        crossing: OnCrossing = choice().protects().floor(at_least_default::<OnCrossing>()).for_all(&[]).live();
        /// What happens when a tool's definition changes: `warn` reports it, `block` holds changed and new tools until a person accepts them,
        /// `approve` also those of a new server.
        pins: Pins = choice().aka(&["pinning"]).protects().floor(at_least_default::<Pins>()).for_all(&[]).live();
        /// What happens when a tool's definition looks like an attack on the model: `warn` reports it, `block` holds the tool until a person accepts
        /// it.
        scan: Scan = choice().aka(&["scanner"]).protects().floor(at_least_default::<Scan>()).for_all(&[]).live();
        /// Whether the annotations of its tools are trusted.
        trust: bool = either(&[ValueKind::Bool, ValueKind::Word(&[word("trusted"), word("untrusted")])], false, DefaultValue::Bool(false))
            .aka(&["trusted"])
            .via(from_setting::trust)
            .floor(Floor::Default(is_more_trusted))
            .common()
            .live();
        /// What happens when structured content does not match the tool's output schema.
        output_check: OutputCheck = choice().protects().floor(Floor::Both).for_all(&[]).live();
        /// What is requested from the server if it declares it: tools (always), resources, prompts.
        capabilities: Vec<Capability> => Capabilities = list(&word_kind::<Capability>())
            .aka(&["primitives"])
            .shown(DefaultValue::Texts(&["tools", "resources", "prompts"]))
            .protects()
            .floor(Floor::Both)
            .for_all(&[])
            .live();
        /// Settings of individual tools, by name or glob.
        tools: BTreeMap<String, Nested<tool::In>> => BTreeMap<String, ToolPolicy> = map(&ValueKind::Table(&tool::SECTION))
            .aka(&["tool_overrides"])
            .shown(DefaultValue::None)
            .protects()
            .common()
            .live();
        /// How the server is restarted after it ended; with `false` the next call restarts it.
        restart: Nested<restart::In> => Restart = table(ValueKind::Either(&[ValueKind::Bool, ValueKind::Table(&restart::SECTION)]))
            .merged(|short| switch(&restart::enabled, short))
            .aka(&["reconnect"])
            .for_all(&[])
            .live();
        /// The circuit breaker: when calls are rejected at once because the server keeps failing.
        breaker: Nested<breaker::In> => Option<BreakerPolicy> = table(ValueKind::Either(&[ValueKind::Bool, ValueKind::Word(&[word("off")]), ValueKind::Table(&breaker::SECTION)]))
            .merged(|short| switch(&breaker::enabled, short))
            .aka(&["circuit_breaker"])
            .for_all(&["circuit_breaker"])
            .live();
        /// Which failed calls are retried: the most retries, or the `mode` of tools without a `retry` of their own.
        retry: Nested<retry::In> => Retry = table(ValueKind::Either(&[number(0, 100), word_kind::<RetryClass>(), ValueKind::Table(&retry::SECTION)]))
            .merged(|short| match short {
                Setting::Count(_) => Some((&retry::attempts, short.clone())),
                Setting::Word(_) => Some((&retry::mode, short.clone())),
                _ => None,
            })
            .aka(&["retries"])
            .for_all(&[])
            .live();
        /// How the arguments of calls are parsed and validated against the tool's schema; a single word is short for `check`.
        call_arguments: Nested<call_arguments::In> => ArgumentRules = table(ValueKind::Either(&[word_kind::<Check>(), ValueKind::Table(&call_arguments::SECTION)]))
            .merged(|short| matches!(short, Setting::Word(_)).then(|| (&*call_arguments::check, short.clone())))
            .aka(&["tool_arguments"])
            .protects()
            .floor(Floor::Both)
            .for_all(&["tool_arguments"])
            .live();
        /// What is masked in the server's output.
        masking: Nested<masking::In> => Masking = table(ValueKind::Either(&[ValueKind::Bool, ValueKind::Table(&masking::SECTION)]))
            .aka(&["data_masking"])
            .protects()
            .common()
            .live();
        /// When long results are summarised.
        summarise: Nested<summarise::In> => Option<Summarise> = table(ValueKind::Either(&[ValueKind::Bool, ValueKind::Table(&summarise::SECTION)]))
            .merged(|short| switch(&summarise::enabled, short))
            .aka(&["summarize", "summarization", "summarisation"])
            .for_all_as(
                "When long results are summarised, and by which model; servers may override it.",
                &["summarize", "summarization", "summarisation"],
            )
            .live();
        /// How its results are limited and formatted.
        result: Nested<result::In> => Results = table(ValueKind::Table(&result::SECTION))
            .merged(|_| None)
            .aka(&["results"])
            .protects()
            .floor(Floor::Both)
            .for_all_as("How the results of every server are limited and formatted.", &["results"])
            .live();
    }
    keys {
        /// How long calls wait, counted from the first start, while failed starts are retried; with zero they fail with the first failed start.
        start_wait: Duration = duration(WAIT, 0)
            .aka(&["acquire_timeout", "acquire_wait"])
            .shown(DefaultValue::Text("0s"))
            .preset_only()
            .live();
        /// The largest result that is passed on unchanged; short for `result.max_bytes`.
        max_result: Option<usize> = optional_size(RESULT_SIZE)
            .aka(&["tool_response_max_bytes", "max_result_bytes"])
            .for_all(&[])
            .common()
            .live();
        /// Which form of a result becomes its text; short for `result.structured`.
        structured: Option<Structured> = optional_choice().for_all(&[]).live();
    }
    fields {
        /// Queues of individual tools, by name or glob; they override `queue`.
        tool_queues: BTreeMap<String, String> = BTreeMap::new(), from tools;
        /// Whether calls of individual tools can be retried, by name or glob.
        tool_retry: BTreeMap<String, RetryClass> = BTreeMap::new(), from tools;
        /// How the health of the server is probed.
        health: Health = Health::default();
        /// How results of individual tools are limited and formatted, by name or glob.
        tool_results: BTreeMap<String, Results> = BTreeMap::new(), from tools;
    }
}

/// Annotations of the tools of a trusted server would lift approvals and taint.
fn is_more_trusted(own: &Setting, users: Option<&Setting>) -> bool {
    let is_trusted = |setting| from_setting::trust(setting) == Some(true);
    is_trusted(own) && !users.is_some_and(is_trusted)
}

/// A time to live; numbers are milliseconds.
const TTL: &[ValueKind] = &[
    ValueKind::Bool,
    LIMIT,
    number(1, 86_400_000),
    ValueKind::Word(&[word("off")]),
];

const SCOPE_KINDS: &[ValueKind] = &[
    ValueKind::Word(&[
        word("shared"),
        Word {
            name: "session",
            spellings: &["per_session", "dedicated"],
        },
    ]),
    ValueKind::Text,
    ValueKind::Table(&scope::SECTION),
];

const IDLE_WORDS: &[Word] = &[
    word("auto"),
    Word {
        name: "off",
        spellings: &["never", "none"],
    },
];

settings! {
    scope = "scope" {
        /// The most connections in the pool.
        pool: Option<usize> = optional_count((1, MAX_POOL as u64));
    }
}

impl Policy {
    /// The settings of a tool. Each one is taken from the entry with its name, else from the first glob that `fits` it.
    #[doc(hidden)]
    pub fn for_tool(&self, name: &str, fits: impl Fn(&str, &str) -> bool) -> ToolPolicy {
        let mut merged = self.tools.get(name).cloned().unwrap_or_default();
        for (glob, more) in &self.tools {
            if fits(glob, name) {
                merged.or(more);
            }
        }
        merged
    }
}

settings! {
    queue = "queue" {
        /// The most calls in flight at once.
        concurrent: Option<usize> = optional_count((1, 65_536)).aka(&["concurrency", "max_concurrent"]);
    }
}

/// A queue that calls wait in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredQueue")]
#[non_exhaustive]
pub struct Queue {
    /// The most calls in flight at once.
    pub concurrent: usize,
}

impl Queue {
    /// Creates a queue for this many calls in flight, at least one.
    pub fn new(concurrent: usize) -> Self {
        Self {
            concurrent: concurrent.max(1),
        }
    }
}

/// A queue as it is read: without a place it would block every call.
#[derive(Deserialize)]
struct StoredQueue {
    concurrent: usize,
}

impl From<StoredQueue> for Queue {
    fn from(stored: StoredQueue) -> Self {
        Self::new(stored.concurrent)
    }
}

/// A number of calls at once, or a table with that number.
impl FromSetting for Queue {
    fn from_setting(setting: &Setting) -> Option<Self> {
        match setting {
            Setting::Table(values) => only_field(values),
            _ => usize::from_setting(setting),
        }
        .map(Self::new)
    }
}
