//! The event stream of one call: created, progress for each notification of the server, completed.

use std::{
    fmt,
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::Stream;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use pegboard_client::session::Progress;
use pegboard_tools::outcome::Reply;

/// An event of one call. The last one is always [`CallEvent::Completed`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
#[non_exhaustive]
pub enum CallEvent {
    /// The call was accepted.
    Created {
        /// Its id.
        id: String,
        /// The tool as the caller named it.
        name: String,
    },
    /// The server sent a progress notification.
    Progress(Progress),
    /// The call ended.
    Completed(Box<Reply>),
}

impl CallEvent {
    /// The name of the event in JSON, for labels: `created`, `progress` or `completed`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Created { .. } => "created",
            Self::Progress(_) => "progress",
            Self::Completed(_) => "completed",
        }
    }
}

/// The event stream of one call. Dropping it cancels the call.
#[must_use = "the call runs only while its events are awaited"]
pub struct CallStream {
    state: StreamState,
    steps: mpsc::Receiver<Progress>,
}

enum StreamState {
    New { id: String, name: String, call: Running },
    Running(Running),
    Answered(Box<Reply>),
    Ended,
}

type Running = Pin<Box<dyn Future<Output = Reply> + Send>>;

impl CallStream {
    pub(crate) fn new(id: String, name: String, call: Running, steps: mpsc::Receiver<Progress>) -> Self {
        Self {
            state: StreamState::New { id, name, call },
            steps,
        }
    }

    /// Returns the next event, or `None` after the last one. Cancel-safe.
    pub async fn next(&mut self) -> Option<CallEvent> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl Stream for CallStream {
    type Item = CallEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<CallEvent>> {
        loop {
            match std::mem::replace(&mut self.state, StreamState::Ended) {
                StreamState::New { id, name, call } => {
                    self.state = StreamState::Running(call);
                    return Poll::Ready(Some(CallEvent::Created { id, name }));
                }
                StreamState::Running(mut call) => {
                    if let Poll::Ready(Some(step)) = self.steps.poll_recv(context) {
                        self.state = StreamState::Running(call);
                        return Poll::Ready(Some(CallEvent::Progress(step)));
                    }
                    match call.as_mut().poll(context) {
                        Poll::Ready(reply) => self.state = StreamState::Answered(Box::new(reply)),
                        Poll::Pending => {
                            self.state = StreamState::Running(call);
                            return Poll::Pending;
                        }
                    }
                }
                // Progress that arrived before the response is delivered before it.
                StreamState::Answered(reply) => {
                    let Ok(step) = self.steps.try_recv() else {
                        return Poll::Ready(Some(CallEvent::Completed(reply)));
                    };
                    self.state = StreamState::Answered(reply);
                    return Poll::Ready(Some(CallEvent::Progress(step)));
                }
                StreamState::Ended => return Poll::Ready(None),
            }
        }
    }
}

impl fmt::Debug for CallStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            StreamState::New { .. } => "new",
            StreamState::Running(_) => "running",
            StreamState::Answered(_) => "answered",
            StreamState::Ended => "ended",
        };
        f.debug_struct("CallStream").field("state", &state).finish()
    }
}
