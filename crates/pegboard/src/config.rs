//! Loads config files into a resolved [`Config`], in which every default is filled in.
//!
//! `load` runs the steps for each source: `tree` parses a file into a located tree, `import` converts the structure of other
//! programs' files, `check` validates the settings against the table of fields (`fields`) and expands variables (`expand`), `merge`
//! fills them from the top of the file and the preset, and `resolve` builds the [`ServerConfig`]. `board`, `server`, `transport`,
//! `limits`, `life` and `policy` define the resolved types.

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
mod view;
mod view_template;

#[cfg(test)]
#[cfg(all(feature = "sse", feature = "websocket"))]
mod tests;

pub use crate::secret::{BadUrl, SafeUrl, WithSecrets};
pub use audit::AuditConfig;
pub use board::Config;
pub use board_limits::BoardLimits;
pub use code_variables::decides_code;
pub(crate) use code_variables::is_loader;
pub(crate) use env_file::is_name as is_variable_name;
pub use expand::Env;
pub use explain::{Explained, Overridden, ValueOrigin};
pub(crate) use header_template::{BadHeader, PRINCIPAL, SESSION_ID};
pub(crate) use lifecycle::RESTART_WAITS;
pub use lifecycle::{BreakerPolicy, BreakerRule, Health, IdleStop, Probe, Restart, Retry, RetryClass};
pub use limits::Limits;
pub use loaded::{ConfigErrors, Loaded, Origin, PendingTrust, Unreadable};
pub use misconfigured::Misconfigured;
pub use oauth::{
    ClientKey, Dpop, IdentityProvider, JwtBearer, OAuthConfig, OAuthGrant, RedirectConfig, SigningAlg, TokenExchange,
    TokenInput,
};
pub use policy::{
    Approval, ArgumentRules, Capabilities, Check, Images, Join, OnCrossing, OutputCheck, Pins, Policy, Queue, Rate,
    Reading, Results, Scan, Scope, Structured, Summarise, SummaryModel, Taint, TooLong, ToolPolicy,
};
pub use preset::Preset;
pub use problem::{Problem, Severity};
pub use project_file::ProjectFile;
pub use sandbox::{Sandbox, SandboxLevel, SandboxNetwork};
pub(crate) use secret_parts::secrets_in;
pub use serve::{
    BadStateKey, BadTokenDigest, JwtAlgorithm, OAuthIntrospection, OAuthRule, ServeConfig, ServeOAuth, ServeTls,
    StateKey, TokenConfig, TokenDigest, TokenScope,
};
pub(crate) use server::IDLE;
pub use server::{EraChoice, ServerConfig, Start};
pub use source::Source;
pub use spiffe_id::{BadSpiffeId, SpiffeId};
pub use transport::{Auth, ClientCert, Command, Endpoint, EnvPolicy, HeadersHelper, Rlimits, Tls, Transport};
pub use tree::Format;
pub use trust::{TrustError, TrustRecord, TrustStore};
pub use units::{parse_duration, parse_size};
pub use unpinned::Unpinned;
pub use view::ViewConfig;
