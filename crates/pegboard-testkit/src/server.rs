//! The state that all connections of a fake server share: script, log, counters, gates and subscribers.

use std::{
    collections::HashSet,
    fs::OpenOptions,
    io::{self, Write},
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use pegboard_protocol::{meta, method::notification};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::{
    client::Client,
    fault::Fault,
    log::{Log, Received},
    script::{Effect, Script},
};

/// How often a process checks for the file that opens a gate.
const GATE_POLL: Duration = Duration::from_millis(5);

/// One unit of a connection's output.
#[derive(Debug, Clone)]
pub(crate) enum Frame {
    /// One message, to be framed by the transport; `last` marks the response to the request.
    Message { text: Bytes, last: bool },
    /// Bytes without framing.
    Raw(Bytes),
    /// The end of the output.
    Close,
    /// A reset of the connection.
    Reset,
    /// A marker that is dropped once everything before it was written.
    Mark(mpsc::Sender<()>),
}

impl Frame {
    pub(crate) fn message(message: &Value, last: bool) -> Self {
        Self::Message {
            text: message.to_string().into(),
            last,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Server {
    /// The script with its later versions; `current` is derived from it at each start.
    whole: Script,
    current: Mutex<Arc<Script>>,
    hits: Mutex<Vec<u32>>,
    starts: AtomicU32,
    pub(crate) log: Log,
    open_gates: watch::Sender<HashSet<String>>,
    listeners: Mutex<Vec<Listener>>,
    /// Whether this is a separate process, which may exit and write to stderr.
    is_process: bool,
}

#[derive(Debug)]
struct Listener {
    frames: mpsc::Sender<Frame>,
    audience: Audience,
}

/// The client behind a stream of notifications.
#[derive(Debug)]
pub(crate) enum Audience {
    Legacy(Arc<Client>),
    /// The id and the filter of a subscription.
    Modern(Value, Value),
}

impl Server {
    /// A server in the test's own process.
    ///
    /// # Errors
    /// When the log file cannot be opened.
    pub(crate) fn new(script: Script) -> io::Result<Arc<Self>> {
        Self::build(script, false, 0)
    }

    /// A server in a separate process, after this many earlier starts.
    ///
    /// # Errors
    /// When the log file cannot be opened.
    pub(crate) fn process(script: Script, before: u32) -> io::Result<Arc<Self>> {
        Self::build(script, true, before)
    }

    fn build(script: Script, is_process: bool, before: u32) -> io::Result<Arc<Self>> {
        let log = Log::open(script.log.as_deref())?;
        Ok(Arc::new(Self {
            current: Mutex::new(Arc::new(script.clone())),
            whole: script,
            hits: Mutex::default(),
            starts: AtomicU32::new(before),
            log,
            open_gates: watch::Sender::default(),
            listeners: Mutex::default(),
            is_process,
        }))
    }

    /// Counts and logs a start, and selects the script for it.
    pub(crate) fn start(&self) {
        let number = self.starts.fetch_add(1, Ordering::Relaxed) + 1;
        if self.whole.later.is_some() {
            self.set_script(self.whole.for_start(number).clone());
        }
        self.log.log_spawn();
    }

    pub(crate) fn starts(&self) -> u32 {
        self.starts.load(Ordering::Relaxed)
    }

    pub(crate) fn script(&self) -> Arc<Script> {
        Arc::clone(&lock(&self.current))
    }

    /// Replaces the script and resets the counters of the triggers.
    pub(crate) fn set_script(&self, script: Script) {
        lock(&self.hits).clear();
        *lock(&self.current) = Arc::new(script);
    }

    pub(crate) fn is_process(&self) -> bool {
        self.is_process
    }

    /// The faults that apply to this message. Each call counts as a hit.
    pub(crate) fn faults(&self, script: &Script, method: &str, params: &Value) -> Vec<Fault> {
        let tool = params.get("name").and_then(Value::as_str);
        let mut hits = lock(&self.hits);
        let known = hits.len();
        hits.resize(script.faults.len().max(known), 0);
        let mut faults = Vec::new();
        for (rule, hit) in script.faults.iter().zip(hits.iter_mut()) {
            if rule.when.covers(&rule.fault, method, tool) {
                if rule.when.counts(*hit) {
                    faults.push(rule.fault.clone());
                }
                *hit += 1;
            }
        }
        faults
    }

    pub(crate) fn receive(&self, received: Received) {
        self.log.log_received(received);
    }

    pub(crate) fn record(&self, nonce: &str) {
        let Some(path) = &self.script().ledger else { return };
        let ledger = OpenOptions::new().create(true).append(true).open(path);
        // A failed write is noticed as a call that was never executed.
        let _ = ledger.and_then(|mut ledger| ledger.write_all(format!("executed {nonce}\n").as_bytes()));
    }

    pub(crate) fn open_gate(&self, gate: &str) {
        self.open_gates.send_if_modified(|open| open.insert(gate.to_owned()));
    }

    pub(crate) async fn pass_gate(&self, gate: &str) {
        if Path::new(gate).is_absolute() {
            while !Path::new(gate).exists() {
                tokio::time::sleep(GATE_POLL).await;
            }
            return;
        }
        let mut gates = self.open_gates.subscribe();
        // The sender lives as long as the server, so the wait cannot fail.
        let _ = gates.wait_for(|open| open.contains(gate)).await;
    }

    pub(crate) fn listen(&self, frames: mpsc::Sender<Frame>, audience: Audience) {
        let is_legacy = |audience: &Audience| matches!(audience, Audience::Legacy(_));
        let mut listeners = lock(&self.listeners);
        listeners.retain(|listener| !listener.frames.is_closed());
        let known = listeners.iter().any(|listener| {
            listener.frames.same_channel(&frames) && is_legacy(&audience) && is_legacy(&listener.audience)
        });
        if !known {
            listeners.push(Listener { frames, audience });
        }
    }

    pub(crate) fn stop_listening(&self, frames: &mpsc::Sender<Frame>, id: &Value) {
        let ended = |listener: &Listener| {
            let same_id = matches!(&listener.audience, Audience::Modern(known, _) if known == id);
            same_id && listener.frames.same_channel(frames)
        };
        lock(&self.listeners).retain(|listener| !ended(listener));
    }

    /// Changes the script as a call asked for, and notifies the clients that want to know.
    pub(crate) async fn apply(&self, effect: &Effect) {
        let (method, params) = {
            let mut current = lock(&self.current);
            let mut script = Script::clone(&current);
            let notice = effect.apply(&mut script);
            *current = Arc::new(script);
            notice
        };
        self.send(method, &params, |listener| listener.wants(method, &params))
            .await;
    }

    /// Sends a notification to every legacy client and to the modern subscriptions to it.
    pub(crate) async fn notify(&self, method: &str, params: &Value) {
        self.send(method, params, |_| true).await;
    }

    /// Waits for a full queue: the fake drops no messages.
    async fn send(&self, method: &str, params: &Value, wanted: impl Fn(&Listener) -> bool) {
        let targets: Vec<(mpsc::Sender<Frame>, Value)> = lock(&self.listeners)
            .iter()
            .filter(|listener| wanted(listener))
            .filter_map(|listener| Some((listener.frames.clone(), listener.notice(method, params)?)))
            .collect();
        for (frames, notice) in targets {
            // A closed queue means that the subscriber has disconnected.
            let _ = frames.send(Frame::message(&notice, false)).await;
        }
    }

    /// The number of streams open for notifications.
    pub(crate) fn listener_count(&self) -> usize {
        lock(&self.listeners)
            .iter()
            .filter(|listener| !listener.frames.is_closed())
            .count()
    }

    pub(crate) fn forget_listeners(&self) {
        lock(&self.listeners).clear();
    }
}

impl Listener {
    /// Returns `false` if this is about a resource that a legacy client did not subscribe to.
    fn wants(&self, method: &str, params: &Value) -> bool {
        match &self.audience {
            Audience::Legacy(client) if method == notification::RESOURCES_UPDATED => {
                client.is_subscribed(params["uri"].as_str().unwrap_or_default())
            }
            _ => true,
        }
    }

    fn notice(&self, method: &str, params: &Value) -> Option<Value> {
        let mut notice = json!({ "jsonrpc": "2.0", "method": method });
        if !params.is_null() {
            notice["params"] = params.clone();
        }
        let Audience::Modern(id, filter) = &self.audience else {
            return Some(notice);
        };
        let wanted = match method {
            notification::TOOLS_LIST_CHANGED => filter["toolsListChanged"] == true,
            notification::PROMPTS_LIST_CHANGED => filter["promptsListChanged"] == true,
            notification::RESOURCES_LIST_CHANGED => filter["resourcesListChanged"] == true,
            notification::RESOURCES_UPDATED => filter["resourceSubscriptions"]
                .as_array()
                .is_some_and(|uris| uris.contains(&params["uri"])),
            _ => true,
        };
        notice["params"]["_meta"][meta::SUBSCRIPTION_ID] = id.clone();
        wanted.then_some(notice)
    }
}

/// Locks a mutex, also after a panic in another test thread.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
