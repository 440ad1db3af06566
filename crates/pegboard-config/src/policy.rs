//! The policy of one server: sharing, queues, caching, approval, retries, health probes, masking and results.

mod call_limits;
pub(crate) mod results;

pub use call_limits::{Rate, Taint};
pub use results::{Images, Join, Results, Structured, Summarise, SummaryModel, TooLong};

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    choice::{Capability, words},
    duration_text,
    field::{DefaultValue, Floor, InProject, Kind, Via, Word},
    from_setting::{self, MAX_POOL, pool},
    key::{
        LIMIT, Nested, TEXTS, WAIT, choice, count, duration, either, flag, list, map, nested, number, optional_choice,
        optional_count, optional_flag, optional_size, text, texts, unless, word, word_kind,
    },
    lifecycle::{BreakerPolicy, Health, IdleStop, Restart, Retry, RetryClass, breaker, restart, retry},
    merge::switch,
    project_floor::{allows_more_repeats, at_least, at_least_default, is_faster, is_more_trusted, weaker},
    setting::{Setting, Text},
    settings::settings,
};
use pegboard_mask::{MaskStyle, Masking};
use results::{RESULT_SIZE, result, summarise};

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

words! {
    /// Which calls a person must approve.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Approval as "approval mode" default Auto {
        /// None.
        Auto = "auto" | "approve",
        /// Calls of tools that do not declare that they only read.
        Writes = "writes",
        /// All calls.
        Always = "always" | "prompt",
        /// All calls are refused.
        Never = "never",
    }
}

words! {
    /// What happens when the arguments of a call contain a secret of another server. The order is from the weakest to the strictest.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum OnCrossing as "policy for secrets of other servers" default Block {
        /// The call is made. The arguments are not searched.
        Allow = "allow" | "off",
        /// The call is made, and its reply has a warning.
        Warn = "warn",
        /// The call is made with the secret masked.
        Mask = "mask",
        /// The call is refused.
        Block = "block" | "refuse",
    }
}

words! {
    /// What happens when a tool's definition changes after it was first listed.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Pins as "pin mode" default Warn {
        /// Nothing. Definitions are not pinned.
        Off = "off",
        /// Definitions are pinned when they are first listed, and a changed one is reported.
        Warn = "warn",
        /// Like `Warn`, and changed and new tools of a known server are held until a person accepts them.
        Block = "block",
        /// Like `Block`, and the tools of a new server are held as well.
        Approve = "approve" | "ask",
    }
}

impl Pins {
    /// Whether tools can be held. Such a server is not started without a place for its pins.
    #[doc(hidden)]
    pub fn holds(self) -> bool {
        matches!(self, Self::Block | Self::Approve)
    }
}

words! {
    /// What happens when a definition looks like an attack on the model that reads it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[non_exhaustive]
    pub enum Scan as "scan mode" default Warn {
        /// Nothing. Definitions are not scanned.
        Off = "off",
        /// Findings are reported.
        Warn = "warn",
        /// Findings are reported, and definitions with findings of high severity are held until a person accepts them.
        Block = "block",
    }
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
        read: Reading = choice().aka(&["reading"]).of_presets();
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
    /// Settings of one tool, or of the tools that a glob matches.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct ToolPolicy in tool = "tool" {
        /// Whether the tool may be used; `false` hides it as `deny` does.
        enabled: Option<bool> = optional_flag().converted(&[("disabled", Via::Negated)]);
        /// Whether a person must approve its calls; overrides `approval` of the server.
        approval: Option<Approval> = optional_choice().aka(&["approval_mode"]);
        /// Instructions for the model about the tool.
        instructions: Option<String> = text().aka(&["notes"]);
        /// Capabilities that an agent's view must all be granted, in addition to the tool itself.
        requires: Vec<String> = texts().aka(&["required_capabilities"]).shown(DefaultValue::None);
        /// How often one agent may call the tool, such as `10/min`, in addition to `rate` of the server.
        rate: Option<Rate> = text().syntax(Rate::problem, "").aka(&["rate_limit"]);
        /// How often one agent may repeat a call of the tool with the same arguments and the same kind of outcome within ten minutes; overrides
        /// `loop_limit` of the server.
        loop_limit: Option<usize> = optional_count((0, 1_000_000));
    }
    keys {
        /// Whether a call that may have run can be retried: never, safe (the tool only reads), or idempotent.
        retry: Option<RetryClass> = either(&[word_kind::<RetryClass>(), Kind::Table(&tool_retry::SECTION)], None, DefaultValue::None)
            .via(from_setting::tool_retry);
        /// The queue that its calls wait in, instead of the server's queue.
        queue: Option<String> = text();
        /// The largest result that is passed on unchanged; short for `result.max_bytes`.
        max_result: Option<usize> = optional_size(RESULT_SIZE).aka(&["max_result_bytes"]);
        /// Which form of a result becomes its text; short for `result.structured`.
        structured: Option<Structured> = optional_choice();
        /// How its results are limited and formatted.
        result: Nested<result::In> = nested(Kind::Table(&result::SECTION)).aka(&["results"]);
    }
}

settings! {
    tool_retry = "tool_retry" {
        /// The argument that holds an idempotency key, by which the server recognises a retried call.
        key_argument: Option<String> = text();
    }
}

impl ToolPolicy {
    /// Fills the fields that are not set from `other`.
    #[doc(hidden)]
    pub fn or(&mut self, other: &Self) {
        self.enabled = self.enabled.or(other.enabled);
        self.approval = self.approval.or(other.approval);
        self.rate = self.rate.or(other.rate);
        self.loop_limit = self.loop_limit.or(other.loop_limit);
        if self.instructions.is_none() {
            self.instructions.clone_from(&other.instructions);
        }
        // Requirements of all matching rules add up.
        let more = other.requires.iter().filter(|word| !self.requires.contains(word));
        let more: Vec<String> = more.cloned().collect();
        self.requires.extend(more);
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
        idle_stop: IdleStop = either(&[Kind::Word(IDLE_WORDS), LIMIT], IdleStop::Auto, DefaultValue::Text("auto"))
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
        tools_cache: BTreeMap<String, Option<Duration>> as "duration_text" = map(&Kind::Either(TTL)).via(from_setting::lifetimes).live();
        /// Tools that are listed even when there are too many to list all, by name or glob; `true` for all.
        always_load: Vec<String> = either(&[Kind::Bool, TEXTS], Vec::new(), DefaultValue::EmptyList).via(from_setting::globs).live();
        /// Which calls a person must approve.
        approval: Approval = choice().aka(&["approval_mode", "default_tools_approval_mode"]).protects().floor(at_least::<Approval>()).in_project(InProject::Approval).for_all(&[]).common().live();
        /// Globs of the tools that never need approval.
        approval_exempt: Vec<String> = texts().aka(&["always_allow", "auto_approve"]).live();
        /// How often one agent may call tools of the server, such as `60/min`; further calls are refused until there is room.
        rate: Option<Rate> = text().syntax(Rate::problem, "").aka(&["rate_limit"]).protects().floor(Floor::Users(|own, users| weaker(own, users, is_faster))).for_all(&[]).live();
        /// How often one agent may repeat a call with the same arguments and the same kind of outcome within ten minutes; zero means no limit.
        loop_limit: usize = count((0, 1_000_000), 0).protects().floor(Floor::Users(|own, users| weaker(own, users, allows_more_repeats))).for_all(&[]).live();
        /// What happens to calls of high risk after the agent has read output of an untrusted server: nothing, they need approval, or they are
        /// refused.
        taint: Taint = choice().protects().floor(at_least::<Taint>()).for_all(&[]).live();
        /// Whether `allow` and `deny` ignore case.
        case_insensitive: bool = flag(false).aka(&["ignore_case"]).protects().floor(Floor::Both).for_all(&[]).of_presets().live();
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
        trust: bool = either(&[Kind::Bool, Kind::Word(&[word("trusted"), word("untrusted")])], false, DefaultValue::Bool(false))
            .aka(&["trusted"])
            .via(from_setting::trust)
            .floor(Floor::Default(is_more_trusted))
            .common()
            .live();
        /// What happens when structured content does not match the tool's output schema.
        output_check: OutputCheck = choice().protects().floor(Floor::Both).for_all(&[]).live();
    }
    keys {
        /// What is requested from the server if it declares it: tools (always), resources, prompts.
        capabilities: Vec<Capability> = list(&word_kind::<Capability>())
            .aka(&["primitives"])
            .shown(DefaultValue::Texts(&["tools", "resources", "prompts"]))
            .protects()
            .floor(Floor::Both)
            .for_all(&[])
            .live();
        /// Settings of individual tools, by name or glob.
        tools: BTreeMap<String, Nested<tool::In>> = map(&Kind::Table(&tool::SECTION))
            .aka(&["tool_overrides"])
            .shown(DefaultValue::None)
            .protects()
            .common()
            .live();
        /// How the server is restarted after it ended; with `false` the next call restarts it.
        restart: Nested<restart::In> = nested(Kind::Either(&[Kind::Bool, Kind::Table(&restart::SECTION)])).merged(|short| switch(&restart::enabled, short)).aka(&["reconnect"]).for_all(&[]).live();
        /// How long calls wait, counted from the first start, while failed starts are retried; with zero they fail with the first failed start.
        start_wait: Duration = duration(WAIT, 0).aka(&["acquire_timeout", "acquire_wait"]).shown(DefaultValue::Text("0s")).of_presets().live();
        /// The circuit breaker: when calls are rejected at once because the server keeps failing.
        breaker: Nested<breaker::In> = nested(Kind::Either(&[Kind::Bool, Kind::Word(&[word("off")]), Kind::Table(&breaker::SECTION)]))
            .merged(|short| switch(&breaker::enabled, short))
            .aka(&["circuit_breaker"])
            .for_all(&["circuit_breaker"])
            .live();
        /// Which failed calls are retried: the most retries, or the `mode` of tools without a `retry` of their own.
        retry: Nested<retry::In> = nested(Kind::Either(&[number(0, 100), word_kind::<RetryClass>(), Kind::Table(&retry::SECTION)]))
            .merged(|short| match short {
                Setting::Count(_) => Some((&retry::attempts, short.clone())),
                Setting::Word(_) => Some((&retry::mode, short.clone())),
                _ => None,
            })
            .aka(&["retries"])
            .for_all(&[])
            .live();
        /// How the arguments of calls are parsed and validated against the tool's schema; a single word is short for `check`.
        call_arguments: Nested<call_arguments::In> = nested(Kind::Either(&[word_kind::<Check>(), Kind::Table(&call_arguments::SECTION)]))
            .merged(|short| matches!(short, Setting::Word(_)).then(|| (&*call_arguments::check, short.clone())))
            .aka(&["tool_arguments"])
            .protects()
            .floor(Floor::Both)
            .for_all(&["tool_arguments"])
            .live();
        /// What is masked in the server's output.
        masking: Nested<masking::In> = nested(Kind::Either(&[Kind::Bool, Kind::Table(&masking::SECTION)])).aka(&["data_masking"]).protects().common().live();
        /// When long results are summarised.
        summarise: Nested<summarise::In> = nested(Kind::Either(&[Kind::Bool, Kind::Table(&summarise::SECTION)]))
            .merged(|short| switch(&summarise::enabled, short))
            .aka(&["summarize", "summarization", "summarisation"])
            .for_all_as(
                "When long results are summarised, and by which model; servers may override it.",
                &["summarize", "summarization", "summarisation"],
            )
            .live();
        /// The largest result that is passed on unchanged; short for `result.max_bytes`.
        max_result: Option<usize> = optional_size(RESULT_SIZE).aka(&["tool_response_max_bytes", "max_result_bytes"]).for_all(&[]).common().live();
        /// Which form of a result becomes its text; short for `result.structured`.
        structured: Option<Structured> = optional_choice().for_all(&[]).live();
        /// How its results are limited and formatted.
        result: Nested<result::In> = nested(Kind::Table(&result::SECTION))
            .merged(|_| None)
            .aka(&["results"])
            .protects()
            .floor(Floor::Both)
            .for_all_as("How the results of every server are limited and formatted.", &["results"])
            .live();
    }
    fields {
        /// What is listed besides tools.
        capabilities: Capabilities = Capabilities::default(), from capabilities;
        /// Queues of individual tools, by name or glob; they override `queue`.
        tool_queues: BTreeMap<String, String> = BTreeMap::new(), from tools;
        /// Settings of individual tools, by name or glob.
        tools: BTreeMap<String, ToolPolicy> = BTreeMap::new(), from tools;
        /// Whether calls of individual tools can be retried, by name or glob.
        tool_retry: BTreeMap<String, RetryClass> = BTreeMap::new(), from tools;
        /// Which calls are retried, and how often.
        retry: Retry = Retry::default(), from retry;
        /// How the server is restarted.
        restart: Restart = Restart::default(), from restart;
        /// How the health of the server is probed.
        health: Health = Health::default();
        /// When calls are rejected because the server keeps failing; `None` for the board's policy.
        breaker: Option<BreakerPolicy> = None, from breaker;
        /// How arguments are parsed and validated.
        call_arguments: ArgumentRules = ArgumentRules::default(), from call_arguments;
        /// What is masked in the server's output.
        masking: Masking = Masking::default(), from masking;
        /// How results are limited and formatted.
        result: Results = Results::default(), from result;
        /// How results of individual tools are limited and formatted, by name or glob.
        tool_results: BTreeMap<String, Results> = BTreeMap::new(), from tools;
        /// When long results are summarised; `None` for never.
        summarise: Option<Summarise> = None, from summarise;
    }
}

/// A time to live; numbers are milliseconds.
const TTL: &[Kind] = &[Kind::Bool, LIMIT, number(1, 86_400_000), Kind::Word(&[word("off")])];

const SCOPE_KINDS: &[Kind] = &[
    Kind::Word(&[
        word("shared"),
        Word {
            name: "session",
            spellings: &["per_session", "dedicated"],
        },
    ]),
    Kind::Text,
    Kind::Table(&scope::SECTION),
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

settings! {
    masking = "masking" {
        /// Whether anything besides the secrets of the config is masked.
        enabled: bool = flag(true);
        /// Whether the default patterns are masked.
        defaults: bool = flag(true);
        /// Names of further pattern groups to mask.
        groups: Vec<Text> = texts().aka(&["pattern_groups"]);
        /// Names of further patterns to mask.
        patterns: Vec<Text> = texts();
        /// Custom patterns to mask.
        custom: Vec<Nested<pattern::In>> = list(&Kind::Table(&pattern::SECTION)).aka(&["custom_patterns"]).shown(DefaultValue::EmptyList);
        /// Regular expressions for whole values that are never masked, even if a pattern matches them.
        except: Vec<Text> = texts().aka(&["allow_list", "allowlist"]);
        /// Whether only the secret is replaced, or its name as well.
        style: MaskStyle = choice();
    }
}

settings! {
    pattern = "pattern" {
        /// The regular expression to search for.
        pattern: Option<Text> = text().aka(&["regex"]);
        /// The text that replaces a match.
        replacement: Option<String> = text().shown(DefaultValue::Text("[MASKED]"));
        /// What the pattern finds.
        description: Option<String> = text().aka(&["name"]);
    }
}

impl Policy {
    /// The settings of a tool. Each one is taken from the entry with its name, else from the first glob that `fits` it.
    #[doc(hidden)]
    pub fn of_tool(&self, name: &str, fits: impl Fn(&str, &str) -> bool) -> ToolPolicy {
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
