//! A wire to a server that runs in this process, over a pair of byte streams.

use pegboard_base::BoxFuture;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    ndjson::{StdoutNoise, read_lines, write_lines},
    outbox::Outbox,
    outgoing::Outgoing,
    wire::{Inbox, Wire},
    wire_end::{EndReason, WireEnd},
};
use pegboard_config::Limits;

/// A wire over streams whose other end is in this process.
pub(super) struct InProcess {
    outbox: Arc<Outbox>,
    inbox: Arc<dyn Inbox>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl InProcess {
    pub(super) fn new<R, W>(read: R, write: W, limits: &Limits, inbox: Arc<dyn Inbox>) -> Self
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let outbox = Arc::new(Outbox::new(inbox.budget().quota(limits.max_message)));
        let stop = CancellationToken::new();
        let tasks = TaskTracker::new();
        let reading = read_lines(read, inbox.clone(), limits.max_message, StdoutNoise::default());
        let writing = write_lines(write, outbox.clone(), limits.write_timeout);
        let (end, ending) = (inbox.clone(), (stop.clone(), outbox.clone()));
        tasks.spawn(async move {
            let (stop, outbox) = ending;
            let reason = tokio::select! {
                biased;
                () = stop.cancelled() => EndReason::Closed,
                reason = reading => reason,
                Some(reason) = writing => reason,
            };
            outbox.close();
            end.report_end(WireEnd::new(reason));
        });
        tasks.close();
        Self {
            outbox,
            inbox,
            stop,
            tasks,
        }
    }
}

impl Wire for InProcess {
    fn send(&self, message: Outgoing) {
        self.outbox.push(message, &*self.inbox);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.stop.cancel();
        Box::pin(self.tasks.wait())
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
