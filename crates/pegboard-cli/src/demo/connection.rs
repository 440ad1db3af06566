//! A two-way connection, such as stdio, a WebSocket or a legacy SSE session: messages come in in any number, answers
//! and notices go out through one bounded queue in the order in which they are ready.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::in_flight::{InFlight, Running};
use super::message::{self, Broken, Fault, Id, Incoming, Message, Request};
use super::notices::Notices;
use super::protocol::{Demo, Peer, version_of};
use super::version::Version;

/// Answers and notices that wait for the wire. When it is full the requests wait, so a client that does not read
/// slows down itself only.
const QUEUE: usize = 64;

/// How long requests that are nearly done may go on when the client has said its last word.
const LAST_ANSWERS: Duration = Duration::from_millis(250);

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
    /// The connection, and the queue of messages for the wire. The queue ends when the connection has been closed.
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

    /// Takes one message. Requests are answered by tasks of their own; only a full queue makes this wait.
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
            Ok(Incoming::One(Message::Answer)) => {}
            Ok(Incoming::Batch(batch)) => self.batch(batch).await,
            Err(broken) => self.shared.send(&refusal(broken)).await,
        }
    }

    /// Lets what is nearly done finish, cancels the rest and ends the queue.
    pub(super) async fn close(self) {
        self.tasks.close();
        if tokio::time::timeout(LAST_ANSWERS, self.tasks.wait()).await.is_err() {
            drop(self.stop);
            // What is left now waits for a wire that takes nothing more, and ends when the queue is dropped.
            let _ = tokio::time::timeout(LAST_ANSWERS, self.tasks.wait()).await;
        }
    }

    /// Takes a message that is too long to be read.
    pub(super) async fn refuse_too_long(&self) {
        let message = format!("the message is longer than {} bytes", message::MAX_MESSAGE);
        self.shared
            .send(&refusal(Broken {
                id: None,
                fault: Fault::new(Fault::INVALID_REQUEST, message),
            }))
            .await;
    }

    /// Only 2025-03-26 has batches. Their answers go out together.
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
                Ok(Message::Answer) => {}
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

/// A request that has been let in.
struct Work {
    version: Version,
    request: Request,
    running: Running,
}

impl Work {
    /// The answer; none if the client cancelled the request.
    async fn finish(self, shared: &Shared) -> Option<Value> {
        let Self {
            version,
            request,
            running,
        } = self;
        let id = request.id.clone();
        let notices = Notices {
            out: Some(shared.out.clone()),
            ..Notices::default()
        };
        let cancelled = running.cancelled();
        tokio::select! {
            biased;
            () = cancelled.cancelled() => None,
            outcome = shared.demo.answer(version, request, &shared.peer, notices, cancelled) => {
                Some(message::answer(Some(&id), &outcome))
            }
        }
    }
}

impl Shared {
    async fn send(&self, message: &Value) {
        // A closed queue means that the wire is gone, and the connection with it.
        let _ = self.out.send(message.to_string()).await;
    }
}

/// The request that a notification cancels.
pub(super) fn cancelled_id(method: &str, params: &Map<String, Value>) -> Option<Id> {
    let id = params
        .get("requestId")
        .filter(|_| method == "notifications/cancelled")?;
    serde_json::from_value(id.clone()).ok()
}

fn refusal(broken: Broken) -> Value {
    message::answer(broken.id.as_ref(), &Err(broken.fault))
}
