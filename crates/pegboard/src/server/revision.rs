//! Revision counters of servers. Derived data, such as a route table, is rebuilt when its counter has changed.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use arc_swap::ArcSwap;

/// The revision counter of one server: the board's, or that of the view that owns the server.
///
/// A view's servers do not increment the board's counter, so that one view's connection does not make every other view rebuild its table.
#[derive(Debug)]
pub(crate) struct Revision(ArcSwap<AtomicU64>);

impl Revision {
    /// Increments `counter` on every change.
    pub(crate) fn on(counter: Arc<AtomicU64>) -> Arc<Self> {
        Arc::new(Self(ArcSwap::new(counter)))
    }

    /// Increments a counter that no view reads, until [`Revision::count_on`] sets another.
    pub(crate) fn unseen() -> Arc<Self> {
        Self::on(Arc::default())
    }

    /// Increments another counter from now on, and once at once, for this change.
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
