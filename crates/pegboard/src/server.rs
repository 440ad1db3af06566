//! One MCP server: started on demand, supervised, and stopped when its last handle is dropped.
//!
//! A [`Server`] is a name with settings, a queue, a circuit breaker and counters over a pool of links. Most pools have one link. A link is one
//! connection with its supervisor task; servers with the same connection settings share it.

mod availability;
pub(crate) mod backoff;
mod board_shared;
mod board_slot;
mod breaker;
mod closing_links;
mod connection_plan;
mod event_publisher;
mod exposure;
mod health_check;
mod instance_history;
mod known_catalog;
mod link;
mod link_context;
mod link_holders;
mod link_usage;
mod operator_switch;
mod outage;
mod ownership;
mod phase;
mod pool;
mod predecessors;
mod private_copy;
mod question_link;
mod question_session;
mod queue;
mod ready_session;
mod refused_credentials;
mod registry;
mod retirement;
mod retry_budget;
mod revision;
mod screening;
mod server_catalog;
mod server_handle;
mod session_cleanup;
mod shared_links;
mod status_report;
mod supervisor;
mod view_calls;
mod view_identity;
mod view_instances;
mod view_servers;
mod view_tag;

pub(crate) use availability::DetachedConnections;
pub use backoff::BadSchedule;
pub(crate) use backoff::{Backoff, Jitter};
pub(crate) use board_shared::BoardShared;
pub(crate) use breaker::Open;
pub(crate) use exposure::HeldTool;
pub use known_catalog::CatalogChange;
pub(crate) use link_context::LinkContext;
pub(crate) use outage::Outage;
pub(crate) use phase::{Live, Phase};
pub(crate) use queue::{Permit, Queues, Refused};
pub(crate) use registry::Registry;
pub(crate) use retry_budget::RetryBudget;
pub(crate) use screening::identity;
pub(crate) use server_handle::Server;
pub(crate) use shared_links::SharedLinks;
pub(crate) use view_identity::{ShownServers, ViewIdentity};
pub(crate) use view_servers::ViewServers;
