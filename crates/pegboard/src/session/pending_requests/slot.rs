//! One request's place at the desk, and the wait for its answer.

use std::{sync::Arc, time::Duration};

use tokio::{sync::oneshot, time::Instant};

use super::Unanswered;
use crate::{
    session::{
        response::Response,
        server_requests::{ServerRequests, millis_since},
    },
    transport::{Delivery, EndReason, WireEnd},
};

/// A timer that fires so much later than it was due shows that this process did not run meanwhile: it was stopped, or starved.
const STOPPED: Duration = Duration::from_millis(100);
/// How long reading what arrived during a stop may take before the timer is believed.
const CATCH_UP: Duration = Duration::from_secs(1);

/// One request's place at the desk.
#[derive(Debug)]
pub(in crate::session) struct Place {
    pub(in crate::session) id: u64,
    pub(in crate::session) delivery: Arc<Delivery>,
    pub(super) answer: oneshot::Receiver<Result<Response, Unanswered>>,
    pub(super) asks: Arc<ServerRequests>,
    pub(super) opened: Instant,
}

impl Place {
    /// Waits for the answer: until `total`, and no longer than `idle` without a sign of life.
    pub(in crate::session) async fn answer(
        &mut self,
        idle: Duration,
        total: Instant,
    ) -> Result<Result<Response, Unanswered>, Late> {
        loop {
            let due = (self.alive() + idle).min(total);
            let answer = match tokio::time::timeout_at(due, &mut self.answer).await {
                Ok(answer) => Some(answer),
                // Boxed, because it is rare and every call would pay for the room.
                Err(_) => Box::pin(self.arrived(due)).await,
            };
            if let Some(answer) = answer {
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

    /// The answer, if it has arrived although the timer that was due at `due` has fired. After a stop of this process both are there at the
    /// same moment, and the timer's wake-up may come before the reader's.
    async fn arrived(&mut self, due: Instant) -> Option<Received> {
        if due.elapsed() < STOPPED {
            tokio::task::yield_now().await;
            return match self.answer.try_recv() {
                Ok(answer) => Some(Ok(answer)),
                Err(_) => None,
            };
        }
        tokio::time::timeout(CATCH_UP, &mut self.answer).await.ok()
    }

    /// When the request last showed a sign of life, or the server's own last question was answered.
    fn alive(&self) -> Instant {
        self.opened + Duration::from_millis(self.delivery.last_life().max(self.asks.answered()))
    }
}

/// What comes out of the channel of a place.
type Received = Result<Result<Response, Unanswered>, oneshot::error::RecvError>;

/// Which limit passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session) enum Late {
    Idle,
    Total,
}
