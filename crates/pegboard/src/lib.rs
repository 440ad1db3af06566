//! Pegboard connects an agent to many [MCP](https://modelcontextprotocol.io) servers: it starts or connects to them, lists their tools,
//! routes calls, and reports exactly how each call ended.
//!
//! ```
//! use std::time::Duration;
//! use pegboard::{Config, Pegboard, ServerConfig};
//! use serde_json::json;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let time = ServerConfig::command("uvx", ["mcp-server-time"]);
//! # let time = time.start(pegboard::config::Start::Lazy);
//! let board = Pegboard::open(Config::new().server("time", time)?);
//! # let fake = pegboard_testkit::FakeServer::new("time")
//! #     .tool(pegboard_testkit::Tool::new("get_current_time").answers_text("noon"));
//! # let (_first, handle) = fake.connect();
//! # let dial = move || {
//! #     let (read, write) = tokio::io::split(handle.connect());
//! #     (Box::new(read) as pegboard::in_process::ByteSource, Box::new(write) as pegboard::in_process::ByteSink)
//! # };
//! # let board = Pegboard::builder(Config::new()).in_process("time", dial).open();
//! let tools = board.toolset();
//! for tool in tools.list(Duration::from_secs(30)).await {
//!     println!("{}", tool.name); // time__get_current_time
//! }
//!
//! let reply = tools.call(("time.get_current_time", json!({"timezone": "UTC"}))).await;
//! println!("{}", reply.text());
//! # assert_eq!(reply.text(), "noon");
//!
//! board.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Nine names
//!
//! * [`Config`] lists the servers and how to reach them. It is written in code, or read from TOML, YAML or JSON in the formats that other MCP
//!   hosts use.
//! * [`ServerConfig`] is one server: a command, a URL, or code in the same process.
//! * [`Pegboard`] owns the servers. They start concurrently in the background, and a broken one does not affect the others.
//! * [`View`] says what one agent gets: which tools, under which names, for which model and user, and how its calls and results are processed.
//! * [`Toolset`] is an open view: [`Toolset::list`] and [`Toolset::call`].
//! * [`ToolCall`] is a call with more than a name and arguments: a time limit, an idempotency key, a selection.
//! * [`Reply`] is the record of one call. Every call gets one. [`Reply::into_result`] and [`Reply::json`] turn it into a `Result`.
//! * [`Outcome`] says how the call ended: [`Outcome::Done`], [`Outcome::ToolFailed`], [`Outcome::Refused`] (nothing ran) or
//!   [`Outcome::Lost`] (it may have run).
//! * [`Provider`] is the vendor of a model's API. It formats tool definitions for that API, parses the model's calls and formats the replies.
//!
//! An agent's loop needs no others:
//!
//! ```
//! use std::time::Duration;
//! use pegboard::{Outcome, Pegboard, Provider, View};
//! use serde_json::{Value, json};
//!
//! # async fn ask(_: &[Value], _: &[Value]) -> Result<Value, std::io::Error> {
//! #     Ok(json!({"role": "assistant", "content": "noon"}))
//! # }
//! async fn run(board: &Pegboard, task: &str) -> Result<Value, std::io::Error> {
//!     let tools = board.toolset_with(View::new().provider(Provider::OpenAi));
//!     let definitions = tools.list(Duration::from_secs(30)).await.definitions();
//!     let mut messages = vec![json!({"role": "user", "content": task})];
//!     loop {
//!         let said = ask(&messages, &definitions).await?; // the model's API
//!         let calls = Provider::OpenAi.tool_calls(&said);
//!         if calls.is_empty() {
//!             return Ok(said);
//!         }
//!         let replies = tools.call_all(calls).await;
//!         for reply in &replies {
//!             if let Outcome::Lost(_) = reply.outcome {
//!                 eprintln!("{} may have run", reply.name);
//!             }
//!         }
//!         messages.push(said);
//!         messages.extend(Provider::OpenAi.tool_messages(&replies)); // failures too, so that the model can react
//!     }
//! }
//! ```
//!
//! Everything else is in the module that its name says: [`in_process`] for native tools and servers in this program, [`host`] for servers that
//! ask the program, [`hook`] and [`approval`] around calls, [`credential`], [`filter`], [`watch`], [`task`], [`metrics`], [`testing`].
//! The folder `examples` has complete programs, and the book has a chapter for Rust programs.
//!
//! # Features
//!
//! All of these are on by default. Without any of them there are servers over stdio and in the same process, and no HTTP client or TLS
//! in the build. A config may contain servers that a build cannot reach, or ask for checks that it cannot make: that is reported when it is
//! loaded and when they are called.
//!
//! * `http`: servers over streamable HTTP, and [`ChatModel`](summary::ChatModel).
//! * `sse`: servers over HTTP+SSE, the transport of 2024-11-05. It turns on `http`.
//! * `validation`: arguments and structured results are validated against the schemas of tools. Without it only the presence of required
//!   arguments is checked, types are not converted, and calls are refused where the config says `call_arguments = "strict"`, or
//!   `output_check = "error"` for a tool with an output schema.
//! * `websocket`: servers over WebSocket.
//! * `rustls-ring`: the cryptography of TLS, unless the program has installed another `CryptoProvider` of rustls: that is used then. Nothing is
//!   installed for the rest of the program. With `rustls-aws-lc` in its place it is that of `aws-lc-rs`. With neither, and nothing installed,
//!   servers over HTTPS say what is missing.
//! * `toml`, `yaml`: configs in these formats; those in JSON are always read. `yaml` also reads what models write as YAML into arguments.
//! * `native-roots`: the root certificates of the operating system. Without it only the authorities in `tls.ca` are trusted.
//!
//! `oauth`, `schemars` and `rmcp` are off by default. `oauth` adds sign-in at the authorization servers of remote servers; it turns on `http`. `schemars` adds native tools whose argument schemas are derived from types. `rmcp` adds the module `rmcp`: handlers and transports of rmcp, the official SDK, as servers, a toolset as a handler, and
//! conversions between the types of both crates.
//!
//! The library is pure Rust, except for the cryptography of TLS. It needs Rust 1.91 or newer.
//!
//! # Types of other crates
//!
//! JSON is [`serde_json`]'s `Value` and `Map`, [`SafeUrl::expose`](config::SafeUrl::expose) returns a [`url`] `Url`, and a forwarded result is [`bytes`]' `Bytes`; these crates
//! are exported here. [`ToolCall::progress`] takes a channel of tokio, which the program runs on anyway, and streams implement `Stream` of
//! `futures-core`.
//!
//! # What you can rely on
//!
//! * Dropping the future of a call cancels it on the server and affects no other call.
//! * Every wait has a limit and every buffer a bound; see [`Limits`](config::Limits).
//! * A call that may have run is retried only if its tool is declared safe to repeat, by the operator or by a trusted server's annotations.
//! * Two boards in one program are independent. They share only process-wide state without data of either board: counters for ids, values
//!   that are loaded or compiled once (TLS roots, patterns, the random number in fences), and whether [`shim()`] was called.
//! * When the last clone of a board and its toolsets is dropped, its servers end with everything they started. With [`shim()`] as
//!   the first line of `main` they also end when the program is killed.

// Documentation that is built on docs.rs, with a nightly compiler, names the feature that an item needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

/// The programs in the README are compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct ReadmeDoctests;

/// The programs in the observability guide are compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/concepts/observability.md")]
struct ObservabilityDoctests;

/// The programs in the guide to credentials are compiled with the tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/concepts/credentials.md")]
struct CredentialsDoctests;

pub mod audit;
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench;
pub mod board;
mod call;
mod event;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
pub mod metrics;
pub mod pin;
#[doc(hidden)]
pub mod recent;
#[cfg(feature = "rmcp")]
pub mod rmcp;
mod server;
mod spill;
pub mod status;
pub mod toolset;

// Crates whose types are in signatures: a program can use them without a dependency of its own and in the same version.
#[cfg(feature = "schemars")]
pub use schemars;
pub use {bytes, serde_json, url};

/// How a call's arguments are read from a model's text, and their errors.
pub mod args {
    #[doc(inline)]
    pub use pegboard_tools::args::{Arguments, ArgumentsError, ReadArguments};
}

/// The catalogue of one server: its tools, resources and prompts.
pub mod catalog {
    #[doc(inline)]
    pub use pegboard_tools::catalog::{
        Catalog, CatalogDiff, Changed, Changes, DefinitionHash, Finding, FindingSeverity, InstructionFormat,
        Instructions, ListWarning, Prompt, Resource, Risk, Schema, ServerWords, TaskSupport, TemplateError, Tool,
        ToolKind, UriTemplate,
    };
}

/// Config files, and the settings that they are resolved into.
pub mod config {
    #[doc(inline)]
    pub use pegboard_config::{
        AccessLogTarget, Approval, ArgumentRules, AuditConfig, AuditTarget, Auth, BadSpiffeId, BadStateKey,
        BadTokenDigest, BadUrl, BoardLimits, BreakerPolicy, BreakerRule, Capabilities, Check, ClientCert, ClientKey,
        Command, Compression, Config, ConfigErrors, DashboardCalls, Dpop, Endpoint, Env, EnvPolicy, EraChoice,
        Explained, Format, HeadersHelper, Health, IdentityProvider, IdleStop, Images, Join, JwtAlgorithm, JwtBearer,
        Limits, Loaded, Misconfigured, OAuthConfig, OAuthGrant, OAuthIntrospection, OAuthRule, OnCrossing, Origin,
        OutputCheck, Overridden, PendingTrust, Pins, Policy, Preset, Probe, Problem, ProjectFile, Queue, Rate, Reading,
        RedirectConfig, RemoteKind, Restart, Results, Retry, RetryClass, Rlimits, SafeUrl, Sandbox, SandboxLevel,
        SandboxNetwork, Scan, Scope, ServeConfig, ServeMetrics, ServeOAuth, ServeReplicas, ServeTelemetry, ServeTls,
        ServerConfig, Severity, SigningAlg, Source, SpiffeId, Start, StateKey, Structured, Summarise, SummaryModel,
        SyslogAddress, Taint, Tls, TokenConfig, TokenDigest, TokenExchange, TokenInput, TokenScope, TooLong,
        ToolPolicy, TraceSampler, Transport, TrustError, TrustRecord, TrustStore, Unpinned, Unreadable, ValueOrigin,
        ViewConfig, WithSecrets, decides_code, parse_duration, parse_size,
    };
    #[doc(hidden)]
    pub use pegboard_config::{RunningSettings, Withheld};
}

/// Credentials that a program supplies at run time, for the servers of a board or of one principal.
pub mod credential {
    #[doc(inline)]
    pub use pegboard_client::credential::{
        CallerRights, CallerTokens, Credential, CredentialError, CredentialReason, CredentialRequest, Credentials,
        credentials,
    };
}

/// Deadlines that are passed down through all steps of a call.
pub mod deadline {
    #[doc(inline)]
    pub use pegboard_base::deadline::{Deadline, Passed};
}

/// What is wrong with a server, a call or a config, as data.
pub mod diagnosis {
    #[doc(inline)]
    pub use pegboard_base::diagnosis::{Cause, Code, ConnectFault, Diagnosis, Edit, Place, StderrClue, Step, TlsFault};
}

/// What a view or a single call may use, by globs.
///
/// A view sees everything until something narrows it: filters of the config or of the view, a [`Selection`], or [`Grants`]. Listings and calls
/// follow the same rules, so a tool that is not listed cannot be called.
///
/// ```
/// use pegboard::{Grants, Selection, ToolCall, View};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // For one task: all of `k8s`, and the reading tools of `argocd`.
/// let selection = Selection::new().server("k8s").tools("argocd", ["get_*", "list_*"]);
/// let view = View::new().selection(selection.clone());
/// // Or for one call, in place of the view's.
/// let call = ToolCall::new("argocd.get_app").selection(selection);
/// // The grants of a user. Without a grant nothing is visible.
/// let view = View::new().grants(Grants::new().server("k8s"));
/// # Ok(())
/// # }
/// ```
pub mod filter {
    #[doc(inline)]
    pub use pegboard_tools::filter::{BadSelection, Selected, Selection};
}

/// Values as the words that text, JSON and config files have for them.
pub mod label {
    #[doc(inline)]
    pub use pegboard_base::label::UnknownWord;
}

/// Masking of secrets in texts and JSON values.
pub mod mask {
    #[doc(inline)]
    pub use pegboard_mask::{BadMasking, Carried, Counts, CustomPattern, MaskStyle, Masked, Masker, Masking};
}

/// Names of servers, and how a (server, tool) pair is written for users and models.
pub mod name {
    #[doc(inline)]
    pub use pegboard_base::name::{BadNameStyle, BadServerName, NameRules, NameStyle, ServerName};
}

/// How a call ended: with a text for the model in every case, and a kind and details for the program.
pub mod outcome {
    #[doc(inline)]
    pub use pegboard_tools::outcome::{
        Advice, Answer, BadBlob, Body, CallError, Completion, Content, ContentType, Failure, FilledPrompt,
        ForwardedResult, Kind, Outcome, PromptMessage, Reply, ResourceContents, ResultKind, Role, TextPage,
        UnreadableAnswer, fence,
    };
}

/// Definitions of tools for each model provider.
pub mod provider {
    #[doc(inline)]
    pub use pegboard_tools::provider::{Definition, Provider, Quarantine, Reverse, UnknownProvider};
}

/// Approval of calls by a person: who is asked, the answers, and the approvals that are remembered.
pub mod approval {
    pub use crate::call::{Approvals, Approved, Approver, Decision, Question, approver};
}

/// Results of servers as bytes, for gateways: [`Toolset::forward_call`] and [`Toolset::forward`].
#[doc(hidden)]
pub mod forward {
    pub use crate::call::{Forwarded, Forwarding};
    #[doc(inline)]
    pub use pegboard_tools::outcome::{ForwardedResult, ResultKind};
}

/// Counts how often principals call, for several processes together.
pub mod rates {
    pub use crate::call::{NotSpent, SharedRates};
}

/// The journal of calls in flight, and whether a single call may have run.
pub mod journal {
    pub use crate::call::{CallJournal, Delivery, JournalEntry, JournalProblem};
    #[doc(hidden)]
    pub use pegboard_tools::tool_call::CallTimes;
}

/// Hooks around every call of a view, and the budget of a view.
pub mod hook {
    pub use crate::call::{Budget, Called, Hook, Proposed};
}

/// The program's answers to requests of servers: elicitation, sampling and roots.
///
/// ```
/// use pegboard::{BoxFuture, Config, Host, Pegboard, host::{ElicitAnswer, Elicitation, HostContext}};
///
/// struct Console;
///
/// impl Host for Console {
///     fn offers_elicitation(&self) -> bool {
///         true
///     }
///
///     fn elicit<'a>(
///         &'a self,
///         context: HostContext<'a>,
///         question: Elicitation,
///     ) -> BoxFuture<'a, ElicitAnswer> {
///         Box::pin(async move {
///             println!("{} asks: {}", context.server, question.message);
///             ElicitAnswer::Decline
///         })
///     }
/// }
///
/// let builder = Pegboard::builder(Config::default()).host(Console);
/// ```
///
/// Servers are offered only the capabilities that the host declares; without a host, none. [`HostContext`](host::HostContext) names the call, its view and its
/// [`Principal`]. In a service with many users, [`View::host`] sets a host for each view, so that every user is asked for their own calls only.
pub mod host {
    #[doc(inline)]
    pub use pegboard_client::session::{
        Choice, ElicitAnswer, Elicitation, Field, FieldKind, Form, Host, HostContext, NoHost, Root, SamplingLimits,
        TextFormat,
    };
}

/// Servers and tools in the same process.
pub mod in_process {
    #[doc(inline)]
    pub use pegboard_client::{
        native::{IntoAnswer, Json, NativeTool, NativeTools, ToolContext, ToolError},
        transport::{ByteSink, ByteSource, DialContext, Dialer, DialerError, dialer},
    };
}

/// Summaries of long results.
pub mod summary {
    #[cfg(feature = "http")]
    pub use crate::call::ChatModel;
    pub use crate::call::{Summariser, Summary, SummaryError, SummaryRequest, summariser};
}

/// Calls that servers run in the background.
///
/// ```
/// # use std::time::Duration;
/// # use pegboard::{Reply, ToolCall, Toolset};
/// async fn report(tools: &Toolset) -> Reply {
///     match tools.start(ToolCall::new("reports.yearly")).await {
///         Ok(mut task) => {
///             // An error while the task runs; the same reply each time after it has ended.
///             let reply = task.result(Duration::from_secs(5)).await;
///             if !reply.is_error() {
///                 return reply;
///             }
///             task.result(Duration::from_secs(3600)).await
///         }
///         Err(reply) => *reply, // It was not started, and this says why.
///     }
/// }
/// ```
///
/// [`Toolset::call`] waits for tasks by itself. [`Toolset::task`] resumes one by its id.
pub mod task {
    pub use crate::call::TaskHandle;
    #[doc(inline)]
    pub use pegboard_client::session::{TaskState, TaskStatus};
}

/// Traces and durations of calls, for a program that sends them somewhere. See [`Builder::telemetry`].
pub mod telemetry {
    #[doc(inline)]
    pub use pegboard_base::telemetry::{
        Attribute, Carried, Exemplar, Propagation, Span, SpanEvent, SpanId, SpanKind, Telemetry, TraceContext, TraceId,
        Value,
    };
    #[doc(hidden)]
    pub use pegboard_base::telemetry::{
        Entered, OpenSpan, Parent, RequestTag, current, current_request, enter, plain_uri,
    };
}

/// Moments of the wall clock.
pub mod time {
    #[doc(inline)]
    pub use pegboard_base::timestamp::{BadTimestamp, Timestamp};
}

/// Replacements for a [`Toolset`] in tests of agents.
pub mod testing {
    pub use crate::toolset::{StubCall, StubReply, StubTools};
}

/// Notifications of servers: log messages, progress, changed resources and catalogues.
///
/// ```
/// # use std::time::Duration;
/// # use pegboard::{Failure, Toolset};
/// async fn watch(tools: &Toolset) -> Result<(), Failure> {
///     for resource in tools.resources(Duration::from_secs(30)).await.resources {
///         println!("{}", resource.uri);
///     }
///     // Renewed automatically in every session, until it is dropped.
///     let mut news = tools.subscribe("docs", "file:///notes.md").await?;
///     while news.changed().await {
///         for contents in tools.read_resource("docs", news.uri()).await? {
///             println!("{}", contents.text().unwrap_or("(no text)"));
///         }
///     }
///     Ok(())
/// }
/// ```
///
/// [`Toolset::prompts`], [`Toolset::complete`] and [`Toolset::events`] give access to the prompts, completions and notifications of servers.
pub mod watch {
    pub use crate::server::CatalogChange;
    #[doc(inline)]
    pub use pegboard_client::session::{
        ListKind, LogLevel, LogMessage, Progress, ServerEvent, ServerEvents, Subscription, UnknownLogLevel, WantedLogs,
    };
}

pub use board::{Builder, Pegboard};
#[cfg(feature = "oauth")]
pub use board::{
    EndedSignIn, SignIn, SignInError, SignInErrorKind, SignInOptions, SignedIn, SignedOut, StoredSignIn,
    TokenProtection,
};
pub use call::{Approver, Hook, ToolCall, View};
pub use event::{Event, Events};
#[doc(inline)]
pub use pegboard_base::{
    BoxFuture,
    caller::{Caller, Principal, login_command},
    hint::Hint,
    name::{NameStyle, ServerName},
    secret::Secret,
    timestamp::Timestamp,
};
#[doc(inline)]
pub use pegboard_client::{
    credential::{Credential, Credentials},
    native::{NativeTool, NativeTools},
    session::Host,
    shim::{LocalPeer, shim},
};
#[doc(inline)]
pub use pegboard_config::{Config, Env, Format, Loaded, Problem, ServerConfig};
#[doc(inline)]
pub use pegboard_tools::{
    args::Arguments,
    catalog::Tool,
    filter::Selection,
    grant::Grants,
    outcome::{Advice, Answer, Content, Failure, Kind, Outcome, Reply},
    provider::Provider,
};
pub use status::State;
pub use toolset::{ListedTool, Listing, ToolExecutor, Toolset};
