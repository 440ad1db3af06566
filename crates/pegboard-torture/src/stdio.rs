//! The raw stdio connection: a process of the server under test, in a process group of its own.

use std::{
    collections::VecDeque,
    ffi::OsString,
    io,
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use pegboard_base::sync::Mutex;
use pegboard_config::{Command, EnvPolicy};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStderr, ChildStdin, ChildStdout},
    sync::mpsc,
    task::JoinHandle,
    time::timeout,
};

#[cfg(target_os = "linux")]
use super::guard::Guard;
use super::{
    incoming::{Incoming, MAX_MESSAGE, QUEUE, read},
    process_mark::{self, ProcessMark},
};

/// How much of stderr is kept for reports.
const TAIL: usize = 600;
/// How long the exit code of a process that closed its stdout is waited for.
const EXIT_WAIT: Duration = Duration::from_millis(500);
/// Variables that are passed on besides those that the config sets, unless it says `inherit` or `explicit`.
const PASSED_ON: &[&str] = &[
    "APPDATA",
    "HOME",
    "LANG",
    "LOCALAPPDATA",
    "LOGNAME",
    "PATH",
    "PATHEXT",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "SystemRoot",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TZ",
    "USER",
    "USERPROFILE",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "NODE_EXTRA_CA_CERTS",
];
const PASSED_ON_PREFIXES: &[&str] = &["LC_", "XDG_", "UV_", "NPM_CONFIG_", "npm_config_", "PIP_"];

/// How the server's process is started.
#[derive(Debug, Clone)]
pub(super) struct StdioTarget {
    program: String,
    args: Vec<String>,
    env: Vec<(OsString, OsString)>,
    cwd: Option<PathBuf>,
    /// What kills the processes if this program cannot. Without it they are still killed if this program ends in an orderly way.
    #[cfg(target_os = "linux")]
    guard: Option<Arc<Guard>>,
}

impl StdioTarget {
    pub(super) fn new(command: &Command) -> Self {
        let passes = |name: &OsString| match command.env_policy {
            EnvPolicy::Explicit => false,
            EnvPolicy::Inherit => true,
            _ => name.to_str().is_some_and(|name| {
                PASSED_ON.contains(&name) || PASSED_ON_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            }),
        };
        let mut env: Vec<_> = std::env::vars_os().filter(|(name, _)| passes(name)).collect();
        let set = command.env.iter();
        env.extend(set.map(|(name, value)| (name.into(), value.expose().into())));
        Self {
            program: command.program.clone(),
            args: command.args.iter().map(|arg| arg.expose().to_owned()).collect(),
            env,
            cwd: command.cwd.clone(),
            #[cfg(target_os = "linux")]
            guard: Guard::start().ok().map(Arc::new),
        }
    }

    /// Starts a process.
    pub(super) fn start(&self) -> io::Result<StdioWire> {
        let mark = ProcessMark::new();
        let mut command = tokio::process::Command::new(&self.program);
        command
            .args(&self.args)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .env(process_mark::VARIABLE, mark.value())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn()?;
        let pid = child.id().unwrap_or_default();
        #[cfg(target_os = "linux")]
        if let Some(guard) = &self.guard {
            guard.started(pid);
        }
        let (sender, incoming) = mpsc::channel(QUEUE);
        let stderr = Arc::new(Stderr::default());
        let mut tasks = Vec::new();
        if let Some(out) = child.stdout.take() {
            tasks.push(tokio::spawn(read_messages(out, sender)));
        }
        if let Some(err) = child.stderr.take() {
            tasks.push(tokio::spawn(drain(err, stderr.clone())));
        }
        Ok(StdioWire {
            pid,
            mark,
            #[cfg(target_os = "linux")]
            guard: self.guard.clone(),
            stdin: child.stdin.take(),
            child,
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

/// A running process of the server under test. Dropping it kills the whole process group, and on Linux the processes that have left it.
#[derive(Debug)]
pub(super) struct StdioWire {
    pub(super) pid: u32,
    #[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "processes are found in /proc"))]
    pub(super) mark: ProcessMark,
    #[cfg(target_os = "linux")]
    guard: Option<Arc<Guard>>,
    stdin: Option<ChildStdin>,
    child: Child,
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
        match timeout(limit, self.child.wait()).await {
            Ok(Ok(status)) => Some(status.to_string()),
            Ok(Err(error)) => Some(error.to_string()),
            Err(_) => None,
        }
    }

    /// How the process ended, for a report.
    pub(super) async fn ending(&mut self) -> String {
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
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let pid = pid.ok_or_else(|| io::Error::other("the process is gone"))?;
        Ok(kill_process(pid, Signal::TERM)?)
    }
}

impl Drop for StdioWire {
    fn drop(&mut self) {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process_group};
            if let Some(group) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) {
                // The group is empty if everything has exited already.
                let _ = kill_process_group(group, Signal::KILL);
            }
        }
        #[cfg(target_os = "linux")]
        {
            self.mark.kill();
            if let Some(guard) = &self.guard {
                guard.ended(self.pid);
            }
        }
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn read_messages(out: ChildStdout, sender: mpsc::Sender<Incoming>) {
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

async fn drain(mut err: ChildStderr, kept: Arc<Stderr>) {
    let mut buffer = [0; 8192];
    while let Ok(read @ 1..) = err.read(&mut buffer).await {
        kept.bytes.fetch_add(read, Ordering::Relaxed);
        let mut tail = kept.tail.lock();
        tail.extend(buffer.iter().take(read));
        let surplus = tail.len().saturating_sub(TAIL);
        tail.drain(..surplus);
    }
}
