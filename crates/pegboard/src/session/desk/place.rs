//! One request's place at the desk, and the wait for its answer.

use std::{sync::Arc, time::Duration};

use tokio::{sync::oneshot, time::Instant};

use super::Unanswered;
use crate::{
    session::{
        answer::Answer,
        asks::{Asks, millis_since},
    },
    transport::{Delivery, EndReason, WireEnd},
};

/// One request's place at the desk.
#[derive(Debug)]
pub(in crate::session) struct Place {
    pub(in crate::session) id: u64,
    pub(in crate::session) delivery: Arc<Delivery>,
    pub(super) answer: oneshot::Receiver<Result<Answer, Unanswered>>,
    pub(super) asks: Arc<Asks>,
    pub(super) opened: Instant,
}

impl Place {
    /// Waits for the answer: until `total`, and no longer than `idle` without a sign of life.
    pub(in crate::session) async fn answer(
        &mut self,
        idle: Duration,
        total: Instant,
    ) -> Result<Result<Answer, Unanswered>, Late> {
        loop {
            let quiet = self.alive() + idle;
            if let Ok(answer) = tokio::time::timeout_at(quiet.min(total), &mut self.answer).await {
                return Ok(answer.unwrap_or_else(|_| {
                    Err(Unanswered::Ended {
                        end: WireEnd::new(EndReason::Closed),
                        sent: self.delivery.sent(),
                    })
                }));
            }
            let now = Instant::now();
            if now >= total {
                return Err(Late::Total);
            }
            if self.alive() + idle > now {
                continue;
            }
            if !self.asks.are_under_way() {
                return Err(Late::Idle);
            }
            self.delivery.note_life(millis_since(self.opened));
        }
    }

    /// When the request last showed a sign of life, or the server's own last question was answered.
    fn alive(&self) -> Instant {
        self.opened + Duration::from_millis(self.delivery.last_life().max(self.asks.answered()))
    }
}

/// Which limit passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session) enum Late {
    Idle,
    Total,
}
