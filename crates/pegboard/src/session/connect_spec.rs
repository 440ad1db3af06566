//! [`Spec`]: how to connect to a server.

use std::{fmt, sync::Arc};

use super::{desired_state::DesiredState, era_memory::EraMemory, host::Host};
use crate::{
    config::{EraChoice, Limits, Transport},
    credential::{CredentialSource, Credentials},
    mask::ServerMasker,
    name::ServerName,
    transport::{ByteBudget, Target},
};

/// Everything that is needed to connect to a server.
#[derive(Clone)]
pub(crate) struct Spec {
    pub(crate) name: ServerName,
    pub(crate) target: Target,
    pub(crate) era: EraChoice,
    pub(crate) limits: Limits,
    /// The roots from the server's config.
    pub(crate) roots: Vec<String>,
    /// The subscriptions, log level and roots that every session is reconciled with.
    pub(crate) desired_state: Arc<DesiredState>,
    pub(crate) host: Arc<dyn Host>,
    /// The `clientInfo` of the handshake.
    pub(crate) client: Arc<ClientInfo>,
    pub(crate) memory: Arc<EraMemory>,
    /// Masks secrets in the server's messages.
    pub(crate) masker: ServerMasker,
    /// Supplies credentials at run time, in addition to those of the config.
    pub(crate) credentials: Option<Arc<CredentialSource>>,
    /// The provider of the credentials that the config names, for the connections of every view whose program supplies none.
    pub(crate) configured_credentials: Option<Arc<dyn Credentials>>,
    /// The number of the view or principal that alone uses the connection. Others neither share it nor learn its catalogue.
    pub(crate) owner: Option<u64>,
    /// Whether the session is for calls only: another session of the server lists it and subscribes to its resources. Such a session is needed for
    /// the server's questions, so it fails to open if it could not carry the answers.
    pub(crate) is_for_questions: bool,
    /// The byte budget of the board's connections.
    pub(crate) budget: ByteBudget,
}

/// The name and version of the embedding program, as servers see them.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct ClientInfo {
    pub(crate) name: String,
    pub(crate) version: String,
}

impl Default for ClientInfo {
    fn default() -> Self {
        Self {
            name: "pegboard".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spec")
            .field("name", &self.name)
            .field("target", &self.target)
            .finish_non_exhaustive()
    }
}

impl Spec {
    /// Returns `true` if the server is a child process.
    pub(crate) fn is_process(&self) -> bool {
        matches!(&self.target, Target::Configured(transport) if matches!(**transport, Transport::Stdio(_)))
    }

    /// Returns `true` if the server is started by a package runner that may download it first.
    pub(crate) fn fetches_first(&self) -> bool {
        match &self.target {
            Target::Configured(transport) => match &**transport {
                Transport::Stdio(command) => command.fetches_first(),
                _ => false,
            },
            Target::InProcess(_) | Target::StandIn(_) => false,
        }
    }
}
