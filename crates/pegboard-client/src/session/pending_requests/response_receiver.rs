//! The caller's half of a pending request: the wait for its response, with an idle timeout and a deadline.

use std::{sync::Arc, time::Duration};

use tokio::{sync::oneshot, time::Instant};

use crate::{
    session::{clock::Clock, fault::Fault, response::Response, server_requests::ServerRequests},
    transport::{Delivery, EndReason, WireEnd},
};

/// A timer that fires this late shows that this process was stopped or starved of CPU time.
const STOPPED: Duration = Duration::from_millis(100);
/// How long to wait for a response that arrived while the process was stopped: a second, counted in turns of the runtime. A process that is still
/// starved gets late turns, not fewer.
const CATCH_UP_TURNS: u32 = 40;
const CATCH_UP_TURN: Duration = Duration::from_millis(25);

/// Receives the response to one request.
#[derive(Debug)]
pub(in crate::session) struct ResponseReceiver {
    pub(in crate::session) id: u64,
    pub(in crate::session) delivery: Arc<Delivery>,
    pub(in crate::session) response: oneshot::Receiver<Result<Response, Fault>>,
    pub(super) server_requests: Arc<ServerRequests>,
    pub(super) clock: Clock,
}

impl ResponseReceiver {
    /// Waits for the response until `total`, and no longer than `idle` without a sign of life.
    pub(in crate::session) async fn receive(
        &mut self,
        idle: Duration,
        total: Instant,
    ) -> Result<Result<Response, Fault>, ExceededLimit> {
        loop {
            let due = (self.last_life() + idle).min(total);
            let received = match tokio::time::timeout_at(due, &mut self.response).await {
                Ok(received) => Some(received),
                // Boxed, because it is rare and would enlarge the future of every call.
                Err(_) => Box::pin(self.receive_before_timer(due)).await,
            };
            if let Some(received) = received {
                return Ok(received.unwrap_or_else(|_| {
                    let end = WireEnd::new(EndReason::Closed);
                    Err(Fault::ended(end, self.delivery.sent()))
                }));
            }
            let now = Instant::now();
            if now >= total {
                return Err(ExceededLimit::Total);
            }
            if self.last_life() + idle > now {
                continue;
            }
            if !self.server_requests.are_in_flight() {
                return Err(ExceededLimit::Idle);
            }
            self.delivery.note_life(self.clock.now());
        }
    }

    /// Returns the response if it arrived although the timer that was due at `due` has fired. After this process was stopped, both are ready at
    /// once, and the timer may be polled before the reader of the wire.
    async fn receive_before_timer(&mut self, due: Instant) -> Option<Received> {
        if due.elapsed() < STOPPED {
            tokio::task::yield_now().await;
            return match self.response.try_recv() {
                Ok(response) => Some(Ok(response)),
                Err(_) => None,
            };
        }
        for _ in 0..CATCH_UP_TURNS {
            if let Ok(received) = tokio::time::timeout(CATCH_UP_TURN, &mut self.response).await {
                return Some(received);
            }
        }
        None
    }

    /// Returns when the request last showed a sign of life, or we last responded to the server.
    fn last_life(&self) -> Instant {
        let last_life = self.delivery.last_life().max(self.server_requests.last_response());
        self.clock.instant(last_life)
    }
}

/// The output of the response channel.
type Received = Result<Result<Response, Fault>, oneshot::error::RecvError>;

/// Which limit passed before the response came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::session) enum ExceededLimit {
    Idle,
    Total,
}
