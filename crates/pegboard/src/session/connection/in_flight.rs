//! A request under way: the wait for its answer, or giving it up.

use tokio::time::Instant;

use super::{Fault, FaultKind, Patience, RpcConnection};
use crate::session::{
    json_rpc::Params,
    pending_requests::{Late, Place},
    response::Response,
};

/// A request under way. It is given up when this is dropped before its answer has come.
pub(in crate::session) struct InFlight<'a> {
    pub(super) connection: &'a RpcConnection,
    pub(super) place: Place,
    pub(super) started: Instant,
    pub(super) is_cancellable: bool,
    /// Whether the answer is still to come.
    pub(super) is_open: bool,
}

impl InFlight<'_> {
    /// Waits for the answer, which is left for the caller to read.
    pub(in crate::session) async fn answer(&mut self, patience: Patience) -> Result<Response, Fault> {
        match self.place.answer(patience.idle, patience.total.instant()).await {
            Ok(answer) => {
                self.is_open = false;
                Ok(answer?)
            }
            Err(late) => Err(self.timed_out(late, patience)),
        }
    }

    fn timed_out(&mut self, late: Late, patience: Patience) -> Fault {
        let connection = self.connection;
        let kind = FaultKind::TimedOut {
            late_after: match late {
                Late::Idle => patience.idle,
                Late::Total => self.started.elapsed(),
            },
            idle: late == Late::Idle,
            last_words: connection
                .wire
                .recent_output()
                .map(|words| connection.pending.masker().text(&words).into_owned()),
        };
        // Only now that it is given up is it certain whether it will be written.
        self.give_up();
        Fault {
            kind,
            sent: self.place.delivery.sent(),
        }
    }

    fn give_up(&mut self) {
        let (connection, id) = (self.connection, self.place.id);
        self.is_open = false;
        connection.pending.leave(id);
        let never_sent = self.place.delivery.abandon();
        let told = connection.wire.abandon(id);
        if !never_sent && !told && self.is_cancellable {
            let params = Params::default()
                .with("requestId", &id)
                .with("reason", "the caller gave up");
            connection.send_notice("notifications/cancelled", &params, None);
        }
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.give_up();
        }
    }
}
