//! [`OpenState`]: whether a view is open and accepts calls.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::metrics::BoardCounters;

/// Whether a view accepts calls. It counts as an open view of its board until it is closed or its last clone is dropped.
#[derive(Debug)]
pub(super) struct OpenState {
    has_ended: AtomicBool,
    tallies: Arc<BoardCounters>,
}

impl OpenState {
    pub(super) fn new(tallies: &Arc<BoardCounters>) -> Self {
        tallies.add_view();
        Self {
            has_ended: AtomicBool::new(false),
            tallies: tallies.clone(),
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    pub(super) fn end(&self) {
        if !self.has_ended.swap(true, Ordering::AcqRel) {
            self.tallies.remove_view();
        }
    }
}

impl Drop for OpenState {
    fn drop(&mut self) {
        self.end();
    }
}
