//! A bidirectional connection (stdio, WebSocket, legacy SSE): requests run concurrently, and responses and
//! notifications leave through one bounded queue in the order in which they are ready.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::in_flight::{InFlight, Running};
use super::message::{self, Broken, Fault, Id, Incoming, Message, Request};
use super::notifications::Notifications;
use super::protocol::{Demo, Peer, version_of};
use super::version::Version;

/// The capacity of the queue to the wire. When it is full requests wait, so a client that does not read delays only
/// itself.
const QUEUE: usize = 64;

/// How long requests in flight may take to finish after the client's input ended.
const FINISH_TIME: Duration = Duration::from_millis(250);

/// The server's end of one connection. Dropping it cancels everything that is in flight.
#[derive(Debug)]
pub(super) struct Connection {
    shared: Arc<Shared>,
    tasks: TaskTracker,
    stop: DropGuard,
}

#[derive(Debug)]
struct Shared {
    demo: Arc<Demo>,
    peer: Peer,
    in_flight: InFlight,
    out: mpsc::Sender<String>,
}

impl Connection {
    /// Opens a connection. Returns it with the queue of messages for the wire, which ends when the connection is closed.
    pub(super) fn open(demo: Arc<Demo>, stop: &CancellationToken) -> (Self, mpsc::Receiver<String>) {
        let (out, queue) = mpsc::channel(QUEUE);
        let stop = stop.child_token();
        let shared = Shared {
            demo,
            peer: Peer::default(),
            in_flight: InFlight::new(stop.clone()),
            out,
        };
        (
            Self {
                shared: Arc::new(shared),
                tasks: TaskTracker::new(),
                stop: stop.drop_guard(),
            },
            queue,
        )
    }

    /// Handles one message. Each request runs in a task of its own; this waits only while the queue is full.
    pub(super) async fn receive(&self, bytes: &[u8]) {
        match message::parse(bytes) {
            Ok(Incoming::One(Message::Request(request))) => match self.start(request) {
                Ok(work) => {
                    let shared = self.shared.clone();
                    self.tasks.spawn(async move {
                        if let Some(answer) = work.finish(&shared).await {
                            shared.send(&answer).await;
                        }
                    });
                }
                Err(answer) => self.shared.send(&answer).await,
            },
            Ok(Incoming::One(Message::Notification { method, params })) => self.notified(&method, &params),
            Ok(Incoming::One(Message::Response)) => {}
            Ok(Incoming::Batch(batch)) => self.batch(batch).await,
            Err(broken) => self.shared.send(&refusal(broken)).await,
        }
    }

    /// Gives requests in flight a moment to finish, cancels the rest and ends the queue.
    pub(super) async fn close(self) {
        self.tasks.close();
        if tokio::time::timeout(FINISH_TIME, self.tasks.wait()).await.is_err() {
            drop(self.stop);
            // What is left waits for a wire that no longer writes, and ends when the queue is dropped.
            let _ = tokio::time::timeout(FINISH_TIME, self.tasks.wait()).await;
        }
    }

    /// Sends the error for a message over the length limit.
    pub(super) async fn refuse_too_long(&self) {
        let message = format!("the message is longer than {} bytes", message::MAX_MESSAGE);
        self.shared
            .send(&refusal(Broken {
                id: None,
                fault: Fault::new(Fault::INVALID_REQUEST, message),
            }))
            .await;
    }

    /// Handles a batch, which only 2025-03-26 has. Its responses are sent together.
    async fn batch(&self, batch: Vec<Result<Message, Broken>>) {
        if self.shared.peer.version() != Some(Version::V2025_03_26) {
            let fault = Fault::new(Fault::INVALID_REQUEST, "this protocol version has no batches");
            return self.shared.send(&refusal(Broken { id: None, fault })).await;
        }
        let (mut started, mut answers) = (Vec::new(), Vec::new());
        for item in batch {
            match item {
                Ok(Message::Request(request)) => match self.start(request) {
                    Ok(work) => started.push(work),
                    Err(answer) => answers.push(answer),
                },
                Ok(Message::Notification { method, params }) => self.notified(&method, &params),
                Ok(Message::Response) => {}
                Err(broken) => answers.push(refusal(broken)),
            }
        }
        let shared = self.shared.clone();
        self.tasks.spawn(async move {
            let finished = join_all(started.into_iter().map(|work| work.finish(&shared))).await;
            answers.extend(finished.into_iter().flatten());
            if !answers.is_empty() {
                shared.send(&Value::Array(answers)).await;
            }
        });
    }

    fn start(&self, request: Request) -> Result<Work, Value> {
        let id = request.id.clone();
        let begin = || -> Result<Work, Fault> {
            let version = version_of(&request, &self.shared.peer)?;
            let running = self.shared.in_flight.begin(id.clone())?;
            if request.method == "initialize" {
                self.shared.peer.settle(version);
            }
            Ok(Work {
                version,
                request,
                running,
            })
        };
        begin().map_err(|fault| message::answer(Some(&id), &Err(fault)))
    }

    fn notified(&self, method: &str, params: &Map<String, Value>) {
        if let Some(id) = cancelled_id(method, params) {
            self.shared.in_flight.cancel(&id);
        }
    }
}

/// An accepted request.
struct Work {
    version: Version,
    request: Request,
    running: Running,
}

impl Work {
    /// Runs the request. Returns its response, or `None` if the client cancelled it.
    async fn finish(self, shared: &Shared) -> Option<Value> {
        let Self {
            version,
            request,
            running,
        } = self;
        let id = request.id.clone();
        let notifications = Notifications {
            out: Some(shared.out.clone()),
            ..Notifications::default()
        };
        let cancelled = running.cancelled();
        tokio::select! {
            biased;
            () = cancelled.cancelled() => None,
            outcome = shared.demo.answer(version, request, &shared.peer, notifications, cancelled) => {
                Some(message::answer(Some(&id), &outcome))
            }
        }
    }
}

impl Shared {
    async fn send(&self, message: &Value) {
        // A closed queue means that the connection is gone.
        let _ = self.out.send(message.to_string()).await;
    }
}

/// The id of the request that a notification cancels.
pub(super) fn cancelled_id(method: &str, params: &Map<String, Value>) -> Option<Id> {
    let id = params
        .get("requestId")
        .filter(|_| method == "notifications/cancelled")?;
    serde_json::from_value(id.clone()).ok()
}

fn refusal(broken: Broken) -> Value {
    message::answer(broken.id.as_ref(), &Err(broken.fault))
}
