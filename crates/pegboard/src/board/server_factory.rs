//! Creates the servers of a board.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use tokio::sync::Semaphore;

#[cfg(feature = "oauth")]
use super::sign_in_provider::SignIns;
use crate::metrics::BoardLoad;
use crate::server::{BoardShared, Outage, Server, identity};
use pegboard_base::{name::ServerName, sync::catch_now};
use pegboard_client::{
    credential::{CallerTokens, CredentialSource, Credentials},
    session::{ClientInfo, DesiredState, EraMemory, Host, Spec},
    transport::{ByteBudget, StandIns, Target},
};
use pegboard_config::{BoardLimits, Misconfigured, ServerConfig, Transport};
use pegboard_mask::{KnownSecrets, ServerMasker};

/// Creates the servers of a board from their configs.
pub(super) struct ServerFactory {
    pub(super) shared: Arc<BoardShared>,
    pub(super) host: Arc<dyn Host>,
    pub(super) client: Arc<ClientInfo>,
    pub(super) memory: Arc<EraMemory>,
    /// Dialers that configured servers are connected through, instead of their transports.
    pub(super) stand_ins: Option<Box<StandIns>>,
    /// Supplies the credentials of connections without a principal.
    pub(super) credentials: Option<Arc<dyn Credentials>>,
    /// Obtains the tokens of servers that need a sign-in.
    #[cfg(feature = "oauth")]
    pub(super) sign_ins: Arc<SignIns>,
    /// The tokens of callers, for servers that exchange them.
    pub(super) caller_tokens: CallerTokens,
    /// The secrets of all servers, masked in the messages of each.
    pub(super) secrets: KnownSecrets,
    /// The most servers of the board.
    pub(super) max_servers: AtomicUsize,
    /// The most processes of the board.
    pub(super) processes: AtomicUsize,
    /// Bounds the bytes that the messages of all servers take together.
    pub(super) budget: ByteBudget,
    /// Whether pins outlive the board.
    pub(super) keeps_pins: bool,
}

impl ServerFactory {
    /// Creates a server. It is refused if the board has no room for it beside `others` servers.
    pub(super) fn make(&self, name: ServerName, target: Target, config: ServerConfig, others: usize) -> Server {
        let spec = self.spec(name, target, &config);
        let max_servers = self.max_servers.load(Ordering::Relaxed);
        if others >= max_servers && config.enabled {
            return Server::refuse(config, spec, &self.shared, Outage::too_many(max_servers));
        }
        match self.missing_pins(&spec, &config) {
            Some(outage) if config.enabled => Server::refuse(config, spec, &self.shared, outage),
            _ => Server::new(config, spec, &self.shared),
        }
    }

    /// How much of the limits is in use, with these servers.
    pub(super) fn load(&self, servers: &[Server]) -> BoardLoad {
        let limit = self.processes.load(Ordering::Relaxed);
        let free = self.shared.link_context.processes.available_permits();
        let mut load = BoardLoad {
            buffered_limit: self.budget.limit() as u64,
            processes: limit.saturating_sub(free) as u64,
            processes_limit: limit as u64,
            ..BoardLoad::default()
        };
        for server in servers {
            let name = server.name().clone();
            load.servers.entry(name).or_default().add(&server.load());
        }
        load
    }

    /// Why a server whose config holds tools must not start: its pins cannot be kept, or cannot be read.
    fn missing_pins(&self, spec: &Spec, config: &ServerConfig) -> Option<Outage> {
        if !config.policy.pins.holds() {
            return None;
        }
        if !self.keeps_pins {
            return Some(Outage::without_pins(
                "its config holds tools that change, and this program keeps no pins",
                Some("set a folder with `Builder::pins`, or set `pins = \"warn\"` for the server"),
            ));
        }
        let identity = identity(&spec.target, &spec.name, config);
        let checked = self.shared.pins.check(&identity);
        checked
            .err()
            .map(|error| Outage::without_pins(&error.to_string(), None))
    }

    /// Applies the limits of a new config. The limit of processes only grows, because running processes keep their permits.
    pub(super) fn take_limits(&self, limits: &BoardLimits) {
        self.max_servers.store(limits.max_servers, Ordering::Relaxed);
        let wanted = limits.max_processes.min(Semaphore::MAX_PERMITS);
        let before = self.processes.fetch_max(wanted, Ordering::Relaxed);
        self.shared
            .link_context
            .processes
            .add_permits(wanted.saturating_sub(before));
        self.budget.raise(limits.max_buffered);
    }

    pub(super) fn make_configured(&self, name: ServerName, config: ServerConfig, others: usize) -> Server {
        let target = match &self.stand_ins {
            Some(stand_ins) => Target::StandIn(stand_ins(&name, &config)),
            // Without a view, headers with variables of views are omitted.
            None => Target::Configured(Box::new(
                config
                    .transport
                    .fill_variables(&|_| None)
                    .unwrap_or(config.transport.clone()),
            )),
        };
        self.make(name, target, config, others)
    }

    /// Creates a placeholder for a server whose config is invalid, so that it has a status row.
    pub(super) fn make_misconfigured(&self, name: ServerName, misconfigured: &Misconfigured) -> Server {
        let config = misconfigured.placeholder();
        let spec = self.spec(name, Target::Configured(Box::new(config.transport.clone())), &config);
        Server::refuse(config, spec, &self.shared, Outage::misconfigured(misconfigured))
    }

    /// The source of credentials for a server: the board's provider if it covers the server, or else what the config names.
    fn credentials(
        &self,
        name: &ServerName,
        target: &Target,
        configured: Option<&Arc<dyn Credentials>>,
    ) -> Option<Arc<CredentialSource>> {
        let provider = self.find_covering_provider(name, target).or(configured)?;
        Some(CredentialSource::new(name.clone(), None, provider.clone()))
    }

    /// The provider of the credentials that the config of a server names.
    fn configured_credentials(
        &self,
        name: &ServerName,
        target: &Target,
        masker: &ServerMasker,
    ) -> Option<Arc<dyn Credentials>> {
        let Target::Configured(transport) = target else {
            return None;
        };
        let configured = pegboard_client::transport::configured_credentials(transport, masker);
        #[cfg(feature = "oauth")]
        return configured.or_else(|| self.sign_ins.provider(name, transport));
        #[cfg(not(feature = "oauth"))]
        {
            let _ = name;
            configured
        }
    }

    /// The board's provider, if it covers a server.
    fn find_covering_provider(&self, name: &ServerName, target: &Target) -> Option<&Arc<dyn Credentials>> {
        let Target::Configured(transport) = target else {
            return None;
        };
        let provider = self.credentials.as_ref()?;
        let is_process = matches!(**transport, Transport::Stdio(_));
        let covers = catch_now(|| provider.covers(name, is_process)).unwrap_or_else(|_| {
            tracing::warn!(server = %name, "the credential provider panicked; it is asked for the server's credentials");
            true
        });
        covers.then_some(provider)
    }

    fn spec(&self, name: ServerName, target: Target, config: &ServerConfig) -> Spec {
        let masker = ServerMasker::new(&config.policy.masking, self.secrets.clone());
        masker.set_server(&name);
        masker.own_secrets(config.secrets());
        let configured_credentials = self.configured_credentials(&name, &target, &masker);
        Spec {
            credentials: self.credentials(&name, &target, configured_credentials.as_ref()),
            configured_credentials,
            desired_state: DesiredState::new(&config.roots),
            roots: config.roots.clone(),
            name,
            target,
            era: config.era.clone(),
            limits: config.limits,
            owner: None,
            is_for_questions: false,
            budget: self.budget.clone(),
            host: self.host.clone(),
            client: self.client.clone(),
            memory: self.memory.clone(),
            masker,
        }
    }
}

impl std::fmt::Debug for ServerFactory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerFactory")
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}
