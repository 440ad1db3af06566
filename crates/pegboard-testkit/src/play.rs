//! Plays acts on a connection: the only place where a fake server waits, sends and exits.

use std::{
    collections::HashMap,
    io::Write,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use pegboard_protocol::method::notification;
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    answer::{self, Act},
    client::Client,
    script::Question,
    server::{Audience, Frame, Server, lock},
};

/// The timeout of a request to the client.
const ASK_LIMIT: Duration = Duration::from_secs(60);

/// The connection or HTTP session on which acts are played.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    pub(crate) server: Arc<Server>,
    pub(crate) frames: mpsc::Sender<Frame>,
    /// The server's open requests to the client, by id.
    pub(crate) asked: Arc<Mutex<HashMap<String, oneshot::Sender<Value>>>>,
    /// Cancelled when the server dies; the owner of the connection then closes it.
    pub(crate) dead: CancellationToken,
    /// Set to `false` when the server stops reading.
    pub(crate) reading: watch::Sender<bool>,
    client: Arc<Client>,
    /// Whether the response on `frames` was sent.
    answered: Arc<AtomicBool>,
}

/// What the client responded to the requests of one call.
#[derive(Debug, Default)]
struct Replies {
    texts: Vec<Value>,
    /// Whether it refused a question.
    refused: bool,
}

impl Stage {
    pub(crate) fn new(server: Arc<Server>, frames: mpsc::Sender<Frame>, dead: CancellationToken) -> Self {
        Self {
            server,
            frames,
            asked: Arc::default(),
            dead,
            reading: watch::Sender::new(true),
            client: Arc::default(),
            answered: Arc::default(),
        }
    }

    /// The same client, with output on another stream.
    pub(crate) fn on(&self, frames: mpsc::Sender<Frame>) -> Self {
        Self {
            frames,
            answered: Arc::default(),
            ..self.clone()
        }
    }

    /// The client, as an audience of legacy notifications.
    pub(crate) fn audience(&self) -> Audience {
        Audience::Legacy(Arc::clone(&self.client))
    }

    /// Returns once the client has closed the stream before its response.
    pub(crate) async fn departed(&self) {
        self.frames.closed().await;
        if self.answered.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
    }

    /// Plays all acts, or until the client is gone or the server is dead.
    pub(crate) async fn play(&self, acts: Vec<Act>) {
        let dead = self.dead.clone();
        // A dead server drops the remaining acts.
        let _ = dead.run_until_cancelled(self.play_all(acts)).await;
    }

    async fn play_all(&self, acts: Vec<Act>) {
        let mut replies = Replies::default();
        for act in acts {
            if self.play_one(act, &mut replies).await.is_none() {
                return;
            }
        }
    }

    /// Plays one act. `None` skips the remaining acts.
    async fn play_one(&self, act: Act, replies: &mut Replies) -> Option<()> {
        match act {
            Act::Send(message) => self.send(Frame::message(&message, false)).await,
            Act::Answer(message) => self.send_answer(message, replies).await,
            Act::Line(text) => {
                self.send(Frame::Message {
                    text: text.into(),
                    last: true,
                })
                .await
            }
            Act::Say(text) => {
                self.send(Frame::Message {
                    text: text.into(),
                    last: false,
                })
                .await
            }
            Act::Bytes(bytes) => self.send(Frame::Raw(bytes.into())).await,
            Act::Repeat { bytes, times } => self.repeat(bytes.into(), times).await,
            Act::Wait(time) => {
                sleep(time).await;
                Some(())
            }
            Act::Progress { token, count, every } => self.progress(&token, count, every).await,
            Act::Ask(question) => {
                let reply = self.ask(&question).await?;
                replies.texts.push(reply);
                Some(())
            }
            Act::Questions(round) => self.questions(round, replies).await,
            Act::Log(line) if self.client.wants(&line) => self.send(Frame::message(&line.notice(), false)).await,
            Act::Log(_) => Some(()),
            Act::SetLevel(level) => {
                self.client.set_level(level);
                Some(())
            }
            Act::Subscribe { uri, on } => {
                self.client.subscribe(uri, on);
                Some(())
            }
            Act::Apply(effect) => {
                self.server.apply(&effect).await;
                Some(())
            }
            Act::Record(nonce) => {
                self.server.record(&nonce);
                Some(())
            }
            Act::Gate(gate) => {
                self.server.pass_gate(&gate).await;
                Some(())
            }
            Act::Announce { count, every } => {
                for _ in 0..count {
                    self.server.notify(notification::TOOLS_LIST_CHANGED, &Value::Null).await;
                    sleep(every).await;
                }
                Some(())
            }
            Act::Listen { id, filter, limit } => {
                self.server
                    .listen(self.frames.clone(), Audience::Modern(id.clone(), filter));
                match limit {
                    Some(limit) => sleep(limit).await,
                    None => self.frames.closed().await,
                }
                self.server.stop_listening(&self.frames, &id);
                Some(())
            }
            Act::Stderr { text, times } => {
                // Blocks the whole process if stderr is not read, as a real server would.
                for _ in 0..times {
                    if !self.server.is_process() || std::io::stderr().write_all(text.as_bytes()).is_err() {
                        break;
                    }
                }
                Some(())
            }
            Act::StopReading => {
                self.reading.send_replace(false);
                Some(())
            }
            Act::Hang => {
                self.frames.closed().await;
                None
            }
            Act::Close => self.send(Frame::Close).await,
            Act::Reset => self.send(Frame::Reset).await,
            Act::Die(code) => {
                self.die(code).await;
                None
            }
        }
    }

    async fn send(&self, frame: Frame) -> Option<()> {
        self.frames.send(frame).await.ok()
    }

    async fn repeat(&self, bytes: Bytes, times: Option<u64>) -> Option<()> {
        let mut sent = 0;
        while times.is_none_or(|times| sent < times) {
            sent += 1;
            self.send(Frame::Raw(bytes.clone())).await?;
        }
        Some(())
    }

    async fn send_answer(&self, mut message: Value, replies: &Replies) -> Option<()> {
        answer::append(&mut message, &replies.texts);
        if replies.refused && message["result"]["content"].is_array() {
            message["result"]["isError"] = true.into();
        }
        self.answered.store(true, Ordering::SeqCst);
        // The client may disconnect after its response. Acts that follow concern other clients.
        let _ = self.send(Frame::message(&message, true)).await;
        Some(())
    }

    async fn progress(&self, token: &Value, count: Option<u64>, every: Duration) -> Option<()> {
        let mut done = 0;
        while count.is_none_or(|count| done < count) {
            done += 1;
            let mut params = json!({ "progressToken": token, "progress": done });
            if let Some(count) = count {
                params["total"] = count.into();
            }
            let notice = json!({ "jsonrpc": "2.0", "method": notification::PROGRESS, "params": params });
            self.send(Frame::message(&notice, false)).await?;
            if !every.is_zero() {
                sleep(every).await;
            }
        }
        Some(())
    }

    /// Asks all questions of a round, then waits for their answers.
    async fn questions(&self, round: Vec<Question>, replies: &mut Replies) -> Option<()> {
        let mut open = Vec::new();
        for question in round {
            let message = self.build_request(&question);
            let answer = self.open_question(&message).await?;
            open.push((question.key, message, answer));
        }
        for (key, message, answer) in open {
            let reply = self.reply(&message, answer).await;
            let result = match reply.get("result") {
                Some(result) => result.clone(),
                None => {
                    replies.refused = true;
                    json!({ "refused": reply["error"] })
                }
            };
            replies.texts.push(json!({ key: result }));
        }
        Some(())
    }

    /// The request for a question. Its id is the key, with a number if a question with that id is open.
    fn build_request(&self, question: &Question) -> Value {
        let Question { key, method, params } = question;
        let asked = lock(&self.asked);
        let names = std::iter::once(key.clone()).chain((2..).map(|number| format!("{key}-{number}")));
        let id = names
            .map(Value::String)
            .find(|name| !asked.contains_key(&name.to_string()));
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    /// Sends a request to the client. Returns its response, or a note that there was none.
    async fn ask(&self, question: &Value) -> Option<Value> {
        let answer = self.open_question(question).await?;
        Some(self.reply(question, answer).await)
    }

    async fn open_question(&self, question: &Value) -> Option<oneshot::Receiver<Value>> {
        let (answered, answer) = oneshot::channel();
        lock(&self.asked).insert(question["id"].to_string(), answered);
        self.send(Frame::message(question, false)).await?;
        Some(answer)
    }

    async fn reply(&self, question: &Value, answer: oneshot::Receiver<Value>) -> Value {
        match timeout(ASK_LIMIT, answer).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(_)) | Err(_) => {
                lock(&self.asked).remove(&question["id"].to_string());
                json!({ "unanswered": question["method"] })
            }
        }
    }

    /// Passes the client's response to the act that waits for it.
    pub(crate) fn pass_on_answer(&self, message: Value) {
        let asked = lock(&self.asked).remove(&message["id"].to_string());
        if let Some(asked) = asked {
            // The request may have timed out.
            let _ = asked.send(message);
        }
    }

    async fn die(&self, code: i32) {
        if self.server.is_process() {
            self.flush().await;
            std::process::exit(code);
        }
        self.dead.cancel();
    }

    /// Waits until all queued frames are written, so that a process that exits does not lose its last output.
    pub(crate) async fn flush(&self) {
        let flushed = timeout(Duration::from_secs(1), async {
            let (mark, mut written) = mpsc::channel(1);
            self.send(Frame::Mark(mark)).await;
            written.recv().await
        });
        // A client that does not read loses the output anyway.
        let _ = flushed.await;
    }
}
