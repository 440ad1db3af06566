//! What one server's table may say.

use super::{
    Kind, Section, Via, field,
    parts::{
        APPROVALS, AUTH, BREAKER, CALL_ARGUMENTS, CHECKS, COUNT, LIMIT, MASKING, MAX_RESULT, OAUTH, OUTPUT_CHECKS,
        PINS, PRESETS, RESTART, RESULT, RETRY, RETRY_WORDS, RLIMITS, SCOPE, SCOPES, STRUCTURED, SUMMARISE, TLS, TOOL,
    },
    spelled, word,
};

const TEXTS: Kind = Kind::List(&Kind::Text);

pub(in crate::config) static SERVER: Section = Section {
    name: "server",
    fields: &[
        // How it is reached.
        field("type", Kind::Word(TYPES), "How the server is reached. Without it: `command` means stdio, a `ws://` or `wss://` URL means websocket, a URL that ends in `/sse` means sse, any other URL means http.")
            .aka(&["transport", "transport_type"]),
        field("transports", Kind::List(&Kind::Word(TYPES)), "The ways that it may be reached in; a server that is reached in another one is refused.").aka(&["allow_transports"]),
        field("command", Kind::Either(&[Kind::Text, TEXTS]), "The program to start: a path, or a name that is looked up on the child's PATH. A list is the program and its first arguments. No shell is involved.")
            .aka(&["cmd", "program"]),
        field("args", TEXTS, "Its arguments. Each element stays one argument.").aka(&["arguments"]).default("[]"),
        field("env", Kind::Map(&Kind::Secret), "Variables set for it.").aka(&["envs", "environment"]).default("{}"),
        field("env_file", Kind::Text, "A file of `NAME=value` lines with more variables for it, relative to the config file. `env` wins."),
        field("env_pass", TEXTS, "Names of our own variables that it sees too.").aka(&["env_vars", "env_keys"]).default("[]"),
        field("env_policy", Kind::Word(ENV_POLICIES), "Which of our own variables it sees: a short list that programs need, none, or with `inherit` all but the keys of model providers, `OTEL_*`, `PEGBOARD_*`, and what makes programs load other code (`LD_*`, `PYTHONPATH`, `NODE_OPTIONS`, …). `env` and `env_pass` hand them on; those that load code also need `allow_loader_env`.").default("\"allowlist\""),
        field("allow_loader_env", Kind::Bool, "Whether `env` may set variables that make a program load foreign code, such as LD_PRELOAD.").default("false"),
        field("cwd", Kind::Text, "The folder it is started in, relative to the config file. `~` is the home folder.")
            .aka(&["working_dir", "working_directory", "work_dir"]),
        field("rlimits", Kind::Table(&RLIMITS), "Bounds that the operating system sets for its processes, on Linux.").aka(&["ulimits"]),
        field("url", Kind::Text, "Where the server listens.").aka(&["server_url", "http_url", "uri", "endpoint", "base_url"]),
        field("headers", Kind::Map(&Kind::Secret), "Sent with every request, to this origin only.")
            .aka(&["http_headers", "custom_headers", "request_headers"])
            .default("{}"),
        field("env_headers", Kind::Map(&Kind::Text), "Headers whose values are in the named variables.").aka(&["env_http_headers"]).default("{}"),
        field("headers_helper", Kind::Either(&[Kind::Text, TEXTS]), "A program that prints headers.").aka(&["header_helper", "header_command"]).later(),
        field("auth", Kind::Either(&[Kind::Table(&AUTH), Kind::Word(AUTH_WORDS)]), "Who we say we are.").aka(&["auth_config", "authentication"]),
        field("auth_type", Kind::Word(AUTH_WORDS), "Which of the ways in `auth` is meant; it is told by what is set there."),
        field("bearer_token", Kind::Secret, "Short for `auth = { bearer = … }`.").turned(&[("bearer_token_env_var", Via::VariableName)]),
        field("oauth", Kind::Either(&[Kind::Bool, Kind::Table(&OAUTH)]), "How to sign in with OAuth.").later(),
        field("scopes", TEXTS, "OAuth scopes to ask for.").aka(&["oauth_scopes"]).later(),
        field("oauth_resource", Kind::Text, "The OAuth resource indicator to send.").later(),
        field("tls", Kind::Table(&TLS), "How the connection is secured."),
        field("insecure", Kind::Bool, "Do not check the server's certificate.")
            .turned(&[("verify_ssl", Via::Negated), ("verify_tls", Via::Negated), ("tls_verify", Via::Negated), ("ssl_verify", Via::Negated)])
            .default("false"),
        // Its life.
        field("enabled", Kind::Bool, "Whether it is used at all.").turned(&[("disabled", Via::Negated)]).default("true"),
        field("required", Kind::Bool, "Whether the board is ready only when this server is.").default("false"),
        field("start", Kind::Word(STARTS), "When it is started: with the board, when it is first needed, or only when somebody says so.").aka(&["start_mode"]).default("\"eager\""),
        field("era", Kind::Either(&[Kind::Word(ERAS), Kind::Text]), "Which protocol era it is spoken to in: auto, probe, modern, legacy, or one version such as `2025-06-18`.")
            .aka(&["protocol_version"])
            .default("\"auto\""),
        field("scope", Kind::Either(&[Kind::Word(SCOPES), Kind::Text, Kind::Table(&SCOPE)]), "Who shares its connection: all, each agent's session for itself, or `pool(4)`: all, over up to four connections.").turned(&[("shared", Via::SharedFlag)]).default("\"shared\""),
        field("restart", Kind::Either(&[Kind::Bool, Kind::Table(&RESTART)]), "How it is started again after it ended. With `false` the next call does that.").aka(&["reconnect"]),
        field("idle_stop", Kind::Either(&[Kind::Word(IDLE_WORDS), LIMIT]), "After how long without a call it is stopped; the next call starts it. `auto` is five minutes for shared servers that start lazily and are not required, else never.")
            .aka(&["idle_timeout", "idle_ttl"])
            .default("\"auto\""),
        field("health_probe", Kind::Word(PROBES), "How an idle server is asked whether it is well: in the words of its era and then by listing its tools, by listing them at once, or not at all.")
            .aka(&["health", "health_check"])
            .default("\"auto\""),
        field("health_interval", Kind::Either(&[Kind::Word(&[word("off")]), LIMIT]), "After how much silence it is asked. With `off` only after a call has timed out.")
            .aka(&["health_check_interval"])
            .default("\"1m\""),
        field("health_timeout", LIMIT, "How long the answer is waited for.").default("\"5s\""),
        field("health_restart", Kind::Bool, "Whether a server that was lost is started again when it would be asked, also with `restart = false`.").default("false"),
        field("breaker", Kind::Either(&[Kind::Bool, Kind::Word(&[word("off")]), Kind::Table(&BREAKER)]), "When callers are turned away at once, because it answers nobody.").aka(&["circuit_breaker"]),
        field("session_cleanup_url", Kind::Text, "Asked with DELETE when an agent's session ends.").later(),
        field("session_gone_status", Kind::List(&COUNT), "HTTP statuses by which this server says that it forgot the session, besides 404; the answer must speak of a session."),
        field("preset", Kind::Word(PRESETS), "The design whose defaults this server starts from.").default("\"pegboard\""),
        // Times and sizes.
        field("connect_timeout", LIMIT, "From spawn or connect until the server has answered the handshake.")
            .aka(&["startup_timeout", "init_timeout", "connection_timeout", "start_timeout"])
            .default("\"30s\""),
        field("start_wait", Kind::Duration { min: 0, max: 24 * 3600 * 1000 }, "How long callers wait from the first start on while starts fail and are repeated. With zero they fail with the first failed start.")
            .aka(&["acquire_timeout", "acquire_wait"])
            .default("\"0s\""),
        field("list_timeout", LIMIT, "For listing the tools of a server, all pages together, and again for all else that it offers.").aka(&["list_tools_timeout"]).default("\"30s\""),
        field("call_timeout", LIMIT, "For one call without a sign of life; progress starts it anew.")
            .aka(&["timeout", "request_timeout", "tool_timeout", "tool_call_timeout", "read_timeout"])
            .default("\"1m\""),
        field("call_total_timeout", LIMIT, "For one call altogether. At least `call_timeout`.").aka(&["max_total_timeout"]).default("\"10m\""),
        field("write_timeout", LIMIT, "For handing one message to the operating system.").default("\"10s\""),
        field("era_silence", LIMIT, "How long a silent stdio server is waited for before the other era is tried.").aka(&["discover_timeout"]).default("\"2s\""),
        field("stop_timeout", LIMIT, "How long a server is waited for after its input was closed, and again after it was asked to end.")
            .aka(&["shutdown_timeout"])
            .default("\"2s\""),
        field("max_message", Kind::Size { min: 1024, max: 1 << 30 }, "The largest message.")
            .aka(&["max_message_bytes", "max_message_size"])
            .default("\"8MiB\""),
        field("max_pages", Kind::Count { min: 1, max: 100_000 }, "The most pages of one listing.").default("100"),
        field("max_items", Kind::Count { min: 1, max: 1_000_000 }, "The most items of one listing.").aka(&["max_tools"]).default("2048"),
        field("max_in_flight", Kind::Count { min: 1, max: 65_536 }, "The most calls under way at once.")
            .aka(&["concurrency", "concurrent", "max_concurrent", "max_concurrency"])
            .default("32"),
        // What is offered, and to whom.
        field("allow", TEXTS, "Globs of the tools that are shown; empty means all.")
            .aka(&["tools_allowed", "allowed_tools", "enabled_tools", "include_tools", "available_tools"])
            .default("[]"),
        field("deny", TEXTS, "Globs of the tools that are hidden, whatever `allow` says.")
            .aka(&["tools_denied", "denied_tools", "disabled_tools", "exclude_tools"])
            .default("[]"),
        field("case_insensitive", Kind::Bool, "Whether `allow` and `deny` disregard upper and lower case.").aka(&["ignore_case"]).default("false"),
        field("roots", TEXTS, "Folders and other URIs that the server is told it may work in.").default("[]"),
        field("description", Kind::Text, "What it is for, in words for people.").aka(&["title", "display_name"]),
        field("instructions", Kind::Text, "Words for the model about this server.").aka(&["server_instructions"]),
        field("tools", Kind::Map(&Kind::Table(&TOOL)), "Settings of single tools, by name or glob.").aka(&["tool_overrides"]),
        field("tool_schemas", Kind::Map(&Kind::Map(&Kind::Any)), "Tools of a server that cannot list them, by name: the JSON Schema of the tool's arguments, or `description`, `inputSchema` and what else a listing would say. What the server does list wins."),
        field("approval", Kind::Word(APPROVALS), "Which calls a person must agree to.")
            .aka(&["approval_mode", "default_tools_approval_mode"])
            .default("\"auto\""),
        field("approval_exempt", TEXTS, "Tools that never need a person's agreement.").aka(&["always_allow", "auto_approve"]).default("[]"),
        field("pins", Kind::Word(PINS), "What happens when a tool's definition changes.").aka(&["pinning"]).default("\"off\"").later(),
        field("trust", Kind::Either(&[Kind::Bool, Kind::Word(TRUST)]), "Whether the hints that its tools give about themselves are believed.").aka(&["trusted"]).default("false"),
        field("always_load", Kind::Either(&[Kind::Bool, TEXTS]), "Tools that are listed even when there are too many to list all, by name or glob; `true` for all of them.").default("[]"),
        field("sandbox", Kind::Either(&[Kind::Bool, Kind::Text, Kind::Map(&Kind::Any)]), "What the process may reach.").later(),
        field("capabilities", Kind::List(&Kind::Word(CAPABILITIES)), "What the server is asked to list, if it has it: tools (always), resources, prompts.")
            .aka(&["primitives"])
            .default("[\"tools\", \"resources\", \"prompts\"]"),
        // Calls and results.
        field("call_arguments", Kind::Either(&[Kind::Word(CHECKS), Kind::Table(&CALL_ARGUMENTS)]), "How the arguments of calls are read, and checked against the tool's schema. A single word is short for `check`.")
            .aka(&["tool_arguments"]),
        field("output_check", Kind::Word(OUTPUT_CHECKS), "What happens when a structured answer does not fit the tool's output schema.").default("\"warn\""),
        field("queue", Kind::Text, "The queue its calls wait in."),
        field("serial", Kind::Bool, "Whether its calls run one after the other.").turned(&[("supports_parallel_tool_calls", Via::Negated)]).default("false"),
        field("cache", Kind::Either(TTL), "How long answers of tools that say they only read are kept and given again to the same question; `true` means five minutes.").aka(&["cache_ttl", "response_cache"]).default("false"),
        field("tools_cache", Kind::Map(&Kind::Either(TTL)), "The same for single tools, by name or glob. A tool that says it writes is always asked.").default("{}"),
        field("retry", Kind::Either(&[Kind::Count { min: 0, max: 100 }, Kind::Word(RETRY_WORDS), Kind::Table(&RETRY)]), "Which failed calls are made again: how often, or a word for all its tools that have no `retry` of their own.").aka(&["retries"]),
        field("masking", Kind::Either(&[Kind::Bool, Kind::Table(&MASKING)]), "What is hidden in results.").aka(&["data_masking"]),
        field("summarise", Kind::Either(&[Kind::Bool, Kind::Table(&SUMMARISE)]), "When long results are summarised.")
            .aka(&["summarize", "summarization", "summarisation"]),
        field("max_result", MAX_RESULT, "The largest result that is handed on as it is; short for `result.max_bytes`.")
            .aka(&["tool_response_max_bytes", "max_result_bytes"]),
        field("structured", Kind::Word(STRUCTURED), "Which form of a result is its text; short for `result.structured`."),
        field("result", Kind::Table(&RESULT), "What becomes of its results.").aka(&["results"]),
        // Other programs' own.
        field("gallery", Kind::Any, "").foreign(),
        field("version", Kind::Any, "").foreign(),
        field("source", Kind::Any, "").foreign(),
        field("dev", Kind::Any, "").foreign(),
        field("settings", Kind::Any, "").foreign(),
        field("icon", Kind::Any, "").foreign(),
        field("watch_paths", Kind::Any, "").foreign(),
    ],
};

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

pub(in crate::config) const TYPES: &[super::Word] = &[
    spelled("stdio", &["local"]),
    spelled("http", &["streamable_http", "streamablehttp", "streamable"]),
    spelled("sse", &["http+sse", "http_sse"]),
    spelled("websocket", &["ws", "web_socket"]),
    spelled("remote", &["auto"]),
];

pub(super) const ENV_POLICIES: &[super::Word] = &[
    spelled("allowlist", &["allow_list"]),
    word("inherit"),
    spelled("explicit", &["none"]),
];
pub(super) const AUTH_WORDS: &[super::Word] = &[
    word("none"),
    word("bearer"),
    word("basic"),
    spelled("api_key", &["apikey"]),
    spelled("oauth", &["oauth2"]),
];
pub(super) const STARTS: &[super::Word] = &[
    spelled("eager", &["background", "auto"]),
    word("lazy"),
    spelled("explicit", &["manual"]),
];
pub(super) const CAPABILITIES: &[super::Word] = &[word("tools"), word("resources"), word("prompts")];
pub(super) const IDLE_WORDS: &[super::Word] = &[word("auto"), spelled("off", &["never", "none"])];
const TRUST: &[super::Word] = &[word("trusted"), word("untrusted")];
pub(super) const ERAS: &[super::Word] = &[word("auto"), word("probe"), word("modern"), word("legacy")];
pub(super) const PROBES: &[super::Word] = &[
    word("auto"),
    word("ping"),
    spelled("list_tools", &["list"]),
    word("discover"),
    spelled("none", &["off"]),
];
