//! A server as a child process: lines on its input and output, its error output kept, its end seen at once.

mod environment;
mod process;
mod stderr_tail;

pub(crate) use process::SpawnError;

use std::{sync::Arc, time::Duration};

use tokio::io::AsyncRead;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Boxed, EndReason, Inbox, Outgoing, Wire, WireEnd,
    pipe::{Outbox, StdoutNoise, read_lines, write_lines},
};
use crate::config::{Command, Limits};
use process::Process;
use stderr_tail::Tail;

/// How long what a dead process has written is still read. Its children may hold the pipe open for ever.
const LAST_WORDS: Duration = Duration::from_millis(50);
/// How long it may take on a busy machine until it is known how a process ended that is on its way out.
const ENDING: Duration = Duration::from_secs(1);

/// A running child process and the two lines to it.
pub(super) struct Stdio {
    outbox: Arc<Outbox>,
    inbox: Arc<dyn Inbox>,
    process: Process,
    tail: Tail,
    stdout_noise: StdoutNoise,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Stdio {
    pub(super) async fn spawn(command: &Command, limits: &Limits, inbox: Arc<dyn Inbox>) -> Result<Self, SpawnError> {
        let tasks = TaskTracker::new();
        let stop = CancellationToken::new();
        let (process, pipes) = Process::spawn(command, limits, &tasks).await?;
        let tail = Tail::default();
        let collecting = tasks.spawn(collect_stderr(
            tail.clone(),
            pipes.stderr,
            process.clone(),
            inbox.clone(),
        ));
        let (outbox, stdout_noise) = (
            Arc::new(Outbox::new(inbox.budget().account(limits.message_bytes))),
            StdoutNoise::default(),
        );
        let wire = Self {
            outbox: outbox.clone(),
            inbox: inbox.clone(),
            process: process.clone(),
            tail: tail.clone(),
            stdout_noise: stdout_noise.clone(),
            stop: stop.clone(),
            tasks: tasks.clone(),
        };
        let reading = read_lines(pipes.stdout, inbox.clone(), limits.message_bytes, stdout_noise.clone());
        let writing = write_lines(pipes.stdin, outbox.clone(), limits.write);
        tasks.spawn(async move {
            let reason = converse(reading, writing, &outbox, &process, &stop).await;
            outbox.close();
            process.stop();
            if let EndReason::Exited(_) = reason {
                // What it wrote last often says why it ended. The wait is short: see `collect_stderr`.
                let _ = collecting.await;
            }
            inbox.ended(WireEnd {
                // Some programs print what is wrong with their arguments where messages belong.
                stderr: tail.text(|text| inbox.shown(text)).or_else(|| stdout_noise.text()),
                reason,
            });
        });
        tasks.close();
        Ok(wire)
    }
}

/// Reads the error output while the process lives, and its last words. A grandchild may hold the pipe open for ever.
async fn collect_stderr(tail: Tail, stderr: impl AsyncRead + Unpin, process: Process, inbox: Arc<dyn Inbox>) {
    let ended = async {
        process.exited().await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        biased;
        () = tail.collect(stderr, inbox.server(), |text| inbox.shown(text)) => {}
        () = ended => {}
    }
}

/// Runs the conversation to its end and says why it ended. The writer is dropped on return, which closes the server's input.
async fn converse(
    reading: impl Future<Output = EndReason>,
    writing: impl Future<Output = Option<EndReason>>,
    outbox: &Outbox,
    process: &Process,
    stop: &CancellationToken,
) -> EndReason {
    // The writer is kept until the end is understood: a server whose input we close would exit by that, and hide the reason.
    tokio::pin!(reading, writing);
    let reason = tokio::select! {
        biased;
        () = stop.cancelled() => {
            // What waits may be the notice that a call was cancelled; a server that reads gets it before the end.
            outbox.close();
            let _ = tokio::time::timeout(LAST_WORDS, writing).await;
            return EndReason::Closed;
        }
        reason = &mut reading => reason,
        status = process.exited() => {
            let _ = tokio::time::timeout(LAST_WORDS, reading).await;
            return EndReason::Exited(status);
        }
        Some(reason) = &mut writing => reason,
    };
    // A stream that ends usually means that the process has ended too; its status says more than "end of file".
    match reason {
        EndReason::Eof | EndReason::Broken(_) => {
            let mut status = tokio::time::timeout(LAST_WORDS, process.exited()).await;
            if status.is_err() && process.is_ending() {
                status = tokio::time::timeout(ENDING, process.exited()).await;
            }
            status.map_or(reason, EndReason::Exited)
        }
        EndReason::Closed
        | EndReason::Exited(_)
        | EndReason::Stalled(_)
        | EndReason::Protocol(_)
        | EndReason::TooLarge(_)
        | EndReason::Replaced(_) => reason,
    }
}

impl Wire for Stdio {
    fn send(&self, message: Outgoing) {
        self.outbox.push(message, &*self.inbox);
    }

    fn close(&self) -> Boxed<'_, ()> {
        self.stop.cancel();
        Box::pin(self.tasks.wait())
    }

    fn pid(&self) -> Option<u32> {
        Some(self.process.pid())
    }

    fn last_words(&self) -> Option<String> {
        match (self.tail.text(|text| self.inbox.shown(text)), self.stdout_noise.text()) {
            (Some(stderr), Some(line)) => Some(format!("{stderr}\n{line}")),
            (stderr, line) => stderr.or(line),
        }
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
