//! A request under way: the wait for its answer, or giving it up.

use tokio::time::Instant;

use super::{Fault, FaultKind, Line, Patience};
use crate::session::{
    answer::Answer,
    desk::{Late, Place},
    frame::Params,
};

/// A request under way. It is given up when this is dropped before its answer has come.
pub(in crate::session) struct Pending<'a> {
    pub(super) line: &'a Line,
    pub(super) place: Place,
    pub(super) started: Instant,
    pub(super) is_cancellable: bool,
    /// Whether the answer is still to come.
    pub(super) is_open: bool,
}

impl Pending<'_> {
    /// Waits for the answer, which is left for the caller to read.
    pub(in crate::session) async fn answer(&mut self, patience: Patience) -> Result<Answer, Fault> {
        match self.place.answer(patience.idle, patience.total.instant()).await {
            Ok(answer) => {
                self.is_open = false;
                Ok(answer?)
            }
            Err(late) => Err(self.timed_out(late, patience)),
        }
    }

    fn timed_out(&mut self, late: Late, patience: Patience) -> Fault {
        let line = self.line;
        let kind = FaultKind::TimedOut {
            late_after: match late {
                Late::Idle => patience.idle,
                Late::Total => self.started.elapsed(),
            },
            idle: late == Late::Idle,
            last_words: line
                .wire
                .last_words()
                .map(|words| line.desk.veil().text(&words).into_owned()),
        };
        // Only now that it is given up is it certain whether it will be written.
        self.give_up();
        Fault {
            kind,
            sent: self.place.delivery.sent(),
        }
    }

    fn give_up(&mut self) {
        let (line, id) = (self.line, self.place.id);
        self.is_open = false;
        line.desk.leave(id);
        let never_sent = self.place.delivery.abandon();
        let told = line.wire.abandon(id);
        if !never_sent && !told && self.is_cancellable {
            let params = Params::default()
                .with("requestId", &id)
                .with("reason", "the caller gave up");
            line.send_notice("notifications/cancelled", &params, None);
        }
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.give_up();
        }
    }
}
