//! One call as a stream of events: created, progress as often as the server tells it, completed.

use std::{fmt, future::Future, pin::Pin};

use serde::Serialize;
use tokio::sync::mpsc;

use crate::{outcome::Reply, session::Progress};

/// What happens to one call, in order. The last event is always [`CallEvent::Completed`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallEvent {
    /// The call was taken on.
    Created {
        /// Its id.
        id: String,
        /// The tool as it was asked for.
        name: String,
    },
    /// The server told how far it has come.
    Progress(Progress),
    /// It ended.
    Completed(Box<Reply>),
}

/// The events of one call. Dropping it cancels the call.
#[must_use = "the call runs only while its events are awaited"]
pub struct CallStream {
    state: State,
    steps: mpsc::Receiver<Progress>,
}

enum State {
    New { id: String, name: String, call: Running },
    Running(Running),
    Ended,
}

type Running = Pin<Box<dyn Future<Output = Reply> + Send>>;

impl CallStream {
    pub(crate) fn new(id: String, name: String, call: Running, steps: mpsc::Receiver<Progress>) -> Self {
        Self {
            state: State::New { id, name, call },
            steps,
        }
    }

    /// The next event; `None` after the last one. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<CallEvent> {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::New { id, name, call } => {
                self.state = State::Running(call);
                Some(CallEvent::Created { id, name })
            }
            State::Running(call) => {
                self.state = State::Running(call);
                self.step().await
            }
            State::Ended => None,
        }
    }

    async fn step(&mut self) -> Option<CallEvent> {
        let State::Running(call) = &mut self.state else {
            return None;
        };
        let reply = tokio::select! {
            biased;
            Some(step) = self.steps.recv() => return Some(CallEvent::Progress(step)),
            reply = call => reply,
        };
        // What was told before the answer came is told before it.
        if let Ok(step) = self.steps.try_recv() {
            self.state = State::Running(Box::pin(std::future::ready(reply)));
            return Some(CallEvent::Progress(step));
        }
        self.state = State::Ended;
        Some(CallEvent::Completed(Box::new(reply)))
    }
}

impl fmt::Debug for CallStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::New { .. } => "new",
            State::Running(_) => "running",
            State::Ended => "ended",
        };
        f.debug_struct("CallStream").field("state", &state).finish()
    }
}
