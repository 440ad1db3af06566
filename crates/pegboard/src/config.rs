//! Loads config files into a resolved [`Config`], in which every default is filled in.
//!
//! `load` runs the steps for each source: `tree` parses a file into a located tree, `import` converts the structure of other
//! programs' files, `check` validates the settings against the table of fields (`fields`) and expands variables (`expand`), `merge`
//! fills them from the top of the file and the preset, and `resolve` builds the [`ServerConfig`]. `board`, `server`, `transport`,
//! `limits`, `life` and `policy` define the resolved types.

mod board;
mod board_limits;
mod check;
mod choice;
mod env_file;
mod environment;
mod expand;
mod explain;
mod field;
mod fields;
mod from_setting;
mod import;
mod inline_server;
mod key;
mod layers;
mod lifecycle;
mod limits;
mod load;
mod loaded;
mod merge;
mod misconfigured;
mod policy;
mod preset;
mod problem;
mod redact;
mod resolve;
mod sandbox;
mod schema;
mod secret_detection;
mod secrets;
mod server;
mod setting;
mod show;
mod source;
mod spelling;
mod transport;
mod tree;
mod units;

#[cfg(test)]
#[cfg(all(feature = "sse", feature = "websocket"))]
mod tests;

pub use board::Config;
pub use board_limits::BoardLimits;
pub(crate) use environment::is_allowed;
pub use expand::Env;
pub use explain::{Explained, Overridden, ValueOrigin};
pub(crate) use lifecycle::RESTART_WAITS;
pub use lifecycle::{BreakerPolicy, BreakerRule, Health, IdleStop, Probe, Restart, Retry, RetryClass};
pub use limits::Limits;
pub use loaded::{Loaded, Origin, Unreadable};
pub use misconfigured::Misconfigured;
pub use policy::{
    Approval, ArgumentRules, Capabilities, Check, Images, Join, OutputCheck, Pins, Policy, Queue, Reading, Results,
    Scope, Structured, Summarise, SummaryModel, TooLong, ToolPolicy,
};
pub use preset::Preset;
pub use problem::{Problem, Severity};
pub use sandbox::{Sandbox, SandboxLevel, SandboxNetwork};
pub(crate) use server::IDLE;
pub use server::{EraChoice, ServerConfig, Start};
pub use source::Source;
pub(crate) use transport::is_loader;
pub use transport::{Auth, ClientCert, Command, Endpoint, EnvPolicy, Rlimits, Tls, Transport};
pub use tree::Format;
pub use units::{parse_duration, parse_size};
