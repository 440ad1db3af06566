//! The servers of one board, in order of their names. Views hold the shelf, so they see what is added and removed while they live.

use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use super::{Server, Shared};
use crate::{event::Bell, metrics::Tallies, name::ServerName};

/// The servers of one board.
#[derive(Debug)]
pub(crate) struct Shelf {
    servers: RwLock<Arc<[Server]>>,
    /// Raised whenever a server is added, removed or changed, or what it offers may have changed.
    revision: Arc<AtomicU64>,
    /// Set once, when the board takes no more calls.
    is_closing: AtomicBool,
    /// Where events are rung.
    bell: Bell,
    /// The counters of the board.
    tallies: Arc<Tallies>,
}

impl Shelf {
    pub(crate) fn new(servers: Vec<Server>, shared: &Shared) -> Self {
        Self {
            servers: RwLock::new(sorted(servers)),
            revision: shared.revision.clone(),
            is_closing: AtomicBool::new(false),
            bell: shared.bell.clone(),
            tallies: shared.tallies.clone(),
        }
    }

    /// Takes no more calls from now on.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    pub(crate) fn tallies(&self) -> &Arc<Tallies> {
        &self.tallies
    }

    /// All servers at this moment.
    pub(crate) fn all(&self) -> Arc<[Server]> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn get(&self, name: &ServerName) -> Option<Server> {
        self.all().iter().find(|server| server.name() == name).cloned()
    }

    /// Puts a server on the shelf, in the place of the one that has its name.
    pub(crate) fn put(&self, server: Server) -> Option<Server> {
        self.exchange(&server.name().clone(), Some(server))
    }

    /// Takes a server off the shelf.
    pub(crate) fn take(&self, name: &ServerName) -> Option<Server> {
        self.exchange(name, None)
    }

    fn exchange(&self, name: &ServerName, new: Option<Server>) -> Option<Server> {
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        let (mut old, mut kept): (Vec<_>, Vec<_>) = servers.iter().cloned().partition(|server| server.name() == name);
        kept.extend(new);
        *servers = sorted(kept);
        drop(servers);
        self.touch();
        old.pop()
    }

    /// Something has changed; whoever has derived anything from the shelf must do so again.
    pub(crate) fn touch(&self) {
        self.revision.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }
}

fn sorted(mut servers: Vec<Server>) -> Arc<[Server]> {
    servers.sort_by(|a, b| a.name().cmp(b.name()));
    servers.into()
}
