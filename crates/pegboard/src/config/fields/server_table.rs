//! The fields of one server's table.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value as Json;

use super::{
    calls::{call_arguments, retry, tool},
    lifecycle::{breaker, restart, rlimits, scope},
    remote::{auth, oauth, tls},
    results::{RESULT_SIZE, masking, result, summarise},
};
use crate::config::{
    choice::{AuthKind, Capability, TransportKind},
    field::{DefaultValue, Kind, Via, Word},
    from_setting::{Argv, Globs, Interval, Lifetime, Trust},
    key::{
        LIMIT, Nested, TEXTS, WAIT, choice, count, duration, either, flag, limit, list, located, located_texts, map,
        nested, optional_choice, optional_size, plain, secret, section, size, text, texts, word, words,
    },
    life::{Health, IdleStop, RetryClass},
    limits::Limits,
    policy::{Approval, Check, OutputCheck, Pins, Scope, Structured},
    preset::Preset,
    server::{EraChoice, Start},
    setting::Text,
    transport::EnvPolicy,
};

section! {
    server = "server" {
        // How it is reached.
        TYPE: Option<TransportKind> = optional_choice("type", "How the server is reached. Without it: `command` means stdio, a `ws://` or `wss://` URL means websocket, a URL that ends in `/sse` means sse, any other URL means http.")
            .aka(&["transport", "transport_type"]);
        TRANSPORTS: Vec<TransportKind> = list("transports", &words::<TransportKind>(), "The ways that it may be reached in; a server that is reached in another one is refused.")
            .aka(&["allow_transports"]);
        COMMAND: Option<Argv> = either("command", &[Kind::Text, TEXTS], None, DefaultValue::None, "The program to start: a path, or a name that is looked up on the child's PATH. A list is the program and its first arguments. No shell is involved.")
            .aka(&["cmd", "program"]);
        ARGS: Vec<Text> = located_texts("args", "Its arguments. Each element stays one argument.").aka(&["arguments"]).stdio();
        ENV: BTreeMap<String, Text> = map("env", &Kind::Secret, "Variables set for it.")
            .aka(&["envs", "environment"])
            .shown(DefaultValue::EmptyTable)
            .stdio();
        ENV_FILE: Option<Text> = located("env_file", "A file of `NAME=value` lines with more variables for it, relative to the config file. `env` wins.").stdio();
        ENV_PASS: Vec<String> = texts("env_pass", "Names of our own variables that it sees too.").aka(&["env_vars", "env_keys"]).stdio();
        ENV_POLICY: EnvPolicy = choice("env_policy", "Which of our own variables it sees: a short list that programs need, none, or with `inherit` all but the keys of model providers, `OTEL_*`, `PEGBOARD_*`, and what makes programs load other code (`LD_*`, `PYTHONPATH`, `NODE_OPTIONS`, …). `env` and `env_pass` hand them on; those that load code also need `allow_loader_env`.")
            .stdio();
        ALLOW_LOADER_ENV: bool = flag("allow_loader_env", false, "Whether `env` may set variables that make a program load foreign code, such as LD_PRELOAD.").stdio();
        CWD: Option<String> = text("cwd", "The folder it is started in, relative to the config file. `~` is the home folder.")
            .aka(&["working_dir", "working_directory", "work_dir"])
            .stdio();
        RLIMITS: Nested<rlimits::In> = nested("rlimits", Kind::Table(&rlimits::SECTION), "Bounds that the operating system sets for its processes, on Linux.")
            .aka(&["ulimits"])
            .stdio();
        URL: Option<Text> = located("url", "Where the server listens.").aka(&["server_url", "http_url", "uri", "endpoint", "base_url"]);
        HEADERS: BTreeMap<String, Text> = map("headers", &Kind::Secret, "Sent with every request, to this origin only.")
            .aka(&["http_headers", "custom_headers", "request_headers"])
            .shown(DefaultValue::EmptyTable)
            .remote();
        ENV_HEADERS: BTreeMap<String, Text> = map("env_headers", &Kind::Text, "Headers whose values are in the named variables.")
            .aka(&["env_http_headers"])
            .shown(DefaultValue::EmptyTable)
            .remote();
        AUTH: Nested<auth::In> = nested("auth", Kind::Either(&[Kind::Table(&auth::SECTION), words::<AuthKind>()]), "Who we say we are.")
            .aka(&["auth_config", "authentication"])
            .remote();
        AUTH_TYPE: Option<AuthKind> = optional_choice("auth_type", "Which of the ways in `auth` is meant; it is told by what is set there.").remote();
        BEARER_TOKEN: Option<Text> = secret("bearer_token", "Short for `auth = { bearer = … }`.")
            .converted(&[("bearer_token_env_var", Via::VariableName)])
            .remote();
        OAUTH: Nested<oauth::In> = nested("oauth", Kind::Either(&[Kind::Bool, Kind::Table(&oauth::SECTION)]), "How to sign in with OAuth.").later();
        TLS: Nested<tls::In> = nested("tls", Kind::Table(&tls::SECTION), "How the connection is secured.").remote();
        INSECURE: bool = flag("insecure", false, "Do not check the server's certificate.")
            .converted(&[("verify_ssl", Via::Negated), ("verify_tls", Via::Negated), ("tls_verify", Via::Negated), ("ssl_verify", Via::Negated)])
            .remote();
        // Its lifecycle.
        ENABLED: bool = flag("enabled", true, "Whether it is used at all.").converted(&[("disabled", Via::Negated)]);
        REQUIRED: bool = flag("required", false, "Whether the board is ready only when this server is.");
        START: Start = choice("start", "When it is started: with the board, when it is first needed, or only when somebody says so.").aka(&["start_mode"]);
        ERA: EraChoice = either("era", &[Kind::Word(&[word("auto"), word("probe"), word("modern"), word("legacy")]), Kind::Text], EraChoice::Auto, DefaultValue::Text("auto"), "Which protocol era it is spoken to in: auto, probe, modern, legacy, or one version such as `2025-06-18`.")
            .aka(&["protocol_version"]);
        SCOPE: Scope = either("scope", SCOPES, Scope::Shared, DefaultValue::Text("shared"), "Who shares its connection: all, each agent's session for itself, or `pool(4)`: all, over up to four connections.")
            .converted(&[("shared", Via::SharedFlag)]);
        RESTART: Nested<restart::In> = nested("restart", Kind::Either(&[Kind::Bool, Kind::Table(&restart::SECTION)]), "How it is started again after it ended. With `false` the next call does that.")
            .aka(&["reconnect"]);
        IDLE_STOP: IdleStop = either("idle_stop", &[Kind::Word(IDLE_WORDS), LIMIT], IdleStop::Auto, DefaultValue::Text("auto"), "After how long without a call it is stopped; the next call starts it. `auto` is five minutes for shared servers that start lazily and are not required, else never.")
            .aka(&["idle_timeout", "idle_ttl"]);
        HEALTH_PROBE: crate::config::life::Probe = choice("health_probe", "How an idle server is asked whether it is well: in the words of its era and then by listing its tools, by listing them at once, or not at all.")
            .aka(&["health", "health_check"]);
        HEALTH_INTERVAL: Interval = either("health_interval", &[Kind::Word(&[word("off")]), LIMIT], Interval(Health::DEFAULT.every), HEALTH_INTERVAL_SHOWN, "After how much silence it is asked. With `off` only after a call has timed out.")
            .aka(&["health_check_interval"]);
        HEALTH_TIMEOUT: Duration = limit("health_timeout", Health::DEFAULT.within, "How long the answer is waited for.");
        HEALTH_RESTART: bool = flag("health_restart", Health::DEFAULT.restarts, "Whether a server that was lost is started again when it would be asked, also with `restart = false`.");
        BREAKER: Nested<breaker::In> = nested("breaker", Kind::Either(&[Kind::Bool, Kind::Word(&[word("off")]), Kind::Table(&breaker::SECTION)]), "When callers are turned away at once, because it answers nobody.")
            .aka(&["circuit_breaker"]);
        SESSION_GONE_STATUS: Vec<u16> = list("session_gone_status", &Kind::Count { min: 1, max: 1_000_000 }, "HTTP statuses by which this server says that it forgot the session, besides 404; the answer must speak of a session.");
        PRESET: Preset = choice("preset", "The design whose defaults this server starts from.");
        // Times and sizes.
        CONNECT_TIMEOUT: Duration = limit("connect_timeout", Limits::DEFAULT.connect, "From spawn or connect until the server has answered the handshake.")
            .aka(&["startup_timeout", "init_timeout", "connection_timeout", "start_timeout"]);
        START_WAIT: Duration = duration("start_wait", WAIT, Duration::ZERO, "How long callers wait from the first start on while starts fail and are repeated. With zero they fail with the first failed start.")
            .aka(&["acquire_timeout", "acquire_wait"])
            .shown(DefaultValue::Text("0s"));
        LIST_TIMEOUT: Duration = limit("list_timeout", Limits::DEFAULT.list, "For listing the tools of a server, all pages together, and again for all else that it offers.")
            .aka(&["list_tools_timeout"]);
        CALL_TIMEOUT: Duration = limit("call_timeout", Limits::DEFAULT.call_idle, "For one call without a sign of life; progress starts it anew.")
            .aka(&["timeout", "request_timeout", "tool_timeout", "tool_call_timeout", "read_timeout"]);
        CALL_TOTAL_TIMEOUT: Duration = limit("call_total_timeout", Limits::DEFAULT.call_total, "For one call altogether. At least `call_timeout`.")
            .aka(&["max_total_timeout"]);
        WRITE_TIMEOUT: Duration = limit("write_timeout", Limits::DEFAULT.write, "For handing one message to the operating system.");
        ERA_SILENCE: Duration = limit("era_silence", Limits::DEFAULT.era_silence, "How long a silent stdio server is waited for before the other era is tried.")
            .aka(&["discover_timeout"]);
        STOP_TIMEOUT: Duration = limit("stop_timeout", Limits::DEFAULT.stop, "How long a server is waited for after its input was closed, and again after it was asked to end.")
            .aka(&["shutdown_timeout"]);
        MAX_MESSAGE: usize = size("max_message", (1024, 1 << 30), Limits::DEFAULT.message_bytes, "The largest message.")
            .aka(&["max_message_bytes", "max_message_size"]);
        MAX_PAGES: usize = count("max_pages", (1, 100_000), Limits::DEFAULT.pages, "The most pages of one listing.");
        MAX_ITEMS: usize = count("max_items", (1, 1_000_000), Limits::DEFAULT.items, "The most items of one listing.").aka(&["max_tools"]);
        MAX_IN_FLIGHT: usize = count("max_in_flight", (1, 65_536), Limits::DEFAULT.in_flight, "The most calls under way at once.")
            .aka(&["concurrency", "concurrent", "max_concurrent", "max_concurrency"]);
        // What is offered, and to whom.
        ALLOW: Vec<String> = texts("allow", "Globs of the tools that are shown; empty means all.")
            .aka(&["tools_allowed", "allowed_tools", "enabled_tools", "include_tools", "available_tools"]);
        DENY: Vec<String> = texts("deny", "Globs of the tools that are hidden, whatever `allow` says.")
            .aka(&["tools_denied", "denied_tools", "disabled_tools", "exclude_tools"]);
        CASE_INSENSITIVE: bool = flag("case_insensitive", false, "Whether `allow` and `deny` disregard upper and lower case.").aka(&["ignore_case"]);
        ROOTS: Vec<String> = texts("roots", "Folders and other URIs that the server is told it may work in.");
        DESCRIPTION: Option<String> = text("description", "What it is for, in words for people.").aka(&["title", "display_name"]);
        INSTRUCTIONS: Option<String> = text("instructions", "Words for the model about this server.").aka(&["server_instructions"]);
        TOOLS: BTreeMap<String, Nested<tool::In>> = map("tools", &Kind::Table(&tool::SECTION), "Settings of single tools, by name or glob.")
            .aka(&["tool_overrides"]);
        TOOL_SCHEMAS: BTreeMap<String, BTreeMap<String, Json>> = map("tool_schemas", &Kind::Map(&Kind::Any), "Tools of a server that cannot list them, by name: the JSON Schema of the tool's arguments, or `description`, `inputSchema` and what else a listing would say. What the server does list wins.");
        APPROVAL: Approval = choice("approval", "Which calls a person must agree to.").aka(&["approval_mode", "default_tools_approval_mode"]);
        APPROVAL_EXEMPT: Vec<String> = texts("approval_exempt", "Tools that never need a person's agreement.").aka(&["always_allow", "auto_approve"]);
        PINS: Pins = choice("pins", "What happens when a tool's definition changes.").aka(&["pinning"]).later();
        TRUST: Trust = either("trust", &[Kind::Bool, Kind::Word(&[word("trusted"), word("untrusted")])], Trust(false), DefaultValue::Bool(false), "Whether the hints that its tools give about themselves are believed.")
            .aka(&["trusted"]);
        ALWAYS_LOAD: Globs = either("always_load", &[Kind::Bool, TEXTS], Globs(Vec::new()), DefaultValue::EmptyList, "Tools that are listed even when there are too many to list all, by name or glob; `true` for all of them.");
        CAPABILITIES: Vec<Capability> = list("capabilities", &words::<Capability>(), "What the server is asked to list, if it has it: tools (always), resources, prompts.")
            .aka(&["primitives"])
            .shown(DefaultValue::Texts(&["tools", "resources", "prompts"]));
        // Calls and results.
        CALL_ARGUMENTS: Nested<call_arguments::In> = nested("call_arguments", Kind::Either(&[words::<Check>(), Kind::Table(&call_arguments::SECTION)]), "How the arguments of calls are read, and checked against the tool's schema. A single word is short for `check`.")
            .aka(&["tool_arguments"]);
        OUTPUT_CHECK: OutputCheck = choice("output_check", "What happens when a structured answer does not fit the tool's output schema.");
        QUEUE: Option<String> = text("queue", "The queue its calls wait in.");
        SERIAL: bool = flag("serial", false, "Whether its calls run one after the other.").converted(&[("supports_parallel_tool_calls", Via::Negated)]);
        CACHE: Lifetime = either("cache", TTL, Lifetime(None), DefaultValue::Bool(false), "How long answers of tools that say they only read are kept and given again to the same question; `true` means five minutes.")
            .aka(&["cache_ttl", "response_cache"]);
        TOOLS_CACHE: BTreeMap<String, Lifetime> = map("tools_cache", &Kind::Either(TTL), "The same for single tools, by name or glob. A tool that says it writes is always asked.")
            .shown(DefaultValue::EmptyTable);
        RETRY: Nested<retry::In> = nested("retry", Kind::Either(&[Kind::Count { min: 0, max: 100 }, words::<RetryClass>(), Kind::Table(&retry::SECTION)]), "Which failed calls are made again: how often, or a word for all its tools that have no `retry` of their own.")
            .aka(&["retries"]);
        MASKING: Nested<masking::In> = nested("masking", Kind::Either(&[Kind::Bool, Kind::Table(&masking::SECTION)]), "What is hidden in results.")
            .aka(&["data_masking"]);
        SUMMARISE: Nested<summarise::In> = nested("summarise", Kind::Either(&[Kind::Bool, Kind::Table(&summarise::SECTION)]), "When long results are summarised.")
            .aka(&["summarize", "summarization", "summarisation"]);
        MAX_RESULT: Option<usize> = optional_size("max_result", RESULT_SIZE, "The largest result that is handed on as it is; short for `result.max_bytes`.")
            .aka(&["tool_response_max_bytes", "max_result_bytes"]);
        STRUCTURED: Option<Structured> = optional_choice("structured", "Which form of a result is its text; short for `result.structured`.");
        RESULT: Nested<result::In> = nested("result", Kind::Table(&result::SECTION), "What becomes of its results.").aka(&["results"]);
    }
    unkeyed {
        plain("headers_helper", Kind::Either(&[Kind::Text, TEXTS]), "A program that prints headers.").aka(&["header_helper", "header_command"]).later();
        plain("scopes", TEXTS, "OAuth scopes to ask for.").aka(&["oauth_scopes"]).later();
        plain("oauth_resource", Kind::Text, "The OAuth resource indicator to send.").later();
        plain("session_cleanup_url", Kind::Text, "Asked with DELETE when an agent's session ends.").later();
        plain("sandbox", Kind::Either(&[Kind::Bool, Kind::Text, Kind::Map(&Kind::Any)]), "What the process may reach.").later();
        // Other programs' own.
        plain("gallery", Kind::Any, "").foreign();
        plain("version", Kind::Any, "").foreign();
        plain("source", Kind::Any, "").foreign();
        plain("dev", Kind::Any, "").foreign();
        plain("settings", Kind::Any, "").foreign();
        plain("icon", Kind::Any, "").foreign();
        plain("watch_paths", Kind::Any, "").foreign();
    }
}

/// A time to live; numbers are milliseconds.
const TTL: &[Kind] = &[
    Kind::Bool,
    LIMIT,
    Kind::Count {
        min: 1,
        max: 86_400_000,
    },
    Kind::Word(&[word("off")]),
];

const SCOPES: &[Kind] = &[
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

const HEALTH_INTERVAL_SHOWN: DefaultValue = match Health::DEFAULT.every {
    Some(every) => DefaultValue::Duration(every),
    None => DefaultValue::Text("off"),
};
