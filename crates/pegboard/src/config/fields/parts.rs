//! The tables inside a server's table, the words they share, and the top of the file.

use super::{
    Field, Kind, Section, Via, Word, field,
    server::{AUTH_WORDS, CAPABILITIES, ENV_POLICIES, ERAS, IDLE_WORDS, PROBES, STARTS, TYPES},
    spelled, word,
};

/// A limit that somebody waits for: a millisecond at least, a day at most.
pub(super) const LIMIT: Kind = Kind::Duration {
    min: 1,
    max: 24 * 3600 * 1000,
};

pub(super) const COUNT: Kind = Kind::Count { min: 1, max: 1_000_000 };

const TEXTS: Kind = Kind::List(&Kind::Text);

/// The top of the file. `servers` is read by `import`, which knows the shapes it may have.
pub(in crate::config) static TOP: Section = Section {
    name: "config",
    fields: &[
        field(
            "preset",
            Kind::Word(PRESETS),
            "The design whose defaults every server starts from.",
        )
        .default("\"pegboard\""),
        field(
            "transports",
            Kind::List(&Kind::Word(TYPES)),
            "The ways that servers may be reached in, unless they say otherwise themselves.",
        )
        .aka(&["allow_transports"]),
        field(
            "queues",
            Kind::Map(&Kind::Either(&[COUNT, Kind::Table(&QUEUE)])),
            "Queues that calls wait in, by name.",
        )
        .default("{}"),
        field(
            "masking",
            Kind::Either(&[Kind::Bool, Kind::Table(&MASKING)]),
            "What is hidden in the results of every server.",
        ),
        field(
            "summarise",
            Kind::Either(&[Kind::Bool, Kind::Table(&SUMMARISE)]),
            "When long results are summarised, and by which model. Servers may differ.",
        )
        .aka(&["summarize", "summarization", "summarisation"]),
        field(
            "call_arguments",
            Kind::Either(&[Kind::Word(CHECKS), Kind::Table(&CALL_ARGUMENTS)]),
            "The same for every server that does not say otherwise.",
        )
        .aka(&["tool_arguments"]),
        field(
            "output_check",
            Kind::Word(OUTPUT_CHECKS),
            "The same for every server that does not say otherwise.",
        ),
        field(
            "max_servers",
            Kind::Count { min: 1, max: 1000 },
            "The most servers; those beyond are refused.",
        )
        .default("100"),
        field(
            "max_processes",
            Kind::Count { min: 1, max: 65_536 },
            "The most child processes at once.",
        )
        .default("256"),
        field(
            "max_starts",
            Kind::Count { min: 1, max: 1000 },
            "The most servers that are being started at once; the others wait.",
        )
        .aka(&["start_concurrency"])
        .default("64"),
        field(
            "max_buffered",
            Kind::Size {
                min: 1 << 20,
                max: 1 << 40,
            },
            "The most bytes that messages of all servers take together while they are on their way; one connection takes at most a quarter of them in each direction, and messages of up to 64KiB do not count.",
        )
        .default("\"256MiB\""),
        field(
            "result",
            Kind::Table(&RESULT),
            "What becomes of the results of every server.",
        )
        .aka(&["results"]),
        field(
            "naming",
            Kind::Either(&[Kind::Word(NAMING), Kind::Text]),
            "How tools are named for models: a style, or a template such as `{server}_{tool}`.",
        )
        .default("\"dunder\""),
        // What holds for every server that does not say otherwise.
        of_all("connect_timeout", LIMIT).aka(&["startup_timeout", "init_timeout", "connection_timeout"]),
        of_all("list_timeout", LIMIT),
        of_all("call_timeout", LIMIT).aka(&["default_timeout", "request_timeout", "tool_timeout"]),
        of_all("call_total_timeout", LIMIT),
        of_all("write_timeout", LIMIT),
        of_all("era_silence", LIMIT),
        of_all("stop_timeout", LIMIT),
        of_all(
            "max_message",
            Kind::Size {
                min: 1024,
                max: 1 << 30,
            },
        ),
        of_all("max_pages", Kind::Count { min: 1, max: 100_000 }),
        of_all("max_items", Kind::Count { min: 1, max: 1_000_000 }),
        of_all("max_in_flight", Kind::Count { min: 1, max: 65_536 }),
        of_all("start", Kind::Word(STARTS)),
        of_all("era", Kind::Either(&[Kind::Word(ERAS), Kind::Text])),
        of_all(
            "scope",
            Kind::Either(&[Kind::Word(SCOPES), Kind::Text, Kind::Table(&SCOPE)]),
        ),
        of_all("restart", Kind::Either(&[Kind::Bool, Kind::Table(&RESTART)])),
        of_all("idle_stop", Kind::Either(&[Kind::Word(IDLE_WORDS), LIMIT])),
        of_all("health_probe", Kind::Word(PROBES)),
        of_all("health_interval", Kind::Either(&[Kind::Word(&[word("off")]), LIMIT])),
        of_all("health_timeout", LIMIT),
        of_all(
            "breaker",
            Kind::Either(&[Kind::Bool, Kind::Word(&[word("off")]), Kind::Table(&BREAKER)]),
        )
        .aka(&["circuit_breaker"]),
        of_all(
            "retry",
            Kind::Either(&[
                Kind::Count { min: 0, max: 100 },
                Kind::Word(RETRY_WORDS),
                Kind::Table(&RETRY),
            ]),
        ),
        of_all("env_policy", Kind::Word(ENV_POLICIES)),
        of_all("capabilities", Kind::List(&Kind::Word(CAPABILITIES))),
        of_all("case_insensitive", Kind::Bool),
        of_all("approval", Kind::Word(APPROVALS)),
        of_all("max_result", MAX_RESULT),
        of_all("structured", Kind::Word(STRUCTURED)),
        field("serve", Kind::Map(&Kind::Any), "Settings of the daemon.").later(),
        field("inputs", Kind::Any, "").foreign(),
    ],
};

/// A setting of servers that may stand at the top of the file too.
const fn of_all(name: &'static str, kind: Kind) -> Field {
    field(name, kind, "The same for every server that does not say otherwise.")
}

pub(super) static AUTH: Section = Section {
    name: "auth",
    fields: &[
        field(
            "type",
            Kind::Word(AUTH_WORDS),
            "Which way is meant; it is told by what is set here.",
        )
        .aka(&["auth_type", "kind"]),
        field("bearer", Kind::Secret, "Sent as `Authorization: Bearer …`.")
            .aka(&["bearer_token", "token"])
            .turned(&[("bearer_token_env_var", Via::VariableName)]),
        field("user", Kind::Text, "The user's name, for `Authorization: Basic …`.").aka(&["username"]),
        field("password", Kind::Secret, "The user's password."),
        field("api_key", Kind::Secret, "Sent in the header that `header` names.").aka(&["key"]),
        field("header", Kind::Text, "The header that carries `api_key`.")
            .aka(&["header_name"])
            .default("\"X-API-Key\""),
        field(
            "client_id",
            Kind::Text,
            "Our identity for OAuth; short for `oauth.client_id`.",
        )
        .later(),
        field(
            "client_secret",
            Kind::Secret,
            "What proves it; short for `oauth.client_secret`.",
        )
        .later(),
        field("scopes", TEXTS, "Scopes to ask for; short for `oauth.scopes`.").later(),
        field("bearer_file", Kind::Text, "A file that holds the bearer token.")
            .aka(&["token_file"])
            .later(),
        field(
            "oauth",
            Kind::Either(&[Kind::Bool, Kind::Table(&OAUTH)]),
            "How to sign in with OAuth.",
        )
        .later(),
    ],
};

pub(super) static OAUTH: Section = Section {
    name: "oauth",
    fields: &[
        field("enabled", Kind::Bool, "Whether to sign in with OAuth.").default("true"),
        field("client_id", Kind::Text, "Our identity at the authorization server."),
        field("client_secret", Kind::Secret, "What proves it."),
        field("scopes", TEXTS, "Scopes to ask for.").aka(&["scope"]),
        field("grant", Kind::Text, "`authorization_code` or `client_credentials`.").aka(&["grant_type"]),
        field("token_url", Kind::Text, "Where tokens are given out.").aka(&["token_endpoint"]),
        field("authorization_url", Kind::Text, "Where a person signs in.").aka(&["authorization_endpoint", "auth_url"]),
        field("issuer", Kind::Text, "The authorization server.")
            .aka(&["authorization_server", "auth_server_metadata_url"]),
        field("redirect_uri", Kind::Text, "Where the person is sent back to.").aka(&["redirect_url", "callback_url"]),
        field(
            "callback_port",
            Kind::Count { min: 1, max: 65_535 },
            "The port that is listened on meanwhile.",
        ),
        field("resource", Kind::Text, "The resource indicator.").aka(&["audience"]),
    ],
};

pub(super) static TLS: Section = Section {
    name: "tls",
    fields: &[
        field(
            "ca",
            Kind::Text,
            "A PEM file with certificate authorities to trust besides the system's, relative to the config file.",
        )
        .aka(&["ca_file", "ca_cert", "ca_bundle"]),
        field("cert", Kind::Text, "A PEM file with our certificate chain.").aka(&["client_cert", "cert_file"]),
        field("key", Kind::Text, "A PEM file with its private key.").aka(&["client_key", "key_file"]),
        field("insecure", Kind::Bool, "Do not check the server's certificate.")
            .turned(&[("verify", Via::Negated), ("verify_ssl", Via::Negated)])
            .default("false"),
    ],
};

pub(super) static RLIMITS: Section = Section {
    name: "rlimits",
    fields: &[
        field(
            "open_files",
            Kind::Count { min: 8, max: 1 << 20 },
            "The most files that each of its processes has open at once.",
        )
        .aka(&["nofile"]),
        field(
            "memory",
            Kind::Size {
                min: 16 << 20,
                max: 1 << 40,
            },
            "The most memory for the data of each of its processes.",
        )
        .aka(&["data"]),
        field(
            "processes",
            Kind::Count { min: 1, max: 1 << 20 },
            "The most processes and threads that its user runs at once, those of other programs included.",
        )
        .aka(&["nproc"]),
        field(
            "file_size",
            Kind::Size { min: 0, max: 1 << 50 },
            "The largest file that it writes.",
        )
        .aka(&["fsize"]),
    ],
};

/// A wait that may be none.
const WAIT: Kind = Kind::Duration {
    min: 0,
    max: 24 * 3600 * 1000,
};

pub(super) static RESTART: Section = Section {
    name: "restart",
    fields: &[
        field("enabled", Kind::Bool, "Whether it is started again.")
            .aka(&["enable_auto_reconnect"])
            .default("true"),
        field(
            "backoff",
            Kind::Either(&[Kind::List(&WAIT), WAIT]),
            "The waits before each attempt; the last one repeats. A single wait is doubled up to 30 seconds.",
        )
        .aka(&["reconnect_backoff"]),
        field(
            "max_attempts",
            COUNT,
            "After so many failed starts in a row it is started only for a call, or by an operator.",
        )
        .aka(&["max_retries", "attempts", "max_reconnect_retries"]),
        field(
            "wait",
            Kind::Duration {
                min: 0,
                max: 24 * 3600 * 1000,
            },
            "How long a call waits for a restart; with zero it fails at once.",
        )
        .aka(&["restart_wait"])
        .default("\"10s\""),
    ],
};

pub(super) static RETRY: Section = Section {
    name: "retry",
    fields: &[
        field("mode", Kind::Word(RETRY_WORDS), "Which calls may be made again."),
        field("attempts", Kind::Count { min: 0, max: 100 }, "How often.")
            .aka(&["max_retries", "max_attempts"])
            .default("2"),
        field(
            "key_argument",
            Kind::Text,
            "The argument that makes a repeated call harmless.",
        ),
        field(
            "backoff",
            Kind::List(&LIMIT),
            "The waits before each attempt; the last one repeats.",
        ),
        field(
            "jitter",
            Kind::Count { min: 0, max: 99 },
            "By how many percent these waits are varied, both ways.",
        )
        .default("0"),
        field("unsafe", Kind::Bool, "Also repeat calls that may have run.").default("false"),
    ],
};

pub(super) static TOOL: Section = Section {
    name: "tool",
    fields: &[
        field(
            "retry",
            Kind::Either(&[Kind::Word(RETRY_WORDS), Kind::Table(&TOOL_RETRY)]),
            "Whether a call that may have run can be made again: never, safe (it only reads), or idempotent.",
        ),
        field(
            "queue",
            Kind::Text,
            "The queue its calls wait in, instead of the server's.",
        ),
        field(
            "enabled",
            Kind::Bool,
            "Whether it may be used; false hides it as `deny` does.",
        )
        .turned(&[("disabled", Via::Negated)]),
        field(
            "approval",
            Kind::Word(APPROVALS),
            "Whether a person must agree to its calls, in place of what is said for the server.",
        )
        .aka(&["approval_mode"]),
        field("instructions", Kind::Text, "Words for the model about it.").aka(&["notes"]),
        field(
            "requires",
            TEXTS,
            "Capabilities that an agent's view must be granted, all of them, besides the grant of the tool itself.",
        )
        .aka(&["required_capabilities"]),
        field(
            "max_result",
            MAX_RESULT,
            "The largest result that is handed on as it is; short for `result.max_bytes`.",
        )
        .aka(&["max_result_bytes"]),
        field(
            "structured",
            Kind::Word(STRUCTURED),
            "Which form of a result is its text; short for `result.structured`.",
        ),
        field("result", Kind::Table(&RESULT), "What becomes of its results.").aka(&["results"]),
    ],
};

pub(super) const MAX_RESULT: Kind = Kind::Size { min: 512, max: 1 << 30 };

pub(super) static RESULT: Section = Section {
    name: "result",
    fields: &[
        field("max_bytes", MAX_RESULT, "The largest result that is handed on as it is; 48KiB when not set.")
            .aka(&["max", "limit", "bytes"]),
        field("max_lines", Kind::Count { min: 4, max: 1 << 40 }, "The same in lines.").aka(&["lines"]),
        field("max_tokens", Kind::Count { min: 128, max: 1 << 40 }, "The same in tokens.").aka(&["tokens"]),
        field(
            "mode",
            Kind::Word(TOO_LONG),
            "What happens to a longer one: its head or head and tail are kept, it is put aside under a handle, summarised, or an error.",
        )
        .aka(&["too_long"]),
        field(
            "ceiling",
            MAX_RESULT,
            "How far a server may raise `max_bytes` itself; `max_bytes` when that is set, else 500000.",
        ),
        field("join", Kind::Word(JOINS), "What stands between the blocks of a result in its text.").aka(&["separator"]),
        field("structured", Kind::Word(STRUCTURED), "Which form of a result is its text."),
        field("fence", Kind::Bool, "Whether its text is put between marks that say that it comes from outside."),
        field(
            "clean",
            Kind::Bool,
            "Whether characters that no person sees (control characters, marks of direction, zero width, Unicode tags) are removed, unless the server is trusted.",
        )
        .aka(&["sanitize", "sanitise"]),
        field(
            "images",
            Kind::Word(IMAGES),
            "Whether pictures and sounds stay blocks of the result or are put aside under handles.",
        ),
        field(
            "find_images",
            Kind::Bool,
            "Whether pictures that are hidden in text as base64 are looked for.",
        )
        .aka(&["detect_images"]),
    ],
};

static TOOL_RETRY: Section = Section {
    name: "tool_retry",
    fields: &[field(
        "key_argument",
        Kind::Text,
        "The argument by which the server knows a repeated call.",
    )],
};

pub(super) static MASKING: Section = Section {
    name: "masking",
    fields: &[
        field(
            "enabled",
            Kind::Bool,
            "Whether anything besides the config's own secrets is hidden.",
        )
        .default("true"),
        field(
            "defaults",
            Kind::Bool,
            "Whether the patterns are looked for that are on by default.",
        )
        .default("true"),
        field("groups", TEXTS, "Names of pattern groups to look for as well.")
            .aka(&["pattern_groups"])
            .default("[]"),
        field("patterns", TEXTS, "Names of patterns to look for as well.").default("[]"),
        field("custom", Kind::List(&Kind::Table(&PATTERN)), "Patterns of your own.")
            .aka(&["custom_patterns"])
            .default("[]"),
        field(
            "except",
            TEXTS,
            "Regular expressions of whole values that are no secrets, whatever pattern they fit.",
        )
        .aka(&["allow_list", "allowlist"])
        .default("[]"),
        field(
            "style",
            Kind::Word(MASK_STYLES),
            "Whether the secret alone is replaced, or its name as well.",
        )
        .default("\"value\""),
    ],
};

static PATTERN: Section = Section {
    name: "pattern",
    fields: &[
        field("pattern", Kind::Text, "A regular expression.").aka(&["regex"]),
        field("replacement", Kind::Text, "What stands in for a match.").default("\"[MASKED]\""),
        field("description", Kind::Text, "What it finds.").aka(&["name"]),
    ],
};

pub(super) static SUMMARISE: Section = Section {
    name: "summarise",
    fields: &[
        field("enabled", Kind::Bool, "Whether long results are summarised.").default("true"),
        field(
            "threshold_tokens",
            Kind::Count {
                min: 100,
                max: 10_000_000,
            },
            "From this size on.",
        )
        .aka(&["size_threshold_tokens", "threshold"])
        .default("5000"),
        field(
            "max_tokens",
            Kind::Count {
                min: 50,
                max: 1_000_000,
            },
            "The size of a summary.",
        )
        .aka(&["summary_max_token_limit", "max_summary_tokens"])
        .default("1000"),
        field("timeout", LIMIT, "How long a summary is waited for.").default("\"60s\""),
        field(
            "url",
            Kind::Text,
            "Where the model answers: the base of an API in the shape of OpenAI's, such as `https://api.example.com/v1`.",
        )
        .aka(&["base_url", "endpoint"]),
        field("model", Kind::Text, "The model's name there."),
        field("api_key", Kind::Secret, "Sent to it as a bearer token.")
            .aka(&["key"])
            .turned(&[("api_key_env_var", Via::VariableName)]),
    ],
};

pub(super) static CALL_ARGUMENTS: Section = Section {
    name: "call_arguments",
    fields: &[
        field(
            "read",
            Kind::Word(READINGS),
            "How a text becomes arguments: only JSON, JSON with slips mended, JSON or YAML or `key: value` pairs or plain text, or the \
             same with a look at the tool's schema.",
        )
        .aka(&["reading"])
        .default("\"json\""),
        field(
            "check",
            Kind::Word(CHECKS),
            "How they are compared with the tool's schema: not at all, only what must be given, all but unknown arguments, or all. \
             `relaxed` and `coerce` change types where that makes a value fit.",
        )
        .aka(&["validation"])
        .default("\"coerce\""),
    ],
};

pub(super) const READINGS: &[Word] = &[
    spelled("json", &["strict"]),
    word("repair"),
    word("cascade"),
    spelled("guided", &["schema"]),
];
pub(super) const CHECKS: &[Word] = &[
    spelled("off", &["none"]),
    word("required"),
    word("relaxed"),
    word("coerce"),
    word("strict"),
];
pub(super) const OUTPUT_CHECKS: &[Word] = &[word("off"), word("warn"), word("error")];

pub(super) static SCOPE: Section = Section {
    name: "scope",
    fields: &[field(
        "pool",
        Kind::Count { min: 1, max: 64 },
        "How many connections there are at most.",
    )],
};

pub(super) static BREAKER: Section = Section {
    name: "breaker",
    fields: &[
        field("enabled", Kind::Bool, "Whether callers are ever turned away.").default("true"),
        field(
            "failures",
            Kind::Count { min: 1, max: 1000 },
            "After so many failures in a row.",
        )
        .aka(&["failure_threshold", "max_failures"])
        .default("5"),
        field(
            "percent",
            Kind::Count { min: 0, max: 100 },
            "Also when more than this part of the last calls failed; 0 for never.",
        )
        .aka(&["failure_rate", "error_percent"])
        .default("0"),
        field(
            "of",
            Kind::Count { min: 1, max: 1000 },
            "How many of the last calls that part is taken of.",
        )
        .aka(&["min_requests", "window"])
        .default("10"),
        field(
            "open",
            Kind::Duration {
                min: 1,
                max: 3600 * 1000,
            },
            "For how long.",
        )
        .aka(&["open_time", "open_timeout", "timeout"])
        .default("\"30s\""),
        field(
            "probes",
            Kind::Count { min: 1, max: 1000 },
            "How many calls are then let through at once, to see how they fare.",
        )
        .aka(&["half_open", "half_open_max", "half_open_probes"])
        .default("1"),
        field(
            "successes",
            Kind::Count { min: 1, max: 1000 },
            "How many of them must succeed before all are let through again.",
        )
        .aka(&["success_threshold"])
        .default("1"),
    ],
};

static QUEUE: Section = Section {
    name: "queue",
    fields: &[field(
        "concurrent",
        Kind::Count { min: 1, max: 65_536 },
        "The most calls under way at once.",
    )
    .aka(&["concurrency", "max_concurrent"])],
};

pub(super) const PRESETS: &[Word] = &[
    word("pegboard"),
    word("tarsy"),
    word("ai-agent"),
    word("antwort"),
    word("goat"),
    word("minion"),
];
pub(super) const SCOPES: &[Word] = &[word("shared"), spelled("session", &["per_session", "dedicated"])];
pub(super) const APPROVALS: &[Word] = &[
    spelled("auto", &["approve"]),
    word("writes"),
    spelled("always", &["prompt"]),
    word("never"),
];
pub(super) const PINS: &[Word] = &[word("off"), word("warn"), word("block")];
pub(super) const RETRY_WORDS: &[Word] = &[word("never"), word("safe"), word("idempotent")];
const MASK_STYLES: &[Word] = &[word("value"), spelled("whole", &["full"])];
const NAMING: &[Word] = &[
    spelled("dunder", &["double_underscore"]),
    word("dot"),
    word("mcp_dunder"),
    word("mcp_single"),
    word("bare"),
];
pub(super) const STRUCTURED: &[Word] = &[
    word("content_first"),
    word("structured_first"),
    word("both_dedup"),
    word("content_only"),
    word("structured_only"),
];
const TOO_LONG: &[Word] = &[
    spelled("head", &["cut", "truncate"]),
    word("head_tail"),
    spelled("spill", &["handle"]),
    spelled("summarise", &["summarize"]),
    word("error"),
];
const JOINS: &[Word] = &[
    spelled("newline", &["lines"]),
    word("empty_line"),
    spelled("nothing", &["none"]),
    spelled("first", &["first_block"]),
];
const IMAGES: &[Word] = &[word("keep"), word("spill")];
