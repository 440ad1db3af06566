//! Pegboard connects an agent to many MCP servers.

mod args;
mod board;
mod call;
mod catalog;
mod config;
mod deadline;
mod filter;
mod hint;
mod name;
mod outcome;
mod secret;
mod server;
mod session;
mod status;
mod toolset;
mod transport;

pub use args::{Arguments, ArgumentsError};
pub use board::{Builder, Pegboard};
pub use call::ToolCall;
pub use catalog::{Catalog, Prompt, Resource, Tool};
pub use config::{
    Approval, Auth, ClientCert, Command, Config, CustomPattern, Endpoint, Env, EnvPolicy, EraChoice, Format, Limits,
    Loaded, Masking, Origin, Pins, Policy, Preset, Problem, Queue, Scope, ServerConfig, Severity, Source, Start,
    Summarise, Tls, Transport, parse_duration,
};
pub use deadline::{Deadline, Passed};
pub use hint::Hint;
pub use name::{BadServerName, ServerName};
pub use outcome::{Answer, Content, Failure, Kind, Outcome, Reply};
pub use secret::{SafeUrl, Secret};
pub use session::{ElicitAnswer, Elicitation, Host, NoHost, Progress};
pub use status::{BoardStatus, CallCounts, Era, LastError, ServerInfo, ServerStatus, State, Warning};
pub use toolset::{ListedTool, Listing, Toolset, Unavailable};
pub use transport::{ByteSink, ByteSource, Dialer};
