//! [`RequestStream`]: what a request in flight sends to its client before the response. It allocates nothing until it is used.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::atomic::{AtomicBool, AtomicU8, Ordering},
    task::Waker,
};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use pegboard_base::sync::Mutex;
use tokio::sync::{Notify, oneshot};

use super::{early_end::EarlyEnd, log_level::LogLevel, outgoing::Outgoing};

/// The capacity of the queue. When it is full the work waits, so that a client that does not read delays only its own request.
const QUEUE: usize = 16;

/// The client has cancelled the request.
const CANCELLED: u8 = 1;

/// What the client wants to see of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Wants {
    /// The token for progress as the client wrote it; `None` if it wants no progress.
    pub(super) progress_token: Option<Bytes>,
    /// The lowest level of log messages; `None` if it wants none.
    pub(super) level: Option<LogLevel>,
}

impl Wants {
    fn is_any(&self) -> bool {
        self.progress_token.is_some() || self.level.is_some()
    }
}

/// A question to a modern client, which stands in a result that asks for input.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) key: String,
    pub(super) method: String,
    /// The text of an object.
    pub(super) params: Bytes,
    pub(super) answer: oneshot::Sender<Bytes>,
}

/// The messages and questions of one request, from the work to the wire.
#[derive(Default)]
pub(super) struct RequestStream {
    /// Locked for a push or a pop only, never across an await.
    state: Mutex<StreamState>,
    /// Whether the client wants anything. Most clients do not, and are not locked.
    has_wants: AtomicBool,
    /// Whether there is or was anything in the state. Most requests never send anything, and are not locked.
    is_used: AtomicBool,
    /// 0 while the request goes on, [`CANCELLED`], or the number of an [`EarlyEnd`].
    end: AtomicU8,
    /// Whether the client was asked and has not come back yet.
    is_parked: AtomicBool,
    /// The task that polls [`super::running::Running`].
    reader: AtomicWaker,
    /// Notified when the queue has room again or takes no more.
    space: Notify,
}

#[derive(Debug, Default)]
struct StreamState {
    wants: Wants,
    mode: Mode,
    queue: VecDeque<Outgoing>,
    questions: Vec<Question>,
    asked: u64,
    /// Answers that the client gave before it was asked, by the server's name for the question.
    given: HashMap<String, Bytes>,
}

/// Where messages go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mode {
    #[default]
    Open,
    /// The wire cannot carry them, or no request of the client is attached. They are dropped.
    Muted,
}

impl RequestStream {
    pub(super) fn new(wants: Wants) -> Self {
        let has_wants = AtomicBool::new(wants.is_any());
        let state = StreamState {
            wants,
            ..StreamState::default()
        };
        Self {
            state: Mutex::new(state),
            has_wants,
            ..Self::default()
        }
    }

    pub(super) fn wants(&self) -> Wants {
        if !self.has_wants.load(Ordering::Acquire) {
            return Wants::default();
        }
        self.state.lock().wants.clone()
    }

    /// Queues a message, and waits while the queue is full. Drops it if the stream is muted.
    pub(super) async fn push(&self, message: Outgoing) {
        loop {
            let space = self.space.notified();
            let mut space = std::pin::pin!(space);
            // Enabled before the check, so that a message taken in between is not missed.
            space.as_mut().enable();
            {
                let mut state = self.state.lock();
                if state.mode == Mode::Muted {
                    return;
                }
                if state.queue.len() < QUEUE {
                    state.queue.push_back(message);
                    drop(state);
                    return self.wake_used();
                }
            }
            space.await;
        }
    }

    /// Queues a message that must not wait, beyond the capacity if need be. Returns it if the stream is muted.
    pub(super) fn push_now(&self, message: Outgoing) -> Result<(), Outgoing> {
        let mut state = self.state.lock();
        if state.mode == Mode::Muted {
            return Err(message);
        }
        state.queue.push_back(message);
        drop(state);
        self.wake_used();
        Ok(())
    }

    /// Takes the next message.
    pub(super) fn pop(&self) -> Option<Outgoing> {
        if !self.is_used.load(Ordering::Acquire) {
            return None;
        }
        let message = self.state.lock().queue.pop_front();
        if message.is_some() {
            self.space.notify_one();
        }
        message
    }

    /// Adds a question. Returns its key and where the answer arrives. The key is `name`, unless there is none or it is in use. A question
    /// with a name that the client has answered in advance is not added.
    pub(super) fn ask(&self, name: Option<&str>, method: &str, params: Bytes) -> (String, oneshot::Receiver<Bytes>) {
        let (answer, answered) = oneshot::channel();
        let mut state = self.state.lock();
        if let Some((name, given)) = name.and_then(|name| state.given.remove_entry(name)) {
            drop(state);
            // The receiver is here.
            let _ = answer.send(given);
            return (name, answered);
        }
        let key = state.free_key(name);
        state.questions.push(Question {
            key: key.clone(),
            method: method.to_owned(),
            params,
            answer,
        });
        drop(state);
        self.wake_used();
        (key, answered)
    }

    /// Adds answers to questions that are yet to come.
    pub(super) fn give(&self, answers: HashMap<String, Bytes>) {
        self.state.lock().given = answers;
    }

    /// Removes a question that the work no longer waits for.
    pub(super) fn withdraw(&self, key: &str) {
        self.state.lock().questions.retain(|question| question.key != key);
    }

    /// Answers the question with this key. Returns `false` if there is none.
    pub(super) fn answer(&self, key: &str, answer: Bytes) -> bool {
        let mut state = self.state.lock();
        let Some(index) = state.questions.iter().position(|question| question.key == key) else {
            return false;
        };
        let question = state.questions.remove(index);
        drop(state);
        question.answer.send(answer).is_ok()
    }

    /// Whether a question is open.
    pub(super) fn has_questions(&self) -> bool {
        self.is_used.load(Ordering::Acquire) && !self.state.lock().questions.is_empty()
    }

    /// Calls `read` with the open questions.
    pub(super) fn with_questions<T>(&self, read: impl FnOnce(&[Question]) -> T) -> T {
        read(&self.state.lock().questions)
    }

    /// Drops messages from now on, also those that are queued.
    pub(super) fn mute(&self) {
        let mut state = self.state.lock();
        state.mode = Mode::Muted;
        let dropped = std::mem::take(&mut state.queue);
        drop(state);
        drop(dropped);
        self.space.notify_waiters();
    }

    /// Drops messages until the client comes back with its answers.
    pub(super) fn park(&self) {
        self.mute();
        self.is_parked.store(true, Ordering::Release);
    }

    /// Whether the client was asked and has not come back yet.
    pub(super) fn is_parked(&self) -> bool {
        self.is_parked.load(Ordering::Acquire)
    }

    /// Carries messages again, those that the client wants now.
    pub(super) fn reopen(&self, wants: Wants) {
        self.is_parked.store(false, Ordering::Release);
        let mut state = self.state.lock();
        state.mode = Mode::Open;
        self.has_wants.store(wants.is_any(), Ordering::Release);
        state.wants = wants;
    }

    /// Cancels the request for its client, who gets no response.
    pub(super) fn cancel(&self) {
        self.set_end(CANCELLED);
    }

    /// Ends the request early. The client is told.
    pub(super) fn end(&self, end: EarlyEnd) {
        self.set_end(end as u8);
    }

    /// The first end counts.
    fn set_end(&self, end: u8) {
        let _ = self.end.compare_exchange(0, end, Ordering::AcqRel, Ordering::Acquire);
        self.reader.wake();
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.end.load(Ordering::Acquire) == CANCELLED
    }

    /// Why the request ends early; `None` while it goes on.
    pub(super) fn early_end(&self) -> Option<EarlyEnd> {
        match self.end.load(Ordering::Acquire) {
            0 => None,
            end => EarlyEnd::from_number(end),
        }
    }

    /// Wakes `waker` for the next message, question or cancellation.
    pub(super) fn register(&self, waker: &Waker) {
        self.reader.register(waker);
    }

    pub(super) fn wake(&self) {
        self.reader.wake();
    }

    fn wake_used(&self) {
        self.is_used.store(true, Ordering::Release);
        self.reader.wake();
    }
}

impl StreamState {
    /// The key of a question: the server's name for it, or one of ours.
    fn free_key(&mut self, name: Option<&str>) -> String {
        let is_free = |key: &str| self.questions.iter().all(|question| question.key != key);
        if let Some(name) = name.filter(|name| is_free(name)) {
            return name.to_owned();
        }
        loop {
            self.asked += 1;
            let key = format!("q{}", self.asked);
            if self.questions.iter().all(|question| question.key != key) {
                return key;
            }
        }
    }
}

impl fmt::Debug for RequestStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestStream").finish_non_exhaustive()
    }
}
