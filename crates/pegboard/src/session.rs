//! One initialised session with one server: requests with a limit, listings to their last page, and an end.

mod answer;
mod asks;
mod desk;
#[cfg(test)]
#[cfg(not(feature = "explore"))]
mod drop_tests;
mod events;
mod exchange;
#[cfg(test)]
#[cfg(feature = "explore")]
mod explore;
mod fault;
mod frame;
mod handshake;
mod host;
mod keep;
mod level;
mod line;
mod listing;
mod memory;
mod news;
mod progress;
mod reading;
mod rounds;
mod standing;
#[cfg(feature = "bench")]
pub(crate) mod steps;
mod task;
mod tidings;

pub use events::{LogMessage, ServerEvent, ServerEvents};
pub use host::{Choice, ElicitAnswer, Elicitation, Field, FieldKind, Form, Host, NoHost, SamplingLimits, TextFormat};
pub use progress::Progress;
pub use reading::CompletionOf;
pub use standing::{LogLevel, Root, Subscription, UnknownLogLevel};
pub use task::{TaskState, TaskStatus};

pub(crate) use exchange::{Begun, Call, CallResult};
pub(crate) use handshake::{ClientInfo, ConnectError, Spec, connect};
pub(crate) use line::{Fault, FaultKind, Patience, Request};
pub(crate) use memory::EraMemory;
pub(crate) use progress::{ProgressSink, Steps};
pub(crate) use standing::Standing;
pub(crate) use task::Task;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Map, Value};

use crate::{
    catalog::{Catalog, HeaderRule, store::Freshness},
    config::{Capabilities, Limits},
    deadline::Deadline,
    mask::Veil,
    name::ServerName,
    status::{Era, ServerInfo},
    transport::{Inbox as _, WireEnd},
};
use line::Line;
use listing::Gathered;

/// An initialised session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) facts: Facts,
    line: Line,
    server: ServerName,
    limits: Limits,
    host: Arc<host::Desk>,
    /// Whether the server was told that there are roots.
    has_offered_roots: bool,
    /// What of the wishes is fulfilled in this session.
    kept: keep::Kept,
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
    fn hidden(mut self, veil: &Veil) -> Self {
        veil.hide_in(&mut self.instructions);
        if let Some(info) = &mut self.info {
            veil.hide(&mut info.name);
            veil.hide(&mut info.version);
        }
        self
    }
}

/// Tools that the config describes, by name.
pub(crate) type Described = BTreeMap<String, Value>;

/// What is asked of a server when it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Survey {
    /// Its tools.
    Tools,
    /// Its tools, and of the rest what its config asks for.
    More(Capabilities),
}

impl Survey {
    /// The part of it that a server's config asks for.
    pub(crate) fn within(self, wanted: Capabilities) -> Self {
        match self {
            Self::Tools => Self::Tools,
            Self::More(all) => Self::More(Capabilities {
                resources: all.resources && wanted.resources,
                prompts: all.prompts && wanted.prompts,
            }),
        }
    }
}

impl Session {
    /// Lists what the server offers, as far as it says that it offers such things at all, and how long that may be kept.
    /// Tools that are described and not listed are added; with such tools the listing of tools may fail.
    pub(crate) async fn catalog(&self, survey: Survey, described: &Described) -> Result<(Catalog, Freshness), Fault> {
        let listed = self.listed(survey, described).await;
        listed.map_err(|fault| fault.hidden(self.veil()))
    }

    async fn listed(&self, survey: Survey, described: &Described) -> Result<(Catalog, Freshness), Fault> {
        let mut deadline = Deadline::within(self.limits.list);
        let mut gathered = Gathered::default();
        if self.offers("tools") {
            match self.list("tools/list", "tools", deadline, &mut gathered).await {
                Ok(tools) => gathered.catalog.read_tools(&self.server, tools, self.header_rule()),
                Err(fault) if !described.is_empty() && fault.leaves_session() => {
                    let warning = format!(
                        "its tools could not be listed, only those that the config describes are known: {fault}"
                    );
                    gathered.catalog.warnings.push(warning);
                    deadline = Deadline::within(self.limits.list);
                }
                Err(fault) => return Err(fault),
            }
        }
        gathered.catalog.describe(&self.server, described, self.header_rule());
        if let Survey::More(wanted) = survey {
            self.gather_the_rest(wanted, deadline, &mut gathered).await?;
        }
        gathered.catalog.mask(&self.veil().masker());
        Ok((gathered.catalog, gathered.freshness.unwrap_or_default()))
    }

    async fn gather_the_rest(
        &self,
        wanted: Capabilities,
        deadline: Deadline,
        gathered: &mut Gathered,
    ) -> Result<(), Fault> {
        if wanted.resources && self.offers("resources") {
            let items = self.list("resources/list", "resources", deadline, gathered).await?;
            gathered.catalog.resources = gathered.catalog.read_resources(&self.server, items, "uri");
            let templates = self.list("resources/templates/list", "resourceTemplates", deadline, gathered);
            match templates.await {
                Ok(items) => {
                    gathered.catalog.templates = gathered.catalog.read_resources(&self.server, items, "uriTemplate");
                }
                // Templates are part of the resources capability, but not every server has them.
                Err(fault) if fault.is_unknown_method() => {}
                Err(fault) => return Err(fault),
            }
        }
        if wanted.prompts && self.offers("prompts") {
            let items = self.list("prompts/list", "prompts", deadline, gathered).await?;
            gathered.catalog.read_prompts(&self.server, items);
        }
        Ok(())
    }

    /// Waits until the server says that its catalogue has changed.
    pub(crate) async fn changed(&self) {
        self.line.desk().changed.notified().await;
    }

    /// Acts as if the server had said so.
    pub(crate) fn suspect_change(&self) {
        self.line.desk().changed.notify_one();
    }

    /// Whether the server says that it tells of changes.
    pub(crate) fn announces_changes(&self) -> bool {
        ["tools", "resources", "prompts"]
            .iter()
            .any(|kind| self.announces_changes_of(kind))
    }

    fn announces_changes_of(&self, kind: &str) -> bool {
        let capability = self.facts.capabilities.get(kind);
        capability.and_then(|capability| capability.get("listChanged")) == Some(&Value::Bool(true))
    }

    /// Whether the server answers at all: to a listing of its tools, or in whatever words its era has for that.
    pub(crate) async fn is_alive(&self, lists: bool, limit: std::time::Duration) -> bool {
        let method = match self.facts.era {
            _ if lists && self.offers("tools") => "tools/list",
            Era::Legacy => "ping",
            Era::Modern => "server/discover",
        };
        let patience = Patience::until(Deadline::within(limit));
        match self
            .line
            .request(Request::new(method, frame::Params::default()), patience)
            .await
        {
            Ok(_) => true,
            Err(fault) => matches!(fault.kind, FaultKind::Error(_) | FaultKind::Unreadable(_)),
        }
    }

    /// What stands between the server's words and everybody else.
    pub(crate) fn veil(&self) -> &Veil {
        self.line.desk().veil()
    }

    /// How long the server has been silent.
    pub(crate) fn quiet_for(&self) -> std::time::Duration {
        self.line.desk().quiet_for()
    }

    /// Waits for the end of the session.
    pub(crate) async fn ended(&self) -> WireEnd {
        self.line.desk().until_ended().await
    }

    /// Takes no more requests, and ends those under way for this reason. Those that were not sent can be made in the next session.
    pub(crate) fn leave(&self, reason: WireEnd) {
        self.line.desk().ended(reason);
    }

    /// Ends the session and everything behind it.
    pub(crate) async fn close(&self) {
        self.line.close().await;
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.line.wire().pid()
    }

    /// Whether the server says that it has this.
    pub(crate) fn offers(&self, capability: &str) -> bool {
        self.facts
            .capabilities
            .get(capability)
            .is_some_and(|value| !value.is_null())
    }

    fn header_rule(&self) -> HeaderRule {
        match self.facts.era {
            Era::Modern => HeaderRule::Enforced,
            Era::Legacy => HeaderRule::Ignored,
        }
    }
}
