//! One attempt to start a server: acquires a process permit, connects, and lists the catalogue.

use std::{sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

use crate::server::connection_plan::ConnectionPlan;
use pegboard_client::{
    session::{ConnectError, ListScope, Session, Spec, Stage, connect},
    transport::{DialError, FailureKind, Sent, WireFailure},
};
use pegboard_tools::catalog::{Catalog, store::Freshness};

/// A server that was connected and listed.
pub(super) struct Started {
    pub(super) session: Session,
    pub(super) catalog: Catalog,
    pub(super) freshness: Freshness,
    pub(super) process: Option<OwnedSemaphorePermit>,
}

/// Connects and lists. If the listing fails, the session is closed.
pub(super) async fn connect_and_list(
    plan: &ConnectionPlan,
    (list_scope, before): (ListScope, Option<Arc<Catalog>>),
    limit: Duration,
    tasks: &TaskTracker,
    process: Option<OwnedSemaphorePermit>,
) -> Result<Started, ConnectError> {
    let session = connect(&plan.spec, limit, tasks).await?;
    match session.catalog(list_scope, &plan.described, before.as_deref()).await {
        Ok((catalog, freshness)) => Ok(Started {
            session,
            catalog,
            freshness,
            process,
        }),
        Err(fault) => {
            session.close().await;
            Err(ConnectError {
                fault,
                stage: Stage::List,
                is_process: plan.spec.is_process(),
                only_era: false,
                is_modern_lost: false,
                behind: None,
            })
        }
    }
}

/// A permit for the server's process; `None` if it has none. Fails if the board has reached its limit of processes.
pub(super) fn process_permit(
    spec: &Spec,
    processes: Arc<Semaphore>,
) -> Result<Option<OwnedSemaphorePermit>, Box<ConnectError>> {
    if !spec.is_process() {
        return Ok(None);
    }
    let full = |_| {
        let text =
            "the board has as many processes as it may; raise `max_processes`, or stop servers that are not needed";
        let failure = WireFailure::new(FailureKind::Busy, Sent::No, text);
        let fault = DialError::Failed(failure).into();
        Box::new(ConnectError {
            fault,
            stage: Stage::Handshake,
            is_process: true,
            only_era: false,
            is_modern_lost: false,
            behind: None,
        })
    };
    processes.try_acquire_owned().map(Some).map_err(full)
}
