//! One initialised session with one server: requests with a limit, listings to their last page, and an end.

#[cfg(feature = "bench")]
pub(crate) mod bench_steps;
mod catalog_listing;
mod connection;
mod desired_state;
#[cfg(test)]
#[cfg(not(feature = "explore"))]
mod drop_tests;
mod era_memory;
mod events;
#[cfg(test)]
#[cfg(feature = "explore")]
mod explore;
mod fault;
mod handshake;
mod host;
mod input_rounds;
mod json_rpc;
mod listing;
mod notifications;
mod pending_requests;
mod progress;
mod reconcile;
mod request_log_level;
mod resources_prompts;
mod response;
mod server_requests;
mod task;
mod task_updates;
mod tools_call;
mod trace;

pub use desired_state::{LogLevel, Root, Subscription, UnknownLogLevel};
pub use events::{LogMessage, ServerEvent, ServerEvents};
pub use host::{Choice, ElicitAnswer, Elicitation, Field, FieldKind, Form, Host, NoHost, SamplingLimits, TextFormat};
pub use progress::Progress;
pub use resources_prompts::CompletionOf;
pub use task::{TaskState, TaskStatus};

pub(crate) use catalog_listing::ListScope;
pub(crate) use connection::{Fault, FaultKind, Patience, Request};
pub(crate) use desired_state::DesiredState;
pub(crate) use era_memory::EraMemory;
pub(crate) use handshake::{ClientInfo, ConnectError, Spec, connect};
pub(crate) use progress::{ProgressSink, Steps};
pub(crate) use task::Task;
pub(crate) use tools_call::{Begun, Call, CallResult};

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};

use crate::{
    catalog::HeaderRule,
    config::Limits,
    deadline::Deadline,
    mask::ServerMasker,
    name::ServerName,
    status::{Era, ServerInfo},
    transport::{Inbox as _, WireEnd},
};
use connection::RpcConnection;

/// An initialised session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) facts: Facts,
    connection: RpcConnection,
    server: ServerName,
    limits: Limits,
    host: Arc<host::Responder>,
    /// Whether the server was told that there are roots.
    has_offered_roots: bool,
    /// What of the wishes is fulfilled in this session.
    kept: reconcile::Reconciled,
}

/// What a server said about itself in the handshake.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) era: Era,
    pub(crate) version: Arc<str>,
    pub(crate) info: Option<ServerInfo>,
    pub(crate) capabilities: Map<String, Value>,
    pub(crate) instructions: Option<String>,
}

impl Facts {
    /// The words of the server in them masked.
    fn hidden(mut self, masker: &ServerMasker) -> Self {
        masker.hide_in(&mut self.instructions);
        if let Some(info) = &mut self.info {
            masker.hide(&mut info.name);
            masker.hide(&mut info.version);
        }
        self
    }
}

/// Tools that the config describes, by name.
pub(crate) type Described = BTreeMap<String, Value>;

impl Session {
    /// Waits until the server says that its catalogue has changed.
    pub(crate) async fn changed(&self) {
        self.connection.pending().changed.notified().await;
    }

    /// Acts as if the server had said so.
    pub(crate) fn suspect_change(&self) {
        self.connection.pending().changed.notify_one();
    }

    /// Whether the server says that it tells of changes, and does not refuse to when it is asked.
    pub(crate) fn announces_changes(&self) -> bool {
        let kinds = ["tools", "resources", "prompts"];
        !self.kept.is_mute() && kinds.iter().any(|kind| self.announces_changes_of(kind))
    }

    fn announces_changes_of(&self, kind: &str) -> bool {
        let capability = self.facts.capabilities.get(kind);
        capability.and_then(|capability| capability.get("listChanged")) == Some(&Value::Bool(true))
    }

    /// Probes the server within `limit`: with `ping`, or with `server/discover` in the era without it. If that is refused, or unanswered
    /// for half of the time, its tools are listed as well, and either result will do.
    pub(crate) async fn probe(&self, limit: std::time::Duration) -> Result<(), Fault> {
        let deadline = Deadline::within(limit);
        let asking = self.answers(
            match self.facts.era {
                Era::Legacy => "ping",
                Era::Modern => "server/discover",
            },
            deadline,
        );
        if !self.offers("tools") {
            return match asking.await {
                Err(fault) if fault.is_answer() => Ok(()),
                answer => answer,
            };
        }
        tokio::pin!(asking);
        let first = tokio::select! {
            biased;
            answer = &mut asking => Some(answer),
            () = tokio::time::sleep(limit / 2) => None,
        };
        match first {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) => self.answers("tools/list", deadline).await,
            None => {
                let listing = self.answers("tools/list", deadline);
                tokio::pin!(listing);
                let either = futures_util::future::select_ok([asking, listing]).await;
                either.map(|((), _)| ())
            }
        }
    }

    /// Whether the server answers a request without parameters with a result.
    async fn answers(&self, method: &'static str, deadline: Deadline) -> Result<(), Fault> {
        let request = Request::new(method, json_rpc::Params::default());
        let answer = self.connection.request(request, Patience::until(deadline)).await;
        answer.map(|_| ()).map_err(|fault| fault.hidden(self.masker()))
    }

    /// What stands between the server's words and everybody else.
    pub(crate) fn masker(&self) -> &ServerMasker {
        self.connection.pending().masker()
    }

    /// How long the server has been silent.
    pub(crate) fn quiet_for(&self) -> std::time::Duration {
        self.connection.pending().quiet_for()
    }

    /// Waits for the end of the session.
    pub(crate) async fn ended(&self) -> WireEnd {
        self.connection.pending().until_ended().await
    }

    /// Takes no more requests, and ends those under way for this reason. Those that were not sent can be made in the next session.
    pub(crate) fn leave(&self, reason: WireEnd) {
        self.connection.pending().ended(reason);
    }

    /// Ends the session and everything behind it.
    pub(crate) async fn close(&self) {
        self.connection.close().await;
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.connection.wire().pid()
    }

    /// Whether the server says that it has this.
    pub(crate) fn offers(&self, capability: &str) -> bool {
        let said = self.facts.capabilities.get(capability);
        match capability {
            // The oldest version has completions, and no word for them.
            "completions" if &*self.facts.version == "2024-11-05" => self.offers("prompts") || self.offers("resources"),
            _ => said.is_some_and(|value| !value.is_null()),
        }
    }

    fn header_rule(&self) -> HeaderRule {
        match self.facts.era {
            Era::Modern => HeaderRule::Enforced,
            Era::Legacy => HeaderRule::Ignored,
        }
    }
}
