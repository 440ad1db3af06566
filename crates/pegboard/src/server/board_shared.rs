//! Settings, counters and resources that all servers of one board share.

use std::sync::{Arc, atomic::AtomicU64};

use super::{link_context::LinkContext, queue::Queues, shared_links::SharedLinks};
use crate::{event::EventSender, metrics::BoardCounters, pin::PinStore};
use pegboard_config::BreakerPolicy;
use pegboard_tools::catalog::store::CatalogStore;

/// The settings, counters and resources that all servers of one board share.
#[derive(Debug)]
pub(crate) struct BoardShared {
    /// Incremented whenever the catalogue of a shared server may have changed.
    pub(crate) revision: Arc<AtomicU64>,
    /// The limits, counters and defaults that all links share.
    pub(crate) link_context: LinkContext,
    /// The links that several servers may share.
    pub(crate) links: SharedLinks,
    /// The queues that calls of several servers wait in.
    pub(crate) queues: Queues,
    /// The circuit breaker of servers whose config sets none.
    pub(crate) breaker: BreakerPolicy,
    /// Stores catalogues across runs of the program.
    pub(crate) catalogs: Option<CatalogStore>,
    /// The pinned definitions of all servers.
    pub(crate) pins: PinStore,
    /// The number of the next server.
    pub(crate) next_server: AtomicU64,
    /// Publishes events to subscribers of the board.
    pub(crate) events: EventSender,
    /// The counters of the board, by server name.
    pub(crate) tallies: Arc<BoardCounters>,
}
