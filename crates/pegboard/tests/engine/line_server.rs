//! An in-process server with one message per line. The test decides what it sends.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pegboard::{Config, Host, Pegboard, ServerConfig};
use pegboard_base::sync::Mutex;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex},
    sync::mpsc,
};

use crate::support::*;

/// A server and all messages that it received.
#[derive(Clone, Default)]
pub(crate) struct LineServer {
    received: Arc<Mutex<Vec<Value>>>,
    out: Arc<Mutex<Option<mpsc::Sender<String>>>>,
    starts: Arc<AtomicUsize>,
}

impl LineServer {
    /// A board with this server as `fx`. `react` returns what the server sends in response to a message.
    pub(crate) fn board(
        &self,
        settings: ServerConfig,
        host: impl Host,
        react: impl Fn(&Value) -> Option<String> + Clone + Send + Sync + 'static,
    ) -> Pegboard {
        let this = self.clone();
        let dialer = move || {
            let (ours, theirs) = duplex(64 << 10);
            let (tell, told) = mpsc::channel(256);
            *this.out.lock() = Some(tell);
            this.starts.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(this.clone().serve(theirs, told, react.clone()));
            halves(ours)
        };
        let builder = Pegboard::builder(Config::default()).host(host).without_jitter();
        builder.in_process_with(name("fx"), dialer, settings).open()
    }

    async fn serve(
        self,
        stream: DuplexStream,
        mut told: mpsc::Receiver<String>,
        react: impl Fn(&Value) -> Option<String>,
    ) {
        let (read, mut write) = tokio::io::split(stream);
        let mut lines = BufReader::new(read).lines();
        loop {
            let text = tokio::select! {
                line = lines.next_line() => match line {
                    Ok(Some(line)) => {
                        let message: Value = serde_json::from_str(&line).unwrap();
                        self.received.lock().push(message.clone());
                        react(&message)
                    }
                    _ => return,
                },
                text = told.recv() => match text {
                    Some(text) => Some(text),
                    None => return,
                },
            };
            if let Some(text) = text
                && write.write_all((text + "\n").as_bytes()).await.is_err()
            {
                return;
            }
        }
    }

    /// Sends a message that is not a response.
    pub(crate) async fn say(&self, mut message: Value) {
        message["jsonrpc"] = "2.0".into();
        let out = self.out.lock().clone().unwrap();
        out.send(message.to_string()).await.unwrap();
    }

    /// Closes the connection.
    pub(crate) fn hang_up(&self) {
        *self.out.lock() = None;
    }

    pub(crate) fn starts(&self) -> usize {
        self.starts.load(Ordering::Relaxed)
    }

    /// All messages received so far.
    pub(crate) fn messages(&self) -> Vec<Value> {
        self.received.lock().clone()
    }

    /// The messages received with this method so far.
    pub(crate) fn with_method(&self, method: &str) -> Vec<Value> {
        let received = self.received.lock();
        let fitting = received.iter().filter(|message| message["method"] == method);
        fitting.cloned().collect()
    }

    /// Waits until `count` messages with this method were received.
    pub(crate) async fn wait_for(&self, method: &str, count: usize) -> Vec<Value> {
        until(method, || self.with_method(method).len() >= count).await;
        self.with_method(method)
    }
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let waited = tokio::time::timeout(secs(60), waiting).await;
    waited.unwrap_or_else(|_| panic!("waited in vain until: {what}"));
}
