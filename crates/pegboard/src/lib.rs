//! Pegboard connects an agent to many MCP servers.

mod config;
mod deadline;
mod hint;
mod name;
mod secret;

pub use config::{
    Approval, Auth, ClientCert, Command, Config, CustomPattern, Endpoint, Env, EnvPolicy, EraChoice, Format, Limits,
    Loaded, Masking, Origin, Pins, Policy, Preset, Problem, Queue, Scope, ServerConfig, Severity, Source, Start,
    Summarise, Tls, Transport, parse_duration,
};
pub use deadline::{Deadline, Passed};
pub use hint::Hint;
pub use name::{BadServerName, ServerName};
pub use secret::{SafeUrl, Secret};
