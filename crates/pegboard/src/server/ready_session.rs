//! Waits for a ready session of a server, or for a permit of its queues, and says why a session is refused.

use std::sync::Arc;

use super::{
    availability::Availability,
    outage::{Cause, Outage},
    phase::{Live, Phase},
    pool::Pool,
    queue::{Permit, Refused},
    server_handle::Server,
    succession::has_same_rules,
};
use pegboard_base::{caller::QuotaOwner, deadline::Deadline};

impl Server {
    /// Returns a ready session, and starts the server if needed. Fails with the outage if the server is down.
    pub(crate) async fn ensure_live(&self, deadline: Deadline) -> Result<Live, Arc<Outage>> {
        self.ensure_live_after(0, deadline).await
    }

    /// Returns a session if one is ready now.
    pub(crate) fn live_now(&self) -> Option<Live> {
        find_live(self, 0)
    }

    /// Starts the server if a call would, without waiting for it. Returns why it cannot be used now.
    pub(crate) fn request_start(&self) -> Arc<Outage> {
        self.connections().start();
        match self.phase() {
            Phase::Down(outage) => outage,
            phase => phase.overdue().into(),
        }
    }

    /// Returns a ready session whose generation is not `old_generation`. Waits at most until the deadline.
    pub(crate) async fn ensure_live_after(&self, old_generation: u64, deadline: Deadline) -> Result<Live, Arc<Outage>> {
        if let Some(live) = find_live(self, old_generation) {
            return Ok(live);
        }
        // Boxed, because it is rare and would enlarge the future of every call.
        Box::pin(await_live(self, old_generation, deadline)).await
    }

    /// Waits for a permit to call `tool`, at most until the deadline. The owners of waiting calls take turns.
    pub(crate) async fn permit_call(
        &self,
        tool: &str,
        owner: &QuotaOwner,
        deadline: Deadline,
    ) -> Result<Permit<'_>, Refused> {
        let admission = self.admission();
        if let Some(permit) = admission.try_permit_call(tool, deadline) {
            return Ok(permit);
        }
        // The call will need the connection, so it must not be closed as idle meanwhile.
        let _using = self.connections().keep_from_idling();
        // Boxed, because it is rare and would enlarge the future of every call.
        Box::pin(admission.permit_call(tool, owner, deadline)).await
    }
}

/// Waits for a session whose generation is not `old_generation`.
async fn await_live(server: &Server, old_generation: u64, deadline: Deadline) -> Result<Live, Arc<Outage>> {
    let waiting = async {
        loop {
            let usable = require_pool(server, &server.connections().load()).cloned();
            let pool = match (usable, server.successor()) {
                (Err(outage), Some(next)) if outage.cause == Cause::Closed => {
                    if !has_same_rules(&server.config(), &next.config()) {
                        return Err(Outage::replaced().into());
                    }
                    return Box::pin(await_live(&next, old_generation, deadline)).await;
                }
                (usable, _) => usable?,
            };
            match pool.live_after(old_generation, deadline).await {
                // The server was disabled or enabled, or its settings changed, while the call waited.
                Err(outage) if outage.cause == Cause::Closed && !server.connections().is_current(&pool) => {}
                reached => return reached.map(|live| server.listing().expose(live, &pool)),
            }
        }
    };
    let reached = deadline.run(waiting).await;
    reached.unwrap_or_else(|_| match server.phase() {
        Phase::Down(outage) => Err(outage),
        phase => Err(phase.overdue().into()),
    })
}

/// Returns a session if one is ready now.
fn find_live(server: &Server, old_generation: u64) -> Option<Live> {
    let availability = server.connections().load();
    let pool = require_pool(server, &availability).ok()?;
    let live = pool.live_now(old_generation)?;
    Some(server.listing().expose(live, pool))
}

/// The pool, or why the server may not be used.
fn require_pool<'s>(server: &Server, availability: &'s Availability) -> Result<&'s Arc<Pool>, Arc<Outage>> {
    let is_retired = || server.succession().is_retired();
    server.connections().require(availability, server.name(), is_retired)
}
