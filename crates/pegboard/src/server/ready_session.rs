//! Waits for a ready session of a server, or for a permit of its queues, and says why a session is refused.

use std::sync::Arc;

use super::{
    availability::Availability,
    outage::{Cause, Outage},
    phase::{Live, Phase},
    pool::Pool,
    queue::{Permit, Refused},
    refused_credentials,
    server_handle::Server,
};
use pegboard_base::{
    caller::QuotaOwner,
    deadline::Deadline,
    diagnosis::{Diagnosis, Place},
};
use pegboard_client::session::{Fault, Stage};

impl Server {
    /// Returns a ready session, and starts the server if needed. Fails with the outage if the server is down.
    pub(crate) async fn live(&self, deadline: Deadline) -> Result<Live, Arc<Outage>> {
        self.live_after(0, deadline).await
    }

    /// Returns a ready session whose generation is not `old_generation`. Waits at most until the deadline.
    pub(crate) async fn live_after(&self, old_generation: u64, deadline: Deadline) -> Result<Live, Arc<Outage>> {
        if let Some(live) = self.live_now(old_generation) {
            return Ok(live);
        }
        // Boxed, because it is rare and would enlarge the future of every call.
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
                match pool.live_after(old_generation, deadline).await {
                    // The server was disabled or enabled, or its settings changed, while the call waited.
                    Err(outage) if outage.cause == Cause::Closed && !self.is_current_pool(&pool) => {}
                    reached => return reached.map(|live| self.exposed(live, &pool)),
                }
            }
        };
        let reached = deadline.run(waiting).await;
        reached.unwrap_or_else(|_| match self.phase() {
            Phase::Down(outage) => Err(outage),
            phase => Err(phase.overdue().into()),
        })
    }

    /// Returns a session if one is ready now.
    fn live_now(&self, old_generation: u64) -> Option<Live> {
        let availability = self.availability();
        let pool = self.usable(&availability).ok()?;
        let live = pool.live_now(old_generation)?;
        Some(self.exposed(live, pool))
    }

    /// The pool, if the server may be used.
    fn usable<'s>(&self, availability: &'s Availability) -> Result<&'s Arc<Pool>, Arc<Outage>> {
        match availability {
            Availability::On(_) if !self.is_requested() => Err(Outage::not_requested(self.name()).into()),
            Availability::On(pool) => Ok(pool),
            Availability::Off => Err(Outage::disabled().into()),
            Availability::Refused(outage) => Err(outage.clone()),
            Availability::Closed if self.is_retired() => Err(Outage::removed().into()),
            Availability::Closed => Err(Outage::closed().into()),
        }
    }

    /// What a person can do about a request that the server refused with status 401 or 403; `None` for other failures.
    pub(crate) fn credentials_hint(&self, fault: &Fault) -> Option<String> {
        refused_credentials::hint(&self.pool()?.first().plan().spec, fault)
    }

    /// What is wrong with the server if a request to it failed in this way, as data.
    pub(crate) fn diagnose(&self, fault: &Fault) -> Diagnosis {
        let plan = self.pool().map(|pool| pool.first().plan());
        let spec = plan.as_ref().map(|plan| &plan.spec);
        let mut diagnosis = fault.diagnosis(Stage::Call, spec.is_some_and(|spec| spec.is_process()));
        let code = spec.and_then(|spec| refused_credentials::code(spec, fault));
        diagnosis.code = code.unwrap_or(diagnosis.code);
        let host = spec.and_then(|spec| spec.target.host());
        diagnosis.at(Place::server(self.name().as_str()).host(host))
    }

    /// Whether this is still the server's pool.
    fn is_current_pool(&self, pool: &Arc<Pool>) -> bool {
        self.pool().is_some_and(|now| Arc::ptr_eq(&now, pool))
    }

    /// Waits for a permit to call `tool`, at most until the deadline. The owners of waiting calls take turns.
    pub(crate) async fn enter_queue(
        &self,
        tool: &str,
        owner: &QuotaOwner,
        deadline: Deadline,
    ) -> Result<Permit<'_>, Refused> {
        if !deadline.has_passed()
            && let Some(permit) = self.0.gate.try_enter(tool)
        {
            return Ok(permit);
        }
        // The call will need the connection, so it must not be closed as idle meanwhile.
        let _using = self.pool().and_then(|pool| pool.keep_from_idling());
        // Boxed, because it is rare and would enlarge the future of every call.
        Box::pin(self.0.gate.enter(tool, owner, deadline)).await
    }

    /// Waits for a permit for a request that is no tool call, at most until the deadline.
    pub(crate) async fn enter_read_queue(&self, owner: &QuotaOwner, deadline: Deadline) -> Result<Permit<'_>, Refused> {
        self.0.gate.enter_read(owner, deadline).await
    }
}
