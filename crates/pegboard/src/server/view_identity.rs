//! [`ViewIdentity`]: whom a view's servers are used for, and with which credentials.

use std::{collections::BTreeMap, fmt, future::Future, pin::Pin, sync::Arc};

use arc_swap::ArcSwapOption;

use super::{server_handle::Server, view_tag::ViewTag};
use pegboard_base::{caller::Principal, name::ServerName, sync::catch_now};
use pegboard_client::{
    credential::{
        CallerRights, Credential, CredentialError, CredentialRequest, CredentialSource, Credentials, CredentialsKey,
    },
    session::HostHandle,
};
use pegboard_config::{PRINCIPAL, Scope};

/// Decides by its name whether a view shows a server.
pub(crate) type ShownServers = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Whom a view's servers are used for, and with which credentials. Servers are not shared between different identities.
#[derive(Clone, Default)]
pub(crate) struct ViewIdentity {
    pub(crate) principal: Option<Principal>,
    /// Which of the principal's access tokens may be exchanged.
    pub(crate) rights: Option<CallerRights>,
    pub(crate) credentials: Option<Arc<dyn Credentials>>,
    /// Tells the credentials from those of other views.
    pub(crate) credentials_key: Option<CredentialsKey>,
    /// The variables of header templates that the view sets.
    pub(crate) variables: BTreeMap<String, String>,
    /// Answers what servers ask, in place of the board's host.
    pub(crate) host: Option<HostHandle>,
    /// Whether the view only lists what is known of the servers.
    pub(crate) catalog_only: bool,
    /// The servers that the view shows; all of them without it. The others are not started for it.
    pub(crate) shown: Option<ShownServers>,
}

impl ViewIdentity {
    /// Whether the view is not distinguished from others.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.principal.is_none() && self.credentials.is_none()
    }

    /// The stdio servers whose processes get credentials. Calls the program's code, so no lock may be held.
    pub(super) fn covered_processes(&self, servers: &[Server]) -> Vec<ServerName> {
        let Some(provider) = &self.credentials else {
            return Vec::new();
        };
        let processes = servers.iter().filter(|server| kind(server) == ServerKind::Process);
        let covered = processes.filter(|server| covers(provider.as_ref(), server.name(), true));
        covered.map(|server| server.name().clone()).collect()
    }
}

impl fmt::Debug for ViewIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewIdentity")
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}

/// Whether a provider covers a server. If it panics, it is asked for the server's credentials, and that server is not shared.
pub(super) fn covers(provider: &dyn Credentials, server: &ServerName, is_process: bool) -> bool {
    catch_now(|| provider.covers(server, is_process)).unwrap_or_else(|_| {
        tracing::warn!(%server, "the credential provider panicked; it is asked for the server's credentials");
        true
    })
}

/// How a server of the board is separated by identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerKind {
    /// Runs in this process, so it is shared.
    InProcess,
    /// Started for each view.
    Session,
    /// Shared, unless its process gets credentials.
    Process,
    /// One connection for each identity.
    Remote,
    /// One connection for each view, because its headers have variables of views, or it is told when a view ends.
    PerView,
}

pub(super) fn kind(server: &Server) -> ServerKind {
    let config = server.config();
    match (config.policy.scope, config.transport.endpoint()) {
        (Scope::Session, _) => ServerKind::Session,
        _ if !server.spec().target.is_configured() => ServerKind::InProcess,
        (_, Some(endpoint)) if endpoint.session_cleanup_url.is_some() => ServerKind::PerView,
        (_, Some(_)) if config.transport.has_variable(|name| name != PRINCIPAL) => ServerKind::PerView,
        (_, Some(_)) => ServerKind::Remote,
        (_, None) => ServerKind::Process,
    }
}

/// The provider of an identity. Views with equal principals and credentials replace it.
#[derive(Default)]
pub(super) struct CurrentProvider(ArcSwapOption<Arc<dyn Credentials>>);

impl CurrentProvider {
    pub(super) fn new(provider: Option<Arc<dyn Credentials>>) -> Self {
        Self(ArcSwapOption::new(provider.map(Arc::new)))
    }

    pub(super) fn get(&self) -> Option<Arc<dyn Credentials>> {
        self.0.load().as_deref().cloned()
    }

    /// Uses another provider from now on, for these servers too. Returns those before, or `None` if it is the current one.
    pub(super) fn replace(&self, provider: &Arc<dyn Credentials>, servers: &[Server]) -> Option<ReplacedProviders> {
        if self.get().is_some_and(|current| Arc::ptr_eq(&current, provider)) {
            return None;
        }
        let mut replaced = ReplacedProviders::default();
        replaced.0.extend(self.0.swap(Some(Arc::new(provider.clone()))));
        for server in servers {
            if let Some(source) = &server.spec().credentials {
                let covered = CoveredOnly::new(Some(provider.clone()), server);
                replaced.0.push(source.set_provider(Arc::new(covered)));
            }
        }
        Some(replaced)
    }

    /// The source of the credentials for one server.
    pub(super) fn source(&self, server: &Server, owner: &ViewTag) -> Arc<CredentialSource> {
        let provider = CoveredOnly::new(self.get(), server);
        let (name, principal) = (server.name().clone(), owner.principal.clone());
        CredentialSource::for_caller(name, principal, owner.rights, Arc::new(provider))
    }
}

/// Providers that are used no longer. Dropping them runs the program's code, so no lock may be held.
#[derive(Default)]
#[must_use]
pub(super) struct ReplacedProviders(Vec<Arc<Arc<dyn Credentials>>>);

impl fmt::Debug for CurrentProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CurrentProvider")
    }
}

/// Asks the view's provider for servers that it covers. Others keep the credentials of the config.
struct CoveredOnly {
    provider: Option<Arc<dyn Credentials>>,
    /// The provider that the config names.
    configured: Option<Arc<dyn Credentials>>,
    is_process: bool,
}

impl CoveredOnly {
    fn new(provider: Option<Arc<dyn Credentials>>, server: &Server) -> Self {
        Self {
            provider,
            configured: server.spec().configured_credentials.clone(),
            is_process: server.config().transport.endpoint().is_none(),
        }
    }

    fn provider_of(&self, server: &ServerName) -> Option<&Arc<dyn Credentials>> {
        let provider = self.provider.as_ref();
        provider
            .filter(|provider| covers(provider.as_ref(), server, self.is_process))
            .or(self.configured.as_ref())
    }
}

impl Credentials for CoveredOnly {
    fn covers(&self, server: &ServerName, is_process: bool) -> bool {
        let provider = self.provider.as_ref();
        provider.is_some_and(|provider| covers(provider.as_ref(), server, is_process))
    }

    fn credential<'a>(
        &'a self,
        request: CredentialRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<Credential, CredentialError>> + Send + 'a>> {
        match self.provider_of(request.server) {
            Some(provider) => provider.credential(request),
            None => Box::pin(std::future::ready(Ok(Credential::none()))),
        }
    }

    fn retries_on_forbidden(&self, server: &ServerName) -> bool {
        self.provider_of(server)
            .is_some_and(|provider| provider.retries_on_forbidden(server))
    }

    fn wait_for_renewal<'a>(
        &'a self,
        server: &'a ServerName,
        principal: Option<&'a Principal>,
    ) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        match self.provider_of(server) {
            Some(provider) => provider.wait_for_renewal(server, principal),
            None => Box::pin(std::future::pending()),
        }
    }
}
