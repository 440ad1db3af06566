//! Runs the program of a keyring, for a limited time.

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use tokio::time::Instant;

use super::entry::{KeyringError, MAX_SECRET, parse_secret};
use crate::secret::Secret;

/// How often it is checked whether the program has ended.
const POLL: Duration = Duration::from_millis(5);

/// What reaches a desktop's keyring. Nothing else of our environment is passed on.
const ENVIRONMENT: &[&str] = &[
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "HOME",
    "LANG",
    "LOGNAME",
    "PATH",
    "USER",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
];

/// A program that has ended.
pub(super) struct ProgramEnd {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl ProgramEnd {
    /// The secret that the program printed, without the line end that it may have added.
    pub(super) fn secret(mut self, keyring: &'static str) -> Result<Secret, KeyringError> {
        if self.stdout.ends_with(b"\n") {
            self.stdout.pop();
        }
        parse_secret(self.stdout, keyring)
    }

    /// The error of a program that failed, with the first line of what it wrote to stderr.
    pub(super) fn failure(&self, keyring: &'static str) -> KeyringError {
        let text = String::from_utf8_lossy(&self.stderr);
        let line: String = text
            .trim()
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(200)
            .collect();
        match line.is_empty() {
            true => KeyringError::failed(keyring, self.status.to_string()),
            false => KeyringError::failed(keyring, line.escape_debug().to_string()),
        }
    }

    pub(super) fn has_no_stderr(&self) -> bool {
        self.stderr.iter().all(u8::is_ascii_whitespace)
    }
}

/// The absolute path of a program on the `PATH`.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    found.find_map(|folder| Some(folder.join(name)).filter(|program| program.is_file()))
}

/// Runs a program with a text for its standard input.
pub(super) fn run(
    keyring: &'static str,
    program: &Path,
    args: &[&str],
    input: Option<&Secret>,
    limit: Duration,
) -> Result<ProgramEnd, KeyringError> {
    let variables = ENVIRONMENT
        .iter()
        .filter_map(|name| Some((name, std::env::var_os(name)?)));
    let child = Command::new(program)
        .args(args)
        .env_clear()
        .envs(variables)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = child.map_err(|error| {
        KeyringError::failed(keyring, format!("`{}` cannot be started: {error}", program.display()))
    })?;
    let mut running = Running(child);
    if let (Some(mut stdin), Some(input)) = (running.0.stdin.take(), input) {
        // A program that does not read it ends with a failure of its own.
        let _ = stdin.write_all(input.expose().as_bytes());
    }
    let (stdout, stderr) = (read(running.0.stdout.take()), read(running.0.stderr.take()));
    let end = Instant::now() + limit;
    loop {
        match running.0.try_wait() {
            Ok(None) if Instant::now() < end => thread::sleep(POLL),
            Ok(None) => return Err(KeyringError::NoAnswer(keyring)),
            Ok(Some(status)) => {
                let left = || end.saturating_duration_since(Instant::now()).max(POLL);
                return Ok(ProgramEnd {
                    status,
                    stdout: stdout.recv_timeout(left()).unwrap_or_default(),
                    stderr: stderr.recv_timeout(left()).unwrap_or_default(),
                });
            }
            Err(error) => return Err(KeyringError::failed(keyring, error.to_string())),
        }
    }
}

/// Reads a pipe on a thread of its own, which ends with the pipe: a program that forks may keep it open.
fn read(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (done, reading) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            let _ = pipe.take(MAX_SECRET as u64 + 2).read_to_end(&mut bytes);
        }
        let _ = done.send(bytes);
    });
    reading
}

/// A program that runs. Dropping it kills the program.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
