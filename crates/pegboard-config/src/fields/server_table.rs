//! The fields of one server's table.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value as Json;

use super::{
    calls::{call_arguments, retry, tool},
    lifecycle::{breaker, restart, rlimits, sandbox, scope},
    oauth_table::oauth,
    remote::{auth, tls},
    results::{RESULT_SIZE, masking, result, summarise},
};
use crate::{
    choice::{AuthKind, Capability, TransportKind},
    field::{DefaultValue, Kind, Via, Word},
    from_setting::{Argv, Globs, Interval, Lifetime, Scopes, Trust},
    key::{
        LIMIT, Nested, TEXTS, WAIT, choice, count, duration, either, flag, limit, list, located, located_texts, map,
        nested, optional_choice, optional_duration, optional_size, parsed, plain, secret, section, size, text, texts,
        word, words,
    },
    lifecycle::{Health, IdleStop, RetryClass},
    limits::Limits,
    policy::{Approval, Check, OnCrossing, OutputCheck, Pins, Rate, Scan, Scope, Structured, Taint},
    preset::Preset,
    sandbox::SandboxLevel,
    server::{EraChoice, Start},
    setting::Text,
    transport::EnvPolicy,
};

section! {
    server = "server" {
        // Transport and credentials.
        TYPE: Option<TransportKind> = optional_choice("type", "The transport. Without it: `command` means stdio, a `ws://` or `wss://` URL means websocket, a URL that ends in `/sse` means sse, any other URL means http.")
            .aka(&["transport", "transport_type"]);
        TRANSPORTS: Vec<TransportKind> = list("transports", &words::<TransportKind>(), "The transports that the server may use; with any other one it is refused.")
            .aka(&["allow_transports"]);
        COMMAND: Option<Argv> = either("command", &[Kind::Text, TEXTS], None, DefaultValue::None, "The program to start: a path, or a name that is looked up on the child's PATH. A list is the program and its first arguments. No shell parses it.")
            .aka(&["cmd", "program"]);
        ARGS: Vec<Text> = located_texts("args", "The arguments of the program; each element stays one argument.").aka(&["arguments"]).stdio();
        ENV: BTreeMap<String, Text> = map("env", &Kind::Secret, "Environment variables that are set for the process.")
            .aka(&["envs", "environment"])
            .shown(DefaultValue::EmptyTable)
            .stdio();
        ENV_FILE: Option<Text> = located("env_file", "A file of `NAME=value` lines with more environment variables, relative to the config file; `env` overrides it.").stdio();
        ENV_PASS: Vec<String> = texts("env_pass", "Names of environment variables that the process inherits in addition to `env_policy`.").aka(&["env_vars", "env_keys"]).stdio();
        ENV_POLICY: EnvPolicy = choice("env_policy", "Which environment variables the process inherits: a short list that programs need, none, or with `inherit` all but the keys of model providers, `OTEL_*`, `PEGBOARD_*`, and those that make programs load other code (`LD_*`, `PYTHONPATH`, `NODE_OPTIONS`, …). `env` and `env_pass` add variables; `LD_*`, `NODE_OPTIONS` and the like also need `allow_loader_env`.")
            .stdio();
        ALLOW_LOADER_ENV: bool = flag("allow_loader_env", false, "Whether variables that make a program load other code, such as LD_PRELOAD, may be set.").stdio();
        CWD: Option<String> = text("cwd", "The working directory of the process, relative to the config file; `~` is the home directory.")
            .aka(&["working_dir", "working_directory", "work_dir"])
            .stdio();
        RLIMITS: Nested<rlimits::In> = nested("rlimits", Kind::Table(&rlimits::SECTION), "Resource limits of its processes, on Linux.")
            .aka(&["ulimits"])
            .stdio();
        SANDBOX: Nested<sandbox::In> = nested("sandbox", Kind::Either(&[words::<SandboxLevel>(), Kind::Bool, Kind::Table(&sandbox::SECTION)]), "The sandbox of its processes, on Linux: what they may access. `true` means basic; a single word is short for `level`.")
            .stdio();
        URL: Option<Text> = located("url", "The URL of the server.").aka(&["server_url", "http_url", "uri", "endpoint", "base_url"]);
        HEADERS: BTreeMap<String, Text> = map("headers", &Kind::Secret, "Headers that are sent with every request, to this origin only. `{{NAME}}` is replaced for each view.")
            .aka(&["http_headers", "custom_headers", "request_headers"])
            .shown(DefaultValue::EmptyTable)
            .remote();
        ENV_HEADERS: BTreeMap<String, Text> = map("env_headers", &Kind::Text, "Headers whose values are read from the named environment variables.")
            .aka(&["env_http_headers"])
            .shown(DefaultValue::EmptyTable)
            .remote();
        AUTH: Nested<auth::In> = nested("auth", Kind::Either(&[Kind::Table(&auth::SECTION), words::<AuthKind>()]), "The credentials that are sent to the server.")
            .aka(&["auth_config", "authentication"])
            .remote();
        AUTH_TYPE: Option<AuthKind> = optional_choice("auth_type", "The kind of credentials; inferred from `auth` when not set.").remote();
        BEARER_TOKEN: Option<Text> = secret("bearer_token", "Short for `auth = { bearer = … }`.")
            .converted(&[("bearer_token_env_var", Via::VariableName)])
            .remote();
        OAUTH: Nested<oauth::In> = nested("oauth", Kind::Either(&[Kind::Bool, Kind::Table(&oauth::SECTION)]), "How to sign in with OAuth: a table, or `false` if nobody is to be asked to sign in.").remote();
        HEADERS_HELPER: Option<Argv> = either("headers_helper", &[Kind::Text, TEXTS], None, DefaultValue::None, "A program that prints headers for the requests, as a JSON object or as lines `Name: value`: a list is the program and its arguments, a text is split at spaces, or run by a shell if it has characters of one. It is run again when the server answers 401 or 403. Its environment is that of stdio servers (`env`, `env_policy`, `cwd`), with PEGBOARD_SERVER_NAME and PEGBOARD_SERVER_URL.")
            .aka(&["header_helper", "header_command"])
            .remote();
        HEADERS_HELPER_TTL: Option<Duration> = optional_duration("headers_helper_ttl", LIMIT, "How long the headers of `headers_helper` are used; without it, until the server refuses them.").remote();
        SCOPES: Scopes = either("scopes", &[Kind::Text, TEXTS], Scopes(Vec::new()), DefaultValue::EmptyList, "Short for `oauth.scopes`.")
            .aka(&["oauth_scopes"])
            .remote();
        OAUTH_RESOURCE: Option<String> = text("oauth_resource", "Short for `oauth.resource`.").remote();
        TLS: Nested<tls::In> = nested("tls", Kind::Table(&tls::SECTION), "TLS settings of the connection.").remote();
        INSECURE: bool = flag("insecure", false, "Whether the server's certificate is accepted without verification.")
            .converted(&[("verify_ssl", Via::Negated), ("verify_tls", Via::Negated), ("tls_verify", Via::Negated), ("ssl_verify", Via::Negated)])
            .remote();
        SESSION_CLEANUP_URL: Option<Text> = located("session_cleanup_url", "A URL that is sent a DELETE request when an agent's session ends. `{{NAME}}` in its path or query is replaced for each view, as in `headers`. The headers and credentials of the server go along if the URL has the same origin.").remote();
        // Its lifecycle.
        ENABLED: bool = flag("enabled", true, "Whether the server is used at all.").converted(&[("disabled", Via::Negated)]);
        REQUIRED: bool = flag("required", false, "Whether the board is ready only when this server is ready.");
        START: Start = choice("start", "When the server is started: with the board, when it is first needed, or only when the program or an operator connects it.").aka(&["start_mode"]);
        ERA: EraChoice = either("era", &[Kind::Word(&[word("auto"), word("probe"), word("modern"), word("legacy")]), Kind::Text], EraChoice::Auto, DefaultValue::Text("auto"), "The protocol era to use: auto, probe, modern, legacy, or one protocol version such as `2025-06-18`.")
            .aka(&["protocol_version"]);
        SCOPE: Scope = either("scope", SCOPE_KINDS, Scope::Shared, DefaultValue::Text("shared"), "Who shares the connection: all agents; none, each session has its own; or all, over up to four connections with `pool(4)`.")
            .converted(&[("shared", Via::SharedFlag)]);
        RESTART: Nested<restart::In> = nested("restart", Kind::Either(&[Kind::Bool, Kind::Table(&restart::SECTION)]), "How the server is restarted after it ended; with `false` the next call restarts it.")
            .aka(&["reconnect"]);
        IDLE_STOP: IdleStop = either("idle_stop", &[Kind::Word(IDLE_WORDS), LIMIT], IdleStop::Auto, DefaultValue::Text("auto"), "After how long without a call the server is stopped; the next call starts it. `auto` is five minutes for shared servers that start lazily and are not required, else never.")
            .aka(&["idle_timeout", "idle_ttl"]);
        HEALTH_PROBE: crate::lifecycle::Probe = choice("health_probe", "How the health of an idle server is probed: with the request of its era and then by listing its tools, by listing them at once, or not at all.")
            .aka(&["health", "health_check"]);
        HEALTH_INTERVAL: Interval = either("health_interval", &[Kind::Word(&[word("off")]), LIMIT], Interval(Health::DEFAULT.interval), HEALTH_INTERVAL_SHOWN, "After how much silence the server is probed; with `off` only after a call has timed out.")
            .aka(&["health_check_interval"]);
        HEALTH_TIMEOUT: Duration = limit("health_timeout", Health::DEFAULT.timeout, "The timeout for the response to a probe.");
        HEALTH_RESTART: bool = flag("health_restart", Health::DEFAULT.restart, "Whether a server that is down is started when a probe is due, also with `restart = false` or after `max_attempts` failed starts, and also if it was never ready.");
        BREAKER: Nested<breaker::In> = nested("breaker", Kind::Either(&[Kind::Bool, Kind::Word(&[word("off")]), Kind::Table(&breaker::SECTION)]), "The circuit breaker: when calls are rejected at once because the server keeps failing.")
            .aka(&["circuit_breaker"]);
        SESSION_GONE_STATUS: Vec<u16> = list("session_gone_status", &Kind::Count { min: 1, max: 1_000_000 }, "HTTP statuses, besides 404, with which this server reports that the session is gone; the response must mention a session.");
        PRESET: Preset = choice("preset", "The preset that provides the defaults of this server.");
        // Timeouts and limits.
        CONNECT_TIMEOUT: Duration = limit("connect_timeout", Limits::DEFAULT.connect_timeout, "The timeout from spawn or connect until the server has answered the handshake.")
            .aka(&["startup_timeout", "init_timeout", "connection_timeout", "start_timeout"]);
        START_WAIT: Duration = duration("start_wait", WAIT, Duration::ZERO, "How long calls wait, counted from the first start, while failed starts are retried; with zero they fail with the first failed start.")
            .aka(&["acquire_timeout", "acquire_wait"])
            .shown(DefaultValue::Text("0s"));
        LIST_TIMEOUT: Duration = limit("list_timeout", Limits::DEFAULT.list_timeout, "The timeout for listing the tools of a server, all pages together, and again for listing everything else it offers.")
            .aka(&["list_tools_timeout"]);
        CALL_TIMEOUT: Duration = limit("call_timeout", Limits::DEFAULT.call_timeout, "The timeout for one call; every progress notification restarts it.")
            .aka(&["timeout", "request_timeout", "tool_timeout", "tool_call_timeout", "read_timeout"]);
        CALL_TOTAL_TIMEOUT: Duration = limit("call_total_timeout", Limits::DEFAULT.call_total_timeout, "The timeout for one call regardless of progress; at least `call_timeout`.")
            .aka(&["max_total_timeout"]);
        WRITE_TIMEOUT: Duration = limit("write_timeout", Limits::DEFAULT.write_timeout, "The timeout for writing one message.");
        ERA_SILENCE: Duration = limit("era_silence", Limits::DEFAULT.era_silence, "How long a stdio server may stay silent before the other era is tried.")
            .aka(&["discover_timeout"]);
        STOP_TIMEOUT: Duration = limit("stop_timeout", Limits::DEFAULT.stop_timeout, "How long a server has to exit after its input is closed, and again after it is sent a termination signal.")
            .aka(&["shutdown_timeout"]);
        MAX_MESSAGE: usize = size("max_message", (1024, 1 << 30), Limits::DEFAULT.max_message, "The largest message.")
            .aka(&["max_message_bytes", "max_message_size"]);
        MAX_PAGES: usize = count("max_pages", (1, 100_000), Limits::DEFAULT.max_pages, "The most pages of one listing.");
        MAX_ITEMS: usize = count("max_items", (1, 1_000_000), Limits::DEFAULT.max_items, "The most items of one listing.").aka(&["max_tools"]);
        MAX_IN_FLIGHT: usize = count("max_in_flight", (1, 65_536), Limits::DEFAULT.max_in_flight, "The most calls in flight at once.")
            .aka(&["concurrency", "concurrent", "max_concurrent", "max_concurrency"]);
        // Tools and approval.
        ALLOW: Vec<String> = texts("allow", "Globs of the tools that are visible; empty means all.")
            .aka(&["tools_allowed", "allowed_tools", "enabled_tools", "include_tools", "available_tools"]);
        DENY: Vec<String> = texts("deny", "Globs of the tools that are hidden, even if `allow` matches them.")
            .aka(&["tools_denied", "denied_tools", "disabled_tools", "exclude_tools"]);
        CASE_INSENSITIVE: bool = flag("case_insensitive", false, "Whether `allow` and `deny` ignore case.").aka(&["ignore_case"]);
        ROOTS: Vec<String> = texts("roots", "Directories and other URIs that are reported to the server as roots.");
        DESCRIPTION: Option<String> = text("description", "A description of the server for people.").aka(&["title", "display_name"]);
        INSTRUCTIONS: Option<String> = text("instructions", "Instructions for the model about this server.").aka(&["server_instructions"]);
        TOOLS: BTreeMap<String, Nested<tool::In>> = map("tools", &Kind::Table(&tool::SECTION), "Settings of individual tools, by name or glob.")
            .aka(&["tool_overrides"]);
        TOOL_SCHEMAS: BTreeMap<String, BTreeMap<String, Json>> = map("tool_schemas", &Kind::Map(&Kind::Any), "Tools that the server does not list, by name: the JSON Schema of the arguments, or a definition with `description`, `inputSchema` and other fields of a listing. Tools that the server lists override them.");
        APPROVAL: Approval = choice("approval", "Which calls a person must approve.").aka(&["approval_mode", "default_tools_approval_mode"]);
        APPROVAL_EXEMPT: Vec<String> = texts("approval_exempt", "Globs of the tools that never need approval.").aka(&["always_allow", "auto_approve"]);
        CROSSING: OnCrossing = choice("crossing", "What happens when a call would send a secret of another server to this one: the call is refused, the secret is masked, the reply has a warning, or nothing.");
        PINS: Pins = choice("pins", "What happens when a tool's definition changes: `warn` reports it, `block` holds changed and new tools until a person accepts them, `approve` also those of a new server.").aka(&["pinning"]);
        SCAN: Scan = choice("scan", "What happens when a tool's definition looks like an attack on the model: `warn` reports it, `block` holds the tool until a person accepts it.").aka(&["scanner"]);
        TRUST: Trust = either("trust", &[Kind::Bool, Kind::Word(&[word("trusted"), word("untrusted")])], Trust(false), DefaultValue::Bool(false), "Whether the annotations of its tools are trusted.")
            .aka(&["trusted"]);
        ALWAYS_LOAD: Globs = either("always_load", &[Kind::Bool, TEXTS], Globs(Vec::new()), DefaultValue::EmptyList, "Tools that are listed even when there are too many to list all, by name or glob; `true` for all.");
        CAPABILITIES: Vec<Capability> = list("capabilities", &words::<Capability>(), "What is requested from the server if it declares it: tools (always), resources, prompts.")
            .aka(&["primitives"])
            .shown(DefaultValue::Texts(&["tools", "resources", "prompts"]));
        RATE: Option<Rate> = parsed("rate", "How often one agent may call tools of the server, such as `60/min`; further calls are refused until there is room.")
            .aka(&["rate_limit"]);
        LOOP_LIMIT: usize = count("loop_limit", (0, 1_000_000), 0, "How often one agent may repeat a call with the same arguments and the same kind of outcome within ten minutes; zero means no limit.");
        TAINT: Taint = choice("taint", "What happens to calls of high risk after the agent has read output of an untrusted server: nothing, they need approval, or they are refused.");
        // Calls and results.
        CALL_ARGUMENTS: Nested<call_arguments::In> = nested("call_arguments", Kind::Either(&[words::<Check>(), Kind::Table(&call_arguments::SECTION)]), "How the arguments of calls are parsed and validated against the tool's schema; a single word is short for `check`.")
            .aka(&["tool_arguments"]);
        OUTPUT_CHECK: OutputCheck = choice("output_check", "What happens when structured content does not match the tool's output schema.");
        QUEUE: Option<String> = text("queue", "The queue that its calls wait in.");
        SERIAL: bool = flag("serial", false, "Whether its calls run one after the other.").converted(&[("supports_parallel_tool_calls", Via::Negated)]);
        CACHE: Lifetime = either("cache", TTL, Lifetime(None), DefaultValue::Bool(false), "How long results of tools with `readOnlyHint` are cached, if the server is trusted; `true` means five minutes.")
            .aka(&["cache_ttl", "response_cache"]);
        TOOLS_CACHE: BTreeMap<String, Lifetime> = map("tools_cache", &Kind::Either(TTL), "How long results of individual tools are cached, by name or glob; results of tools that declare that they write are never cached.")
            .shown(DefaultValue::EmptyTable);
        RETRY: Nested<retry::In> = nested("retry", Kind::Either(&[Kind::Count { min: 0, max: 100 }, words::<RetryClass>(), Kind::Table(&retry::SECTION)]), "Which failed calls are retried: the most retries, or the `mode` of tools without a `retry` of their own.")
            .aka(&["retries"]);
        MASKING: Nested<masking::In> = nested("masking", Kind::Either(&[Kind::Bool, Kind::Table(&masking::SECTION)]), "What is masked in the server's output.")
            .aka(&["data_masking"]);
        SUMMARISE: Nested<summarise::In> = nested("summarise", Kind::Either(&[Kind::Bool, Kind::Table(&summarise::SECTION)]), "When long results are summarised.")
            .aka(&["summarize", "summarization", "summarisation"]);
        MAX_RESULT: Option<usize> = optional_size("max_result", RESULT_SIZE, "The largest result that is passed on unchanged; short for `result.max_bytes`.")
            .aka(&["tool_response_max_bytes", "max_result_bytes"]);
        STRUCTURED: Option<Structured> = optional_choice("structured", "Which form of a result becomes its text; short for `result.structured`.");
        RESULT: Nested<result::In> = nested("result", Kind::Table(&result::SECTION), "How its results are limited and formatted.").aka(&["results"]);
    }
    unkeyed {
        // Settings of other programs that share the file.
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

const HEALTH_INTERVAL_SHOWN: DefaultValue = match Health::DEFAULT.interval {
    Some(every) => DefaultValue::Duration(every),
    None => DefaultValue::Text("off"),
};
