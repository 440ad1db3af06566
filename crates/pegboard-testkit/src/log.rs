//! The messages that a fake server received: in memory, and in a file of JSON lines if the script names one.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, Write},
    path::Path,
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

/// One received message.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Received {
    /// The method; `GET` and `DELETE` for these HTTP requests; `$response` for a response to the server's request,
    /// `$invalid` for what is not JSON-RPC, `$cancelled` if the client cancelled a request before its response, `$closed` if it
    /// closed an HTTP stream before that, `$eof` at the end of the input.
    pub method: String,
    /// The id of a request.
    pub id: Option<Value>,
    /// The parameters; the whole message for `$response` and `$invalid`.
    pub params: Value,
    /// The HTTP headers, names in lower case; those of the upgrade request on a WebSocket; empty on other transports.
    pub headers: BTreeMap<String, String>,
}

impl Received {
    /// The tool of a `tools/call`.
    #[must_use]
    pub fn tool(&self) -> Option<&str> {
        self.params.get("name")?.as_str()
    }

    /// A header by its name in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// The content of a log file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogFile {
    /// The process ids, one for every start.
    pub spawned: Vec<u32>,
    /// All messages received, over all starts.
    pub requests: Vec<Received>,
}

impl LogFile {
    /// The number of messages received with this method.
    #[must_use]
    pub fn count(&self, method: &str) -> usize {
        self.requests
            .iter()
            .filter(|received| received.method == method)
            .count()
    }
}

/// Reads the log file of a process. A missing file is an empty log, because the server may not have started yet.
///
/// # Errors
/// When the file cannot be read. A last line that is still being written is left out.
pub fn read_log(path: impl AsRef<Path>) -> io::Result<LogFile> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error),
    };
    let mut log = LogFile::default();
    for line in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        match line {
            Line::Spawned(pid) => log.spawned.push(pid),
            Line::Received(received) => log.requests.push(received),
        }
    }
    Ok(log)
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Spawned(u32),
    Received(Received),
}

/// Collects received messages.
#[derive(Debug)]
pub(crate) struct Log {
    kept: Mutex<Vec<Received>>,
    count: watch::Sender<usize>,
    file: Option<Mutex<File>>,
}

/// The limit on entries in memory. A test that needs more reads the file.
const KEPT: usize = 200_000;

impl Log {
    pub(crate) fn open(path: Option<&Path>) -> io::Result<Self> {
        let file = match path {
            Some(path) => Some(Mutex::new(OpenOptions::new().create(true).append(true).open(path)?)),
            None => None,
        };
        Ok(Self {
            kept: Mutex::default(),
            count: watch::Sender::new(0),
            file,
        })
    }

    pub(crate) fn log_spawn(&self) {
        self.write(&Line::Spawned(std::process::id()));
    }

    pub(crate) fn log_received(&self, received: Received) {
        self.write(&Line::Received(received.clone()));
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.push(received);
        }
        self.count.send_replace(kept.len());
    }

    pub(crate) fn all(&self) -> Vec<Received> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().filter(|received| received.method == method).count()
    }

    /// Returns once this many messages with this method were received.
    pub(crate) async fn wait_for(&self, method: &str, wanted: usize) {
        let mut count = self.count.subscribe();
        // The sender lives as long as the log, so the wait cannot fail.
        let _ = count.wait_for(|_| self.count(method) >= wanted).await;
    }

    /// Writes a line with one system call, so that lines of several processes do not mix.
    fn write(&self, line: &Line) {
        let Some(file) = &self.file else { return };
        let Ok(mut text) = serde_json::to_vec(line) else { return };
        text.push(b'\n');
        // A failed write is noticed by the test that misses the line.
        let _ = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&text);
    }
}
