//! Pegboard connects an agent to many MCP servers.

mod config;
mod deadline;
mod hint;
mod name;
mod secret;

pub use config::{
    Auth, ClientCert, Command, Config, Endpoint, EnvPolicy, EraChoice, Limits, ServerConfig, Start, Tls, Transport,
};
pub use deadline::{Deadline, Passed};
pub use hint::Hint;
pub use name::{BadServerName, ServerName};
pub use secret::{SafeUrl, Secret};
