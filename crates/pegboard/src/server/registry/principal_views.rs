//! Opens, updates and ends the principals of a board.

use std::sync::{Arc, Weak};

use tokio::{runtime::Handle, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    board_registry::Registry,
    principals::{EndedPrincipal, Left, MAX_KEPT, PrincipalKey, Principals},
};
use crate::server::{
    server_handle::Server,
    view_identity::{ReplacedProviders, ViewIdentity},
    view_instances::ViewInstances,
};
use pegboard_base::name::ServerName;

impl Registry {
    /// Creates the servers of a new principal. The caller holds the state lock.
    pub(super) fn principal_instances(&self, identity: &ViewIdentity, covered: &[ServerName]) -> Arc<ViewInstances> {
        let instances = Arc::new(ViewInstances::for_principal(self.owner_tag(None, identity), identity));
        instances.replace_own(self.own_instances(&instances, covered));
        instances
    }

    /// Gives a known principal the provider of its newest view, whose credentials allow the same. The caller holds the state lock, and drops the result after it.
    pub(super) fn update_principal(
        &self,
        known: &ViewInstances,
        identity: &ViewIdentity,
        covered: &[ServerName],
    ) -> Option<ReplacedProviders> {
        let (Some(current), Some(newest)) = (&known.provider, &identity.credentials) else {
            return None;
        };
        let own = known.own_instances();
        let replaced = current.replace(newest, &own)?;
        let is_new = |server: &&Server| {
            known.owns(server, covered.contains(server.name())) && !own.iter().any(|own| own.name() == server.name())
        };
        let configured = self.configured_servers();
        let new: Vec<Server> = configured
            .iter()
            .filter(is_new)
            .map(|server| self.instance_for(known, server))
            .collect();
        if !new.is_empty() {
            known.replace_own(own.iter().cloned().chain(new).collect());
        }
        Some(replaced)
    }

    /// Counts the end of a principal's view. Returns the principals that are kept no longer.
    pub(super) fn leave_principal(
        self: &Arc<Self>,
        principals: &mut Principals,
        key: &PrincipalKey,
    ) -> Vec<EndedPrincipal> {
        match principals.leave(key, Instant::now()) {
            Left::Views => return Vec::new(),
            Left::Ended(ended) => return ended.into_iter().collect(),
            Left::Idle => {}
        }
        // Without a runtime no timer can end them.
        let most = match Handle::try_current() {
            Ok(runtime) if !self.is_closing() => {
                let is_running = principals.reaper.as_ref().is_some_and(|reaper| !reaper.is_finished());
                if !is_running {
                    let reaping = reap(Arc::downgrade(self), self.closing.clone());
                    principals.reaper = Some(runtime.spawn(reaping).abort_handle());
                }
                MAX_KEPT
            }
            _ => 0,
        };
        principals.take_surplus(most)
    }

    fn next_principal_end(&self) -> Option<Instant> {
        self.state.lock().principals.next_end()
    }

    /// How many principals are known, with and without views.
    #[cfg(test)]
    pub(crate) fn known_principals(&self) -> usize {
        self.state.lock().principals.len()
    }
}

/// Ends idle principals when their time is over, until there are none or the board closes.
async fn reap(registry: Weak<Registry>, closing: CancellationToken) {
    loop {
        let next = registry.upgrade().and_then(|registry| registry.next_principal_end());
        let Some(next) = next else {
            return;
        };
        tokio::select! {
            () = closing.cancelled() => return,
            () = tokio::time::sleep_until(next) => {}
        }
        if let Some(registry) = registry.upgrade() {
            drop(registry.end_idle_principals());
        }
    }
}
