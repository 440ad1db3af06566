//! [`Succession`]: the servers that have had one slot on the board, one after the other.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use tokio_util::sync::CancellationToken;

use super::board_slot::BoardSlot;
use pegboard_config::ServerConfig;

/// Where a server stands among those that had the same slot on the board, one after the other.
#[derive(Debug)]
pub(super) struct Succession<T> {
    /// Distinguishes servers that had the same name one after the other.
    number: u64,
    /// The slot on the board, which the replacement inherits.
    slot: OnceLock<Arc<BoardSlot<T>>>,
    /// Set when the server is removed from the board.
    is_retired: AtomicBool,
    /// Cancelled when the removed server has closed.
    ended: CancellationToken,
}

impl<T> Succession<T> {
    pub(super) fn new(number: u64) -> Self {
        Self {
            number,
            slot: OnceLock::new(),
            is_retired: AtomicBool::new(false),
            ended: CancellationToken::new(),
        }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Whether the server was removed from the board.
    pub(super) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Acquire)
    }

    /// Marks the server as removed from the board.
    pub(super) fn retire(&self) {
        self.is_retired.store(true, Ordering::Release);
    }

    /// Gives the slot to `next`, whose place in the succession is `place`.
    pub(super) fn give_slot(&self, next: &Arc<T>, place: &Self) {
        let slot = self.slot.get_or_init(Arc::default);
        slot.occupy(next);
        let _ = place.slot.set(slot.clone());
    }

    /// The server that has the slot now, if this one was removed. It may be the same.
    pub(super) fn successor(&self) -> Option<Arc<T>> {
        let occupant = self.slot.get()?.occupant()?;
        self.is_retired().then_some(occupant)
    }

    /// Cancelled when the removed server has closed.
    pub(super) fn end_token(&self) -> &CancellationToken {
        &self.ended
    }
}

/// Whether a call that a server with the settings `ours` admits is admitted by its successor too.
pub(super) fn has_same_rules(ours: &ServerConfig, theirs: &ServerConfig) -> bool {
    let with_their_transport = ServerConfig {
        transport: theirs.transport.clone(),
        era: theirs.era.clone(),
        ..ours.clone()
    };
    with_their_transport == *theirs && !ours.policy.serial
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_server_finds_the_newest_one_in_its_slot() {
        let [first, second, third] = [1, 2, 3].map(|number| Arc::new(Succession::<u64>::new(number)));
        let [two, three] = [2, 3].map(Arc::new);
        first.give_slot(&two, &second);
        assert_eq!(first.successor(), None, "it was not removed yet");
        first.retire();
        assert_eq!(first.successor().as_deref(), Some(&2));
        second.retire();
        second.give_slot(&three, &third);
        assert_eq!(first.successor().as_deref(), Some(&3));
        assert_eq!(third.successor(), None);
        drop(three);
        assert_eq!(first.successor(), None, "nothing keeps a successor alive");
    }
}
