//! The servers that one view owns.

use std::sync::{Arc, PoisonError, RwLock, atomic::Ordering};

use super::{server_handle::Server, view_tag::ViewTag};
use crate::{
    name::ServerName,
    session::{HostHandle, Root},
};

/// The servers that one view owns. No other view uses them, and they end with the view.
#[derive(Debug)]
pub(super) struct ViewInstances {
    pub(super) tag: ViewTag,
    /// The roots of the view's servers, in place of those of their config.
    pub(super) roots: Option<Vec<Root>>,
    /// Answers the requests of the view's servers, in place of the board's host.
    pub(super) host: Option<HostHandle>,
    /// The in-process server of the tools that the program gave to this view.
    pub(super) brought: Option<Server>,
    /// The view's instances of session-scoped servers, ordered by name.
    own: RwLock<Arc<[Server]>>,
}

impl ViewInstances {
    pub(super) fn new(
        tag: ViewTag,
        roots: Option<&[Root]>,
        host: Option<&HostHandle>,
        brought: Option<Server>,
    ) -> Self {
        Self {
            tag,
            roots: roots.map(<[Root]>::to_vec),
            host: host.cloned(),
            brought,
            own: RwLock::default(),
        }
    }

    /// Returns `true` if the view cannot take over a spare, because the handshake declares something else for this view.
    pub(super) fn needs_fresh(&self) -> bool {
        self.roots.is_some() || self.host.is_some()
    }

    /// The view's instances of session-scoped servers.
    pub(super) fn own(&self) -> Arc<[Server]> {
        self.own.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn replace_own(&self, own: Vec<Server>) {
        *self.own.write().unwrap_or_else(PoisonError::into_inner) = sorted(own);
        self.tag.revision.fetch_add(1, Ordering::Release);
    }

    pub(super) fn get(&self, name: &ServerName) -> Option<Server> {
        self.own().iter().find(|server| server.name() == name).cloned()
    }

    /// All servers that end with the view.
    pub(super) fn all(&self) -> Vec<Server> {
        self.brought.iter().chain(&*self.own()).cloned().collect()
    }
}

/// The servers ordered by name.
pub(super) fn sorted(mut servers: Vec<Server>) -> Arc<[Server]> {
    servers.sort_by(|a, b| a.name().cmp(b.name()));
    servers.into()
}
