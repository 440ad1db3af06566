//! The servers that one view owns, or that the views of one principal share.

use std::{
    any::Any,
    collections::BTreeMap,
    fmt,
    sync::{Arc, atomic::Ordering},
};

use super::{
    server_handle::Server,
    view_identity::{CurrentProvider, ServerKind, ShownServers, ViewIdentity, covers, kind},
    view_tag::ViewTag,
};
use pegboard_base::name::ServerName;
use pegboard_base::sync::{Mutex, RwLock};
use pegboard_client::session::{HostHandle, Root};
use pegboard_config::{PRINCIPAL, SESSION_ID};

/// The servers that one view owns, or that the views of one principal share. No other view uses them.
pub(super) struct ViewInstances {
    pub(super) tag: ViewTag,
    /// The roots of the view's servers, in place of those of their config.
    pub(super) roots: Option<Vec<Root>>,
    /// Answers the requests of the servers, in place of the board's host. For a principal, the host of its first view.
    pub(super) host: Option<HostHandle>,
    /// The in-process server of the tools that the program gave to this view.
    pub(super) brought: Option<Server>,
    owns: Owns,
    /// The servers that the view shows; all of them without it.
    shown: Option<ShownServers>,
    /// The variables of header templates.
    variables: BTreeMap<String, String>,
    /// The credentials of the instances. `None` for a view without a principal and without credentials.
    pub(super) provider: Option<CurrentProvider>,
    /// The instances, ordered by name.
    own: RwLock<Arc<[Server]>>,
    /// What the views of a principal keep together with its servers, and that may hold them.
    kept: Mutex<Keepsake>,
}

#[derive(Debug, Default)]
enum Keepsake {
    #[default]
    None,
    Some(Arc<dyn Any + Send + Sync>),
    /// The principal has ended.
    Ended,
}

/// Which servers of the board an owner has for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owns {
    /// A view: session-scoped servers.
    Sessions,
    /// A view with credentials and without a principal: also remote servers, and processes that get credentials.
    All,
    /// A principal: remote servers, and processes that get credentials.
    Connections,
    /// A view that only lists: no processes. Remote servers that each view of a principal has for itself are asked with its credentials.
    Listings,
}

impl fmt::Debug for ViewInstances {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ViewInstances")
            .field("tag", &self.tag)
            .field("owns", &self.owns)
            .field("own", &self.own)
            .finish_non_exhaustive()
    }
}

impl ViewInstances {
    /// The servers of a view.
    pub(super) fn for_view(
        tag: ViewTag,
        identity: &ViewIdentity,
        roots: Option<&[Root]>,
        brought: Option<Server>,
    ) -> Self {
        let is_own_principal = identity.principal.is_none() && identity.credentials.is_some();
        Self {
            roots: roots.map(<[Root]>::to_vec),
            brought,
            variables: identity.variables.clone(),
            shown: identity.shown.clone(),
            ..Self::new(
                tag,
                identity,
                match is_own_principal {
                    _ if identity.catalog_only => Owns::Listings,
                    true => Owns::All,
                    false => Owns::Sessions,
                },
            )
        }
    }

    /// The servers that the views of a principal share.
    pub(super) fn for_principal(tag: ViewTag, identity: &ViewIdentity) -> Self {
        Self::new(tag, identity, Owns::Connections)
    }

    /// Whether the owner cannot take over a spare, because the handshake declares something else for it.
    pub(super) fn needs_fresh(&self) -> bool {
        self.roots.is_some() || self.host.is_some()
    }

    fn new(tag: ViewTag, identity: &ViewIdentity, owns: Owns) -> Self {
        let provider = || CurrentProvider::new(identity.credentials.clone());
        Self {
            tag,
            roots: None,
            host: identity.host.clone(),
            brought: None,
            owns,
            shown: None,
            variables: BTreeMap::new(),
            provider: (!identity.is_anonymous()).then(provider),
            own: RwLock::default(),
            kept: Mutex::default(),
        }
    }

    /// Whether the owner has its own instance of a configured server. `is_covered` tells whether its process would get credentials.
    pub(super) fn owns(&self, server: &Server, is_covered: bool) -> bool {
        match kind(server) {
            ServerKind::InProcess => false,
            ServerKind::Session if self.owns == Owns::Listings => {
                self.is_private() && server.config().transport.endpoint().is_some()
            }
            ServerKind::Session | ServerKind::PerView => self.owns != Owns::Connections,
            ServerKind::Remote => matches!(self.owns, Owns::All | Owns::Connections),
            ServerKind::Process => matches!(self.owns, Owns::All | Owns::Connections) && is_covered,
        }
    }

    /// Whether the owner shows a server, so that it is started for it.
    pub(super) fn shows(&self, server: &ServerName) -> bool {
        self.shown.as_ref().is_none_or(|shown| shown(server.as_str()))
    }

    /// Whether the owner only lists what is known of the servers.
    pub(super) fn is_catalog_only(&self) -> bool {
        self.owns == Owns::Listings
    }

    /// Whether the instances may have credentials that the board's servers do not have.
    pub(super) fn is_private(&self) -> bool {
        self.provider.is_some()
    }

    /// The value of a variable in a header template.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        let set = || self.variables.get(name).cloned();
        match name {
            // Always that of the tag: the views of a principal share connections with it.
            PRINCIPAL => self.tag.principal.as_ref().map(ToString::to_string),
            SESSION_ID => set().or_else(|| self.tag.name.as_ref().map(ToString::to_string)),
            _ => set(),
        }
    }

    /// Whether the provider has credentials for the process of this server. Calls the program's code, so no lock may be held.
    pub(super) fn covers_process(&self, server: &Server) -> bool {
        let provider = self.provider.as_ref().and_then(CurrentProvider::get);
        kind(server) == ServerKind::Process
            && provider.is_some_and(|provider| covers(provider.as_ref(), server.name(), true))
    }

    /// The owner's instances.
    pub(super) fn own_instances(&self) -> Arc<[Server]> {
        self.own.read().clone()
    }

    pub(super) fn replace_own(&self, own: Vec<Server>) {
        *self.own.write() = sort(own);
        self.tag.revision.fetch_add(1, Ordering::Release);
    }

    pub(super) fn get(&self, name: &ServerName) -> Option<Server> {
        self.own_instances()
            .iter()
            .find(|server| server.name() == name)
            .cloned()
    }

    /// What the views of a principal keep together with its servers; created when it is needed first. `None` if the principal has ended.
    pub(super) fn keepsake<T: Any + Default + Send + Sync>(&self) -> Option<Arc<T>> {
        let mut kept = self.kept.lock();
        if matches!(*kept, Keepsake::None) {
            *kept = Keepsake::Some(Arc::<T>::default());
        }
        match &*kept {
            Keepsake::Some(kept) => kept.clone().downcast().ok(),
            Keepsake::None | Keepsake::Ended => None,
        }
    }

    /// Takes the servers of a principal that has ended, and drops what was kept with them.
    pub(super) fn end(&self) -> Vec<Server> {
        let servers = self.all();
        self.replace_own(Vec::new());
        let mut kept = self.kept.lock();
        let ended = std::mem::replace(&mut *kept, Keepsake::Ended);
        drop(kept);
        drop(ended);
        servers
    }

    /// All servers that end with the owner.
    pub(super) fn all(&self) -> Vec<Server> {
        self.brought.iter().chain(&*self.own_instances()).cloned().collect()
    }
}

/// The servers ordered by name.
pub(super) fn sort(mut servers: Vec<Server>) -> Arc<[Server]> {
    servers.sort_by(|a, b| a.name().cmp(b.name()));
    servers.into()
}
