//! An MCP session with one server: the handshake, requests with timeouts, notifications, and the server's own requests.

mod applied_state;
#[cfg(feature = "bench")]
#[doc(hidden)]
pub mod bench_steps;
mod call_result;
mod calls_in_flight;
mod catalog_listing;
mod clock;
mod connect_spec;
mod connection;
mod connection_users;
mod desired_state;
mod diagnose;
mod dispatch;
#[cfg(test)]
#[cfg(not(feature = "explore"))]
mod drop_tests;
mod era_memory;
mod events;
#[cfg(feature = "explore")]
mod explore;
mod fault;
mod forward_request;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz_steps;
mod handshake;
mod host;
mod inbound_rules;
mod input_answers;
mod input_rounds;
mod json_rpc;
mod liveness;
mod log_level;
mod mcp_session;
mod modern_meta;
mod notifications;
mod pagination;
mod pass_on;
mod patience;
mod peer_info;
mod pending_requests;
mod progress;
mod raw_result;
mod reconcile;
mod request;
mod request_log_level;
mod resources_prompts;
mod response;
mod root;
mod round_fields;
mod server_info;
mod server_requests;
mod task;
mod task_state;
mod task_updates;
mod tools_call;
mod trace;

pub use desired_state::{Subscription, WantedLogs};
pub use events::{ListKind, LogMessage, ServerEvent, ServerEvents};
pub use host::{
    Choice, ElicitAnswer, Elicitation, Field, FieldKind, Form, Host, HostContext, NoHost, SamplingLimits, TextFormat,
};
pub use log_level::{LogLevel, UnknownLogLevel};
pub use progress::Progress;
pub use resources_prompts::CompletionOf;
pub use root::Root;
pub use server_info::{Era, ServerDeclaration, ServerInfo};
pub use task_state::{TaskState, TaskStatus};

pub use call_result::CallResult;
pub use catalog_listing::{ConfiguredTools, ListScope};
pub use connect_spec::{ClientInfo, Spec};
pub use desired_state::DesiredState;
pub use diagnose::Stage;
pub use era_memory::EraMemory;
pub use fault::{Fault, FaultKind, Flaw, Unreadable};
pub use forward_request::ForwardRequest;
pub use handshake::{ConnectError, connect};
pub use host::{HostHandle, OnBehalf};
pub use mcp_session::Session;
pub use pass_on::PassOn;
pub use patience::Patience;
pub use task::{Task, TaskContext, Tasks};
pub use tools_call::{Call, CallResponse};
