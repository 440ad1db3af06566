//! The stdio transport: a server as a child process, with messages as lines on its stdin and stdout.

mod environment;
mod process;
mod stderr_tail;

pub(super) use environment::build as environment;
pub use process::{Pipes, RawProcess, SpawnError, StdinPipe};

use pegboard_base::BoxFuture;
use std::{borrow::Cow, sync::Arc, time::Duration};

use tokio::io::AsyncRead;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    connection_credentials::ConnectionCredentials,
    dial_error::DialError,
    ndjson::{StdoutNoise, read_lines, write_lines},
    outbox::Outbox,
    outgoing::Outgoing,
    request_failure::WireFailure,
    wire::{Inbox, Wire},
    wire_end::{EndReason, EndedSandbox, WireEnd},
};
use crate::credential::Issued;
use crate::shim::SandboxStatus;
use pegboard_config::{Command, Limits, is_loader};
use process::Process;
use stderr_tail::StderrTail;

/// How long the output of an exited process is still read, because its descendants may hold the pipes open forever; and how long queued messages
/// are still written on close.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(50);
/// How long to wait for the exit status of a process that is exiting. It can take that long on a busy machine.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// A wire to a child process.
pub(super) struct Stdio {
    outbox: Arc<Outbox>,
    inbox: Arc<dyn Inbox>,
    process: Process,
    stderr: StderrTail,
    stdout_noise: StdoutNoise,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Stdio {
    /// Starts the process. Its environment has the variables of the program's credential. `abandoned` waits for the end of a process whose start is given up.
    pub(super) async fn spawn(
        command: &Command,
        limits: &Limits,
        credentials: Option<ConnectionCredentials>,
        inbox: Arc<dyn Inbox>,
        abandoned: &TaskTracker,
    ) -> Result<Self, DialError> {
        let command = match credentials {
            None => Cow::Borrowed(command),
            Some(credentials) => {
                let issued = credentials.current_within(limits.connect_timeout).await?;
                Cow::Owned(with_variables(command, &credentials, &issued)?)
            }
        };
        let tasks = TaskTracker::new();
        let stop = CancellationToken::new();
        let (process, pipes) = Process::spawn(&command, limits, &tasks, abandoned).await?;
        let stderr = StderrTail::default();
        let collecting = tasks.spawn(collect_stderr(
            stderr.clone(),
            pipes.stderr,
            process.clone(),
            inbox.clone(),
        ));
        let (outbox, stdout_noise) = (
            Arc::new(Outbox::new(inbox.budget().quota(limits.max_message))),
            StdoutNoise::default(),
        );
        let wire = Self {
            outbox: outbox.clone(),
            inbox: inbox.clone(),
            process: process.clone(),
            stderr: stderr.clone(),
            stdout_noise: stdout_noise.clone(),
            stop: stop.clone(),
            tasks: tasks.clone(),
        };
        let reading = read_lines(pipes.stdout, inbox.clone(), limits.max_message, stdout_noise.clone());
        let writing = write_lines(pipes.stdin, outbox.clone(), limits.write_timeout);
        tasks.spawn(async move {
            let reason = run(reading, writing, &outbox, &process, &stop).await;
            outbox.close();
            outbox.clear();
            process.stop();
            if let EndReason::Exited(_) = reason {
                // The last stderr lines often say why it exited. The wait is short: see `collect_stderr`.
                let _ = collecting.await;
            }
            let sandbox = process.sandbox();
            inbox.report_end(WireEnd {
                // The report is written before the server's program is started.
                sandbox: sandbox.map(|status| status.in_force.map_or(EndedSandbox::NotInForce, EndedSandbox::InForce)),
                // Some programs print errors about their arguments to stdout.
                stderr: stderr
                    .text(|text| inbox.mask_output(text))
                    .or_else(|| stdout_noise.text()),
                reason,
            });
        });
        tasks.close();
        Ok(wire)
    }
}

/// Sets the variables of a credential in place of those of the config.
fn with_variables(
    command: &Command,
    credentials: &ConnectionCredentials,
    issued: &Issued,
) -> Result<Command, WireFailure> {
    let mut command = command.clone();
    for (name, value) in issued.variables() {
        // As in a config, where such a variable needs `allow_loader_env`.
        if is_loader(name) && !command.env.contains_key(name) {
            return Err(credentials.unusable_failure(format!(
                "it sets the variable `{}`, which would make the program load code that its command does not name; it is passed on only if \
                 the server's `env` sets it too",
                name.escape_debug()
            )));
        }
        command.env.insert(name.clone(), value.clone());
    }
    Ok(command)
}

/// Reads stderr until the process exits, and for [`DRAIN_TIMEOUT`] after that. Descendants may hold the pipe open forever.
async fn collect_stderr(tail: StderrTail, stderr: impl AsyncRead + Unpin, process: Process, inbox: Arc<dyn Inbox>) {
    let exited = async {
        process.exited().await;
        tokio::time::sleep(DRAIN_TIMEOUT).await;
    };
    tokio::select! {
        biased;
        () = tail.collect(stderr, inbox.server(), |text| inbox.mask_output(text)) => {}
        () = exited => {}
    }
}

/// Reads and writes until the connection ends, and returns why it ended. The writer is dropped on return, which closes the server's stdin.
async fn run(
    reading: impl Future<Output = EndReason>,
    writing: impl Future<Output = Option<EndReason>>,
    outbox: &Outbox,
    process: &Process,
    stop: &CancellationToken,
) -> EndReason {
    // The writer is kept until the reason is known: closing stdin would make the server exit, and that would hide the reason.
    tokio::pin!(reading, writing);
    let reason = tokio::select! {
        biased;
        () = stop.cancelled() => {
            // Flushes the queue: it may hold the cancellation of a request.
            outbox.close();
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, writing).await;
            return EndReason::Closed;
        }
        reason = &mut reading => reason,
        status = process.exited() => {
            let _ = tokio::time::timeout(DRAIN_TIMEOUT, reading).await;
            return EndReason::Exited(status);
        }
        Some(reason) = &mut writing => reason,
    };
    // When a stream ends, the process has usually exited too. Its exit status says more than "end of file".
    match reason {
        EndReason::Eof | EndReason::Broken(_) => {
            let mut status = tokio::time::timeout(DRAIN_TIMEOUT, process.exited()).await;
            if status.is_err() && process.is_exiting() {
                status = tokio::time::timeout(EXIT_TIMEOUT, process.exited()).await;
            }
            status.map_or(reason, EndReason::Exited)
        }
        EndReason::Closed
        | EndReason::Exited(_)
        | EndReason::Stalled(_)
        | EndReason::Protocol(_)
        | EndReason::Flood { .. }
        | EndReason::TooLarge(_)
        | EndReason::Replaced(_) => reason,
    }
}

impl Wire for Stdio {
    fn send(&self, message: Outgoing) {
        self.outbox.push(message, &*self.inbox);
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.stop.cancel();
        Box::pin(self.tasks.wait())
    }

    fn pid(&self) -> Option<u32> {
        Some(self.process.pid())
    }

    fn sandbox(&self) -> Option<SandboxStatus> {
        self.process.sandbox()
    }

    fn recent_output(&self) -> Option<String> {
        match (
            self.stderr.text(|text| self.inbox.mask_output(text)),
            self.stdout_noise.text(),
        ) {
            (Some(stderr), Some(stdout)) => Some(format!("{stderr}\n{stdout}")),
            (stderr, stdout) => stderr.or(stdout),
        }
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
