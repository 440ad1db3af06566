//! Loads config files into a resolved [`Config`], in which every default is filled in.
//!
//! ```text
//! discover: the files of the system, the user and the project
//!    │ trust: a project's file is used only if its digest was approved; project_rules limit what it may set
//!    ▼
//! tree: TOML, YAML or JSON as a tree with locations
//!    │ import: converts the structure of other programs' files
//!    ▼
//! check: against the declared settings; expand replaces variables
//!    ▼
//! merge: the server over the top of the file over the preset, key by key
//!    ▼
//! resolve: ServerConfig, complete and typed ──▶ Config
//! ```
//!
//! `load` runs these steps. `settings!` declares each setting once, beside the resolved type that it is a field of; `fields` has all of them. A
//! setting can be read only by its key, so a misspelt name or a wrong type does not compile. Every setting keeps its origin, for `explain` and `show`. Problems are collected and returned together; a server that they make unusable is in
//! [`Config::misconfigured`].
//!
//! `board`, `server`, `transport`, `limits`, `lifecycle`, `policy` and `serve` define the resolved types.
//!
//! The API follows the needs of the other crates. Programs use `pegboard::config`.

mod audit;
mod board;
mod board_limits;
mod builders;
mod check;
mod choice;
mod code_variables;
mod discover;
mod duration_text;
mod env_file;
mod environment;
mod expand;
mod explain;
mod field;
mod fields;
mod floor;
mod from_setting;
mod header_template;
mod import;
mod inline_server;
mod key;
mod keyring_references;
mod layers;
mod lifecycle;
mod limits;
mod load;
mod loaded;
mod merge;
mod misconfigured;
mod oauth;
mod owned_file;
mod policy;
mod preset;
mod problem;
mod project_file;
mod project_floor;
mod project_rules;
mod protective;
mod queue_names;
mod redact;
mod relative_path;
mod resolve;
mod running;
mod sandbox;
mod schema;
mod secret_args;
mod secret_detection;
mod secret_parts;
mod secrets;
mod serve;
mod server;
mod session_cleanup;
mod setting;
mod settings;
mod show;
mod source;
mod spelling;
mod spiffe_id;
mod stored;
mod text_forms;
mod transport;
mod tree;
mod trust;
mod units;
mod unpinned;
mod values;
mod view;
mod view_template;

#[cfg(test)]
#[cfg(all(feature = "sse", feature = "websocket"))]
mod tests;

pub use audit::{AuditConfig, AuditTarget, SyslogAddress};
pub use board::Config;
pub use board_limits::BoardLimits;
pub use code_variables::decides_code;
pub use code_variables::is_loader;
pub use env_file::is_name as is_variable_name;
pub use expand::Env;
pub use explain::{Explained, Overridden, ValueOrigin};
pub use header_template::{BadHeader, PRINCIPAL, SESSION_ID};
pub use lifecycle::RESTART_WAITS;
pub use lifecycle::{BreakerPolicy, BreakerRule, Health, IdleStop, Probe, Restart, Retry, RetryClass};
pub use limits::Limits;
pub use loaded::{ConfigErrors, Loaded, Origin, PendingTrust, Unreadable};
pub use misconfigured::Misconfigured;
pub use oauth::{
    ClientKey, Dpop, IdentityProvider, JwtBearer, OAuthConfig, OAuthGrant, RedirectConfig, SigningAlg, TokenExchange,
    TokenInput,
};
pub use pegboard_base::secret::{BadUrl, SafeUrl, WithSecrets};
pub use policy::{
    Approval, ArgumentRules, Capabilities, Check, Images, Join, OnCrossing, OutputCheck, Pins, Policy, Queue, Rate,
    Reading, Results, Scan, Scope, Structured, Summarise, SummaryModel, Taint, TooLong, ToolPolicy,
};
pub use preset::Preset;
pub use problem::{Problem, Severity};
pub use project_file::ProjectFile;
#[doc(hidden)]
pub use running::{RunningSettings, Withheld};
pub use sandbox::{Sandbox, SandboxLevel, SandboxNetwork};
pub use secret_parts::secrets_in;
pub use serve::{
    AccessLogTarget, BadStateKey, BadTokenDigest, Compression, DashboardCalls, JwtAlgorithm, OAuthIntrospection,
    OAuthRule, ServeConfig, ServeMetrics, ServeOAuth, ServeReplicas, ServeTelemetry, ServeTls, StateKey, TokenConfig,
    TokenDigest, TokenScope, TraceSampler,
};
pub use server::IDLE;
pub use server::{EraChoice, ServerConfig, Start};
pub use source::Source;
pub use spiffe_id::{BadSpiffeId, SpiffeId};
pub use transport::{
    Auth, ClientCert, Command, Endpoint, EnvPolicy, HeadersHelper, RemoteKind, Rlimits, Tls, Transport,
};
pub use tree::Format;
#[cfg(feature = "yaml")]
#[doc(hidden)]
pub use tree::YamlScalar;
#[doc(hidden)]
pub use tree::json_options;
pub use trust::{TrustError, TrustRecord, TrustStore};
pub use units::{parse_duration, parse_size};
pub use unpinned::Unpinned;
pub use view::ViewConfig;
