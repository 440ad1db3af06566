//! Revision counters: what is derived from servers, such as a route table, is rebuilt when the counter has moved.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use arc_swap::ArcSwap;

/// The revision counter of one server: the board's, or that of the view that owns the server.
///
/// A view's servers do not move the board's counter, so that one user's connection does not make every other view rebuild its table.
#[derive(Debug)]
pub(crate) struct Revision(ArcSwap<AtomicU64>);

impl Revision {
    /// Counts on `counter`.
    pub(crate) fn on(counter: Arc<AtomicU64>) -> Arc<Self> {
        Arc::new(Self(ArcSwap::new(counter)))
    }

    /// Counts on a counter that no view reads, until [`Revision::count_on`] names another.
    pub(crate) fn unseen() -> Arc<Self> {
        Self::on(Arc::default())
    }

    /// Counts on another counter from now on, beginning with this change.
    pub(crate) fn count_on(&self, counter: Arc<AtomicU64>) {
        self.0.store(counter);
        self.bump();
    }

    pub(crate) fn bump(&self) {
        self.0.load().fetch_add(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_count_where_they_can_be_seen() {
        let (board, view) = (Arc::new(AtomicU64::new(1)), Arc::new(AtomicU64::new(1)));
        let revision = Revision::on(board.clone());
        revision.bump();
        revision.count_on(view.clone());
        revision.bump();
        assert_eq!((board.load(Ordering::Relaxed), view.load(Ordering::Relaxed)), (2, 3));
    }
}
