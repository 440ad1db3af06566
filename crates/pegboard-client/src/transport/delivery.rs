//! [`Delivery`]: whether an outgoing message is queued, being written, sent or abandoned, and so whether its request can have run.

use pegboard_base::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The delivery stage of a message. The writer and a caller that cancels agree on it without a lock.
#[derive(Debug, Default)]
pub struct Delivery {
    stage: AtomicU8,
    /// When the server last showed activity on this request, on the clock of the caller that waits for the response.
    alive_at: AtomicU64,
}

impl Delivery {
    const QUEUED: u8 = 0;
    const WRITING: u8 = 1;
    const SENT: u8 = 2;
    const ABANDONED: u8 = 3;

    /// A queued message whose server was active at `time`.
    pub(crate) fn alive_at(time: u64) -> Self {
        Self {
            stage: AtomicU8::new(Self::QUEUED),
            alive_at: AtomicU64::new(time),
        }
    }

    /// Records activity of the server on this request.
    pub(crate) fn note_life(&self, time: u64) {
        self.alive_at.store(time, Ordering::Relaxed);
    }

    /// When the server last showed activity on this request.
    pub(crate) fn last_life(&self) -> u64 {
        self.alive_at.load(Ordering::Relaxed)
    }

    /// Marks the message as being written. Returns `false` if it was abandoned before.
    pub(crate) fn begin(&self) -> bool {
        self.step(Self::QUEUED, Self::WRITING)
    }

    /// Marks the message as sent: its last byte has been written.
    pub(crate) fn mark_sent(&self) {
        self.stage.store(Self::SENT, Ordering::Release);
    }

    /// Marks a message that is being written as unsent: its last byte was not written, or the server refused it unprocessed.
    pub(crate) fn undo(&self) {
        self.step(Self::WRITING, Self::QUEUED);
    }

    /// Cancels a queued message. Returns `true` if no byte of it will be written.
    pub(crate) fn abandon(&self) -> bool {
        self.step(Self::QUEUED, Self::ABANDONED)
    }

    /// Whether the request can have run, if its response does not come.
    pub(crate) fn sent(&self) -> Sent {
        match self.stage.load(Ordering::Acquire) {
            Self::QUEUED | Self::ABANDONED => Sent::No,
            _ => Sent::Maybe,
        }
    }

    fn step(&self, from: u8, to: u8) -> bool {
        self.stage
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

/// Whether a request can have run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// It was not sent completely, or was refused unprocessed.
    No,
    /// It was sent, and the server's response proves that it did not run.
    Rejected,
    /// It was sent, and whether it ran is unknown.
    Maybe,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_abandoned_in_the_queue_is_never_written() {
        let delivery = Delivery::default();
        assert!(delivery.abandon());
        assert!(!delivery.begin());
        assert_eq!(delivery.sent(), Sent::No);
    }

    #[test]
    fn a_message_is_unsent_until_its_last_byte_may_have_left() {
        let delivery = Delivery::default();
        assert_eq!(delivery.sent(), Sent::No);
        assert!(delivery.begin());
        assert_eq!(delivery.sent(), Sent::Maybe);
        assert!(!delivery.abandon());
        delivery.undo();
        assert_eq!(delivery.sent(), Sent::No);
        assert!(delivery.begin());
        delivery.mark_sent();
        delivery.undo();
        assert_eq!(delivery.sent(), Sent::Maybe);
    }
}
