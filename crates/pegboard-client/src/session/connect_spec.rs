//! [`Spec`]: how to connect to a server.

use std::{fmt, sync::Arc};

use super::{desired_state::DesiredState, era_memory::EraMemory, host::Host};
use crate::{
    credential::{CredentialSource, Credentials},
    transport::{ByteBudget, Target},
};
use pegboard_base::name::ServerName;
use pegboard_config::{EraChoice, Limits, Transport};
use pegboard_mask::ServerMasker;

/// Everything that is needed to connect to a server.
#[derive(Clone)]
pub struct Spec {
    /// The name of the server in the config.
    pub name: ServerName,
    /// The transport, or the server in this process.
    pub target: Target,
    /// The protocol era that the config chooses, or detection.
    pub era: EraChoice,
    /// The timeouts and size limits of the server.
    pub limits: Limits,
    /// The roots from the server's config.
    pub roots: Vec<String>,
    /// The subscriptions, log level and roots that every session is reconciled with.
    pub desired_state: Arc<DesiredState>,
    /// Answers the server's requests that no view's host answers.
    pub host: Arc<dyn Host>,
    /// The `clientInfo` of the handshake.
    pub client: Arc<ClientInfo>,
    /// Remembers the detected era for the next start.
    pub memory: Arc<EraMemory>,
    /// Masks secrets in the server's messages.
    pub masker: ServerMasker,
    /// Supplies credentials at run time, in addition to those of the config.
    pub credentials: Option<Arc<CredentialSource>>,
    /// The provider of the credentials that the config names, for the connections of every view whose program supplies none.
    pub configured_credentials: Option<Arc<dyn Credentials>>,
    /// The number of the view or principal that alone uses the connection. Others neither share it nor learn its catalogue.
    pub owner: Option<u64>,
    /// Whether the session is for calls only: another session of the server lists it and subscribes to its resources. Such a session is needed for
    /// the server's questions, so it fails to open if it could not carry the answers.
    pub is_for_questions: bool,
    /// The byte budget of the board's connections.
    pub budget: ByteBudget,
}

/// The name and version of the embedding program, as servers see them.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ClientInfo {
    /// The name of the program.
    pub name: String,
    /// The version of the program.
    pub version: String,
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
    /// Whether only one view or principal with credentials of its own uses the server's connections.
    pub fn is_private(&self) -> bool {
        self.owner.is_some()
    }

    /// Asks for a credential before the next request: there is another one.
    #[cfg(feature = "oauth")]
    pub fn outdate_credential(&self) {
        if let Some(source) = &self.credentials {
            source.outdate();
        }
    }

    /// Returns `true` if the server is a child process.
    pub fn is_process(&self) -> bool {
        matches!(&self.target, Target::Configured(transport) if matches!(**transport, Transport::Stdio(_)))
    }

    /// Returns `true` if the server is started by a package runner that may download it first.
    pub fn fetches_first(&self) -> bool {
        match &self.target {
            Target::Configured(transport) => match &**transport {
                Transport::Stdio(command) => command.fetches_first(),
                Transport::Remote { .. } => false,
            },
            Target::InProcess(_) | Target::StandIn(_) => false,
        }
    }
}
