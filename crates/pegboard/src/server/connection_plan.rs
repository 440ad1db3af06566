//! The settings that a connection is made with.

use std::{sync::Arc, time::Duration};

use pegboard_client::{
    credential::CredentialSource,
    session::{ConfiguredTools, DesiredState, Spec},
    transport::Target,
};
use pegboard_config::{Capabilities, EraChoice, Health, Limits, Probe, RemoteKind, Restart, ServerConfig, Transport};
use pegboard_mask::Masking;

/// The time limit of the handshake for questions: the server has just answered in the other era.
const QUESTION_HANDSHAKE: Duration = Duration::from_secs(10);

/// The settings that a connection is made with.
#[derive(Debug, Clone)]
pub(super) struct ConnectionPlan {
    pub(super) spec: Spec,
    pub(super) restart: Restart,
    pub(super) health: Health,
    /// How the server's messages other than results are masked.
    pub(super) masking: Masking,
    pub(super) capabilities: Capabilities,
    /// Tools of the config that the server does not list.
    pub(super) described: Arc<ConfiguredTools>,
}

impl ConnectionPlan {
    pub(super) fn new(spec: Spec, config: &ServerConfig) -> Self {
        Self {
            spec: Spec {
                era: config.era.clone(),
                limits: config.limits,
                roots: config.roots.clone(),
                desired_state: DesiredState::new(&config.roots),
                // A masker for the connection alone: the server's masker follows every change of its settings, and other servers may share
                // the connection.
                masker: spec.masker.with(&config.policy.masking),
                ..spec
            },
            masking: config.policy.masking.clone(),
            restart: config.policy.restart.clone(),
            health: config.policy.health,
            capabilities: config.policy.capabilities,
            described: Arc::new(config.tool_schemas.clone()),
        }
    }

    /// The plan of a further connection, in the older era, in which servers send questions during calls. It is made and made again only when a
    /// call needs it. `None` if the config names the era, or if the server is not reached over streamable HTTP.
    pub(super) fn for_questions(&self) -> Option<Self> {
        let Target::Configured(transport) = &self.spec.target else {
            return None;
        };
        let Transport::Remote {
            kind: RemoteKind::Auto | RemoteKind::Http,
            endpoint,
        } = &**transport
        else {
            return None;
        };
        if self.spec.era.is_firm() {
            return None;
        }
        let limits = self.spec.limits;
        Some(Self {
            spec: Spec {
                target: Target::Configured(Box::new(Transport::http(endpoint.clone()))),
                era: EraChoice::Legacy,
                limits: Limits {
                    connect_timeout: limits.connect_timeout.min(QUESTION_HANDSHAKE),
                    ..limits
                },
                is_for_questions: true,
                ..self.spec.clone()
            },
            restart: Restart {
                enabled: false,
                start_wait: Duration::ZERO,
                ..self.restart.clone()
            },
            health: Health {
                probe: match self.health.probe {
                    Probe::ListTools => Probe::Auto,
                    probe => probe,
                },
                restart: false,
                ..self.health
            },
            ..self.clone()
        })
    }

    /// Whether one connection can serve both plans. Settings that are read per call do not count.
    pub(super) fn is_compatible_with(&self, other: &Self) -> bool {
        let (ours, theirs) = (&self.spec, &other.spec);
        let limits = Limits {
            call_timeout: theirs.limits.call_timeout,
            call_total_timeout: theirs.limits.call_total_timeout,
            max_in_flight: theirs.limits.max_in_flight,
            ..ours.limits
        };
        let same_target = match (&ours.target, &theirs.target) {
            (Target::Configured(ours), Target::Configured(theirs)) => ours == theirs,
            (Target::InProcess(ours), Target::InProcess(theirs)) | (Target::StandIn(ours), Target::StandIn(theirs)) => {
                Arc::ptr_eq(ours, theirs)
            }
            (Target::Configured(_) | Target::InProcess(_) | Target::StandIn(_), _) => false,
        };
        same_target
            && ours.owner == theirs.owner
            && is_same(ours.credentials.as_ref(), theirs.credentials.as_ref())
            && ours.era == theirs.era
            && ours.is_for_questions == theirs.is_for_questions
            && ours.roots == theirs.roots
            && limits == theirs.limits
            && self.restart == other.restart
            && self.health == other.health
            && self.masking == other.masking
            && self.capabilities == other.capabilities
            && self.described == other.described
    }
}

/// Whether both plans ask the same source for credentials. Sources of different servers or principals may return different ones.
fn is_same(ours: Option<&Arc<CredentialSource>>, theirs: Option<&Arc<CredentialSource>>) -> bool {
    match (ours, theirs) {
        (None, None) => true,
        (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs),
        _ => false,
    }
}
