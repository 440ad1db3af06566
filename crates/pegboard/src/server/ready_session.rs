//! Waiting for a session of a server that is ready, and for a permit of its queues.

use std::sync::Arc;

use super::{
    availability::Availability,
    outage::{Cause, Outage},
    phase::Live,
    pool::Pool,
    queue::{Permit, Refused},
    server_handle::Server,
};
use crate::deadline::Deadline;

impl Server {
    /// The server ready for use: at once when it is, after its start when that is under way. When it is down, the outage.
    pub(crate) async fn live(&self, deadline: Deadline) -> Result<Live, Arc<Outage>> {
        self.live_after(0, deadline).await
    }

    /// The server ready for use, in another session than the one that was left behind.
    pub(crate) async fn live_after(&self, old_generation: u64, deadline: Deadline) -> Result<Live, Arc<Outage>> {
        if let Some(live) = self.live_now(old_generation) {
            return Ok(live);
        }
        // Boxed, because it is rare and every call would pay for the room.
        Box::pin(self.live_in_time(old_generation, deadline)).await
    }

    async fn live_in_time(&self, old_generation: u64, deadline: Deadline) -> Result<Live, Arc<Outage>> {
        let waiting = async {
            loop {
                let usable = self.usable(&self.availability()).cloned();
                let pool = match (usable, self.successor()) {
                    (Err(outage), Some(next)) if outage.cause == Cause::Closed => {
                        if !self.has_same_rules_as(&next) {
                            return Err(Outage::replaced().into());
                        }
                        return Box::pin(next.live_in_time(old_generation, deadline)).await;
                    }
                    (usable, _) => usable?,
                };
                match pool.live_after(old_generation).await {
                    // It was switched off, or on again, or its settings were changed.
                    Err(outage) if outage.cause == Cause::Closed && !self.is_current_pool(&pool) => {}
                    reached => return reached.map(|live| self.with_own_name(live, &pool)),
                }
            }
        };
        deadline
            .run(waiting)
            .await
            .unwrap_or_else(|_| Err(self.phase().overdue().into()))
    }

    /// The server ready for use, if it is that at this moment.
    fn live_now(&self, old_generation: u64) -> Option<Live> {
        let availability = self.availability();
        let pool = self.usable(&availability).ok()?;
        let live = pool.live_now(old_generation)?;
        Some(self.with_own_name(live, pool))
    }

    /// Its connections, if it may be used.
    fn usable<'s>(&self, availability: &'s Availability) -> Result<&'s Arc<Pool>, Arc<Outage>> {
        match availability {
            Availability::On(_) if !self.is_requested() => Err(Outage::not_requested().into()),
            Availability::On(pool) => Ok(pool),
            Availability::Off => Err(Outage::disabled().into()),
            Availability::Refused(outage) => Err(outage.clone()),
            Availability::Closed if self.is_retired() => Err(Outage::removed().into()),
            Availability::Closed => Err(Outage::closed().into()),
        }
    }

    /// Whether this pool is still ours, so that nothing comes after its end.
    fn is_current_pool(&self, pool: &Arc<Pool>) -> bool {
        self.pool().is_some_and(|now| Arc::ptr_eq(&now, pool))
    }

    /// Waits for a turn of a tool, at most until the deadline.
    pub(crate) async fn enter_queue(&self, tool: &str, deadline: Deadline) -> Result<Permit<'_>, Refused> {
        if !deadline.has_passed()
            && let Some(permit) = self.0.gate.try_enter(tool)
        {
            return Ok(permit);
        }
        // Whoever waits will need the connection.
        let _using = self.pool().and_then(|pool| pool.keep_from_idling());
        // Boxed, because it is rare and every call would pay for the room.
        Box::pin(self.0.gate.enter(tool, deadline)).await
    }
}
