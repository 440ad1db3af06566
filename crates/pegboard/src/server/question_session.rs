//! Sessions in which a server can send questions during a call.

use std::sync::Arc;

use super::{
    event_publisher::LinkReporter,
    known_catalog::KnownCatalog,
    link::{Link, LinkLease, RESEND},
    outage::Outage,
    phase::Live,
    pool::{Pool, question_idle},
    revision::Revision,
    server_handle::Server,
};
use crate::status::Era;
use pegboard_base::deadline::Deadline;
use pegboard_config::Scope;

impl Server {
    /// Returns a session in which the server can send questions during a call: `live` itself, or one beside it in the older era. If the server
    /// has none, returns `live`. The generation of the returned session is not `old_generation`, unless it is `live`.
    pub(crate) async fn for_questions(&self, live: Live, old_generation: u64, deadline: Deadline) -> Live {
        if live.session.peer.era == Era::Legacy {
            return live;
        }
        let Some(pool) = self.connections().pool() else {
            return live;
        };
        let open = || open_question_link(self, &pool);
        let Some(lease) = pool.question_link.lease(live.generation, open) else {
            return live;
        };
        let reached = deadline.run(next_session(lease.link(), old_generation, deadline)).await;
        match reached {
            // The catalogue is that of the session on which the server is listed.
            Ok(Ok(found)) => found.with_exposed(Some(live.catalog().clone())),
            Ok(Err(outage)) => {
                pool.question_link.refuse(&lease, live.generation, &outage);
                live
            }
            Err(_) => live,
        }
    }
}

/// Opens the connection for questions, or takes a compatible one of the board.
fn open_question_link(server: &Server, pool: &Pool) -> Option<LinkLease> {
    let (config, shared) = (server.config(), &server.0.shared);
    let plan = pool.first().plan().for_questions()?;
    let idle = question_idle(&config, server.idle_after(&config));
    let make = || {
        let known = Arc::new(KnownCatalog::new(plan.spec.name.clone(), None));
        Link::new(
            plan.clone(),
            known,
            Arc::default(),
            Revision::unseen(),
            &shared.link_context,
        )
    };
    if config.policy.scope == Scope::Shared && plan.spec.owner.is_none() {
        return Some(shared.links.lease(&plan, idle, LinkReporter::silent(), make));
    }
    make().lease(idle, LinkReporter::silent())
}

/// Waits for a session whose generation is not `old_generation`.
async fn next_session(link: &Link, old_generation: u64, deadline: Deadline) -> Result<Live, Arc<Outage>> {
    loop {
        let Some(using) = link.begin_use() else {
            // It is being closed as idle, and may be opened again afterwards.
            let _ = tokio::time::timeout(RESEND, link.changed()).await;
            continue;
        };
        let live = link.live_after(old_generation, deadline).await?;
        return Ok(live.with_use(using));
    }
}
