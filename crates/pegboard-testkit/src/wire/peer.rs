//! A connected client: receives messages, and runs and cancels its requests.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::http::HeaderMap;
use pegboard_protocol::method::{self, notification};
use serde_json::Value;
use tokio::{
    task::AbortHandle,
    time::{sleep, timeout},
};

use crate::{
    answer::{self, Act},
    fault::Fault,
    log::Received,
    play::Stage,
    script::Script,
    server::lock,
};

/// The requests in flight by id.
type Running = Arc<Mutex<HashMap<String, AbortHandle>>>;

/// One connected client.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub(crate) stage: Stage,
    running: Running,
}

impl Peer {
    pub(crate) fn new(stage: Stage) -> Self {
        Self {
            stage,
            running: Running::default(),
        }
    }

    /// Plays the acts before anything is read. Returns `false` if the server must not read afterwards.
    pub(crate) async fn open(&self) -> bool {
        let script = self.stage.server.script();
        self.stage.play(answer::open(&script)).await;
        *self.stage.reading.borrow() && !self.stage.dead.is_cancelled()
    }

    /// Handles one message and plays its acts in a task. Returns the faults that applied. `headers` are those of its
    /// HTTP request.
    pub(crate) fn receive(&self, text: &[u8], headers: BTreeMap<String, String>) -> Vec<Fault> {
        let server = &self.stage.server;
        let mut message: Value = match serde_json::from_slice(text) {
            Ok(message) => message,
            Err(_) => {
                let params = String::from_utf8_lossy(text).into_owned().into();
                server.receive(Received {
                    method: "$invalid".into(),
                    params,
                    headers,
                    ..Received::default()
                });
                return Vec::new();
            }
        };
        server.receive(received_entry(&message, headers.clone()));
        add_headers(&mut message, &headers);
        let Some(method) = message["method"].as_str() else {
            self.stage.pass_on_answer(message);
            return Vec::new();
        };
        if method == notification::CANCELLED {
            self.cancel(&message["params"]["requestId"]);
        }
        let script = server.script();
        let faults = server.faults(&script, method, &message["params"]);
        if matches!(method, method::INITIALIZE | notification::INITIALIZED) && !answer::is_modern(&script, &message) {
            server.listen(self.stage.frames.clone(), self.stage.audience());
        }
        let acts = answer::answer(&script, &faults, &message);
        // A process that dies answers nothing else while its last output is written.
        let dies_now = server.is_process() && matches!(acts.first(), Some(Act::Die(_)));
        if dies_now || acts.contains(&Act::StopReading) {
            // Here and not in the task, because the next message must not be read.
            self.stage.reading.send_replace(false);
        }
        // A POST that a fault refuses is not executed.
        if !faults.iter().any(Fault::refuses_the_request) {
            self.run(self.stage.clone(), &message["id"], acts, is_stubborn(&script, &faults));
        }
        faults
    }

    /// Plays the acts of one request until the client closes its stream, as a modern client does to cancel.
    pub(crate) fn run_until_closed(&self, stage: Stage, id: &Value, acts: Vec<Act>) {
        let id = id.clone();
        tokio::spawn(async move {
            tokio::select! {
                // First, because the end of a subscription is no cancellation.
                biased;
                () = stage.play(acts) => {}
                () = stage.departed() => stage.server.receive(cancelled_entry(&id)),
            }
        });
    }

    /// Plays the acts of one request. A `stubborn` one cannot be cancelled.
    pub(crate) fn run(&self, stage: Stage, id: &Value, acts: Vec<Act>, stubborn: bool) {
        if acts.is_empty() {
            return;
        }
        let id = id.to_string();
        let (running, done) = (Arc::clone(&self.running), id.clone());
        // Locked until the handle is inserted, so that a fast task does not remove its entry before that.
        let mut map = lock(&self.running);
        let task = tokio::spawn(async move {
            stage.play(acts).await;
            lock(&running).remove(&done);
        });
        if !stubborn {
            map.insert(id, task.abort_handle());
        }
    }

    pub(crate) fn cancel(&self, id: &Value) {
        if let Some(task) = lock(&self.running).remove(&id.to_string()) {
            task.abort();
            self.stage.server.receive(cancelled_entry(id));
        }
    }

    /// Waits until no request is in flight, at most for `limit`.
    pub(crate) async fn finish(&self, limit: Duration) {
        let done = timeout(limit, async {
            while !lock(&self.running).is_empty() {
                sleep(Duration::from_millis(1)).await;
            }
        });
        // What still runs then ends with the process.
        let _ = done.await;
    }

    /// Aborts all requests of this client.
    pub(crate) fn end(&self) {
        for (_, task) in lock(&self.running).drain() {
            task.abort();
        }
    }
}

/// Returns `true` if a request continues when the client cancels it.
pub(crate) fn is_stubborn(script: &Script, faults: &[Fault]) -> bool {
    script.ignores_cancel || faults.iter().any(|fault| matches!(fault, Fault::LateAnswer { .. }))
}

/// The log entry for a request that was cancelled before its response.
fn cancelled_entry(id: &Value) -> Received {
    Received {
        method: "$cancelled".into(),
        id: Some(id.clone()),
        ..Received::default()
    }
}

/// The log entry for a message.
pub(crate) fn received_entry(message: &Value, headers: BTreeMap<String, String>) -> Received {
    match message["method"].as_str() {
        Some(method) => Received {
            method: method.into(),
            id: message.get("id").cloned(),
            params: message["params"].clone(),
            headers,
        },
        None => {
            let kind = if message["id"].is_null() {
                "$invalid"
            } else {
                "$response"
            };
            Received {
                method: kind.into(),
                id: message.get("id").cloned(),
                params: message.clone(),
                headers,
            }
        }
    }
}

/// Adds the headers of an HTTP request to its message, for answers that depend on them.
pub(crate) fn add_headers(message: &mut Value, headers: &BTreeMap<String, String>) {
    if let Some(message) = message.as_object_mut().filter(|_| !headers.is_empty()) {
        message.insert(answer::HEADERS.to_owned(), serde_json::json!(headers));
    }
}

/// The headers as the log stores them: values of repeated headers joined by commas.
pub(crate) fn header_map(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut map = BTreeMap::<String, String>::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        map.entry(name.as_str().to_owned())
            .and_modify(|known| {
                known.push_str(", ");
                known.push_str(&value);
            })
            .or_insert_with(|| value.clone().into_owned());
    }
    map
}
