//! The configuration as it is meant: complete, checked, with no "use the default" left in it.
//!
//! A file becomes a located tree (`tree`), its shape ours (`import`), its settings checked against one table of fields
//! (`fields`, `check`) with variables replaced (`expand`), and the result is put together (`resolve`) layer by layer
//! (`load`). This file and `server`, `transport`, `limits`, `policy` hold what comes out.

mod adhoc;
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
mod key;
mod layers;
mod life;
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
mod schema;
mod secrets;
mod server;
mod setting;
mod show;
mod source;
mod spelling;
mod suspect;
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
pub(crate) use life::RESTART_WAITS;
pub use life::{BreakerPolicy, BreakerRule, Health, IdleStop, Probe, Restart, Retry, RetryClass};
pub use limits::Limits;
pub use loaded::{Loaded, Origin, Unreadable};
pub use misconfigured::Misconfigured;
pub use policy::{
    Approval, ArgumentRules, Capabilities, Check, Images, Join, OutputCheck, Pins, Policy, Queue, Reading, Results,
    Scope, Structured, Summarise, SummaryModel, TooLong, ToolPolicy,
};
pub use preset::Preset;
pub use problem::{Problem, Severity};
pub(crate) use server::IDLE;
pub use server::{EraChoice, ServerConfig, Start};
pub use source::Source;
pub(crate) use transport::is_loader;
pub use transport::{Auth, ClientCert, Command, Endpoint, EnvPolicy, Rlimits, Tls, Transport};
pub use tree::Format;
pub use units::{parse_duration, parse_size};
