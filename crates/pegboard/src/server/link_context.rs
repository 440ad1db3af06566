//! Limits, counters and defaults that all links of one board share.

use std::sync::{Arc, atomic::AtomicU64};

use tokio::sync::Semaphore;

use super::{backoff::Backoff, closing_links::ClosingLinks};
use pegboard_client::session::ListScope;

/// The limits, counters and defaults that all links of one board share.
#[derive(Debug)]
pub(crate) struct LinkContext {
    /// Which parts of a server's catalogue are listed.
    pub(crate) list_scope: ListScope,
    /// Bounds the servers that start at the same time.
    pub(crate) starts: Arc<Semaphore>,
    /// Bounds the child processes of the board.
    pub(crate) processes: Arc<Semaphore>,
    /// Numbers the sessions of all servers, so that each number is unique on the board.
    pub(crate) generations: Arc<AtomicU64>,
    /// The restart schedule of servers whose config sets none.
    pub(crate) backoff: Backoff,
    /// The links that are closing.
    pub(crate) closing: Arc<ClosingLinks>,
}
