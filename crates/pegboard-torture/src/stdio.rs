//! The raw stdio connection: a process of the server under test.

use std::{
    collections::VecDeque,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pegboard_base::sync::Mutex;
use pegboard_client::transport::{RawProcess, SpawnError, StdinPipe};
use pegboard_config::{Command, Rlimits, SandboxLevel};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    sync::mpsc,
    task::JoinHandle,
    time::timeout,
};

use super::incoming::{Incoming, MAX_MESSAGE, QUEUE, read};

/// How much of stderr is kept for reports.
const TAIL: usize = 600;
/// How long the exit code of a process that closed its stdout is waited for.
const EXIT_WAIT: Duration = Duration::from_millis(500);
/// How the server's process is started.
#[derive(Debug, Clone)]
pub(super) struct StdioTarget {
    command: Command,
}

impl StdioTarget {
    pub(super) fn new(command: &Command) -> Self {
        let mut command = command.clone();
        // The server is tried, not its sandbox and its limits.
        command.sandbox.level = SandboxLevel::Off;
        command.rlimits = Rlimits {
            open_files: None,
            memory: None,
            processes: None,
            file_size: None,
        };
        Self { command }
    }

    /// Starts a process.
    pub(super) async fn start(&self) -> Result<StdioWire, SpawnError> {
        let (process, pipes) = RawProcess::spawn(&self.command).await?;
        let (sender, incoming) = mpsc::channel(QUEUE);
        let stderr = Arc::new(Stderr::default());
        let tasks = vec![
            tokio::spawn(read_messages(pipes.stdout, sender)),
            tokio::spawn(drain(pipes.stderr, stderr.clone())),
        ];
        Ok(StdioWire {
            stdin: Some(pipes.stdin),
            process,
            incoming,
            stderr,
            tasks,
        })
    }
}

/// What the process wrote on stderr.
#[derive(Debug, Default)]
pub(super) struct Stderr {
    bytes: AtomicUsize,
    tail: Mutex<VecDeque<u8>>,
}

impl Stderr {
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The last of it.
    pub(super) fn tail(&self) -> String {
        let mut tail = self.tail.lock();
        String::from_utf8_lossy(tail.make_contiguous()).trim().to_owned()
    }
}

/// A running process of the server under test. Dropping it kills the process and its descendants.
#[derive(Debug)]
pub(super) struct StdioWire {
    pub(super) process: RawProcess,
    stdin: Option<StdinPipe>,
    pub(super) incoming: mpsc::Receiver<Incoming>,
    pub(super) stderr: Arc<Stderr>,
    tasks: Vec<JoinHandle<()>>,
}

impl StdioWire {
    pub(super) async fn write(&mut self, bytes: &[u8], limit: Duration) -> io::Result<()> {
        let Some(stdin) = &mut self.stdin else {
            return Err(io::Error::other("its stdin is closed"));
        };
        let writing = async {
            stdin.write_all(bytes).await?;
            stdin.flush().await
        };
        match timeout(limit, writing).await {
            Ok(written) => written,
            Err(_) => Err(io::Error::other(format!("the server read nothing for {limit:?}"))),
        }
    }

    pub(super) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Waits until the process exits; `None` if it still runs after `limit`.
    pub(super) async fn exit(&mut self, limit: Duration) -> Option<String> {
        match timeout(limit, self.process.exited()).await {
            Ok(Ok(status)) => Some(status.to_string()),
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => None,
        }
    }

    /// How the process ended, for a report.
    pub(super) async fn describe_end(&mut self) -> String {
        let exit = self.exit(EXIT_WAIT).await;
        let exit = exit.unwrap_or_else(|| "it closed its stdout and still runs".to_owned());
        match self.stderr.tail() {
            tail if tail.is_empty() => exit,
            tail => format!("{exit}; stderr: {tail}"),
        }
    }

    /// Sends SIGTERM to the process.
    #[cfg(unix)]
    pub(super) fn terminate(&self) -> io::Result<()> {
        use rustix::process::{Pid, Signal, kill_process};
        let pid = i32::try_from(self.process.pid()).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("the process is gone"))?;
        Ok(kill_process(pid, Signal::TERM)?)
    }
}

impl Drop for StdioWire {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn read_messages(out: impl AsyncRead + Unpin, sender: mpsc::Sender<Incoming>) {
    let mut out = BufReader::new(out);
    let mut line = Vec::new();
    loop {
        line.clear();
        let end = match next_line(&mut out, &mut line).await {
            Ok(0) => "the server closed its stdout".to_owned(),
            Ok(_) if line.len() >= MAX_MESSAGE => format!("a message is longer than {MAX_MESSAGE} bytes"),
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                if sender.send(read(text.trim_end_matches(['\r', '\n']))).await.is_err() {
                    return;
                }
                continue;
            }
            Err(error) => error.to_string(),
        };
        // If this fails, the case has ended and reads no more.
        let _ = sender.send(Incoming::Closed(end)).await;
        return;
    }
}

async fn next_line(out: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> io::Result<usize> {
    let most = u64::try_from(MAX_MESSAGE).unwrap_or(u64::MAX);
    out.take(most).read_until(b'\n', line).await
}

async fn drain(mut err: impl AsyncRead + Unpin, kept: Arc<Stderr>) {
    let mut buffer = [0; 8192];
    while let Ok(read @ 1..) = err.read(&mut buffer).await {
        kept.bytes.fetch_add(read, Ordering::Relaxed);
        let mut tail = kept.tail.lock();
        tail.extend(buffer.iter().take(read));
        let surplus = tail.len().saturating_sub(TAIL);
        tail.drain(..surplus);
    }
}
