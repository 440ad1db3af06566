//! The slot that a server and its replacements have on the board, one after the other.

use std::sync::{Arc, Weak};

use pegboard_base::sync::Mutex;

/// A slot on the board, and its current server. Every server that has had the slot keeps a reference to it, to find its successor.
#[derive(Debug)]
pub(super) struct BoardSlot<T>(Mutex<Weak<T>>);

impl<T> BoardSlot<T> {
    pub(super) fn occupy(&self, occupant: &Arc<T>) {
        *self.0.lock() = Arc::downgrade(occupant);
    }

    pub(super) fn occupant(&self) -> Option<Arc<T>> {
        self.0.lock().upgrade()
    }
}

impl<T> Default for BoardSlot<T> {
    fn default() -> Self {
        Self(Mutex::new(Weak::new()))
    }
}
