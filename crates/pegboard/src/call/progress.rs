//! What a server tells about a call while it runs, passed on to the caller and to the board's listeners.

use std::future::Future;

use tokio::sync::mpsc;

use super::ToolCall;
use crate::{
    event::{Event, EventSender},
    session::Progress,
};

/// How many steps may wait to be passed on. Only the newest matter, so a few are enough.
const STEPS: usize = 16;

/// Whether anybody wants to know how far a call is.
pub(super) fn is_wanted(call: &ToolCall, events: &EventSender) -> bool {
    call.progress.is_some() || events.has_subscribers()
}

/// Runs an exchange and passes its progress on meanwhile.
pub(super) async fn passed_on<F: Future>(
    call: &ToolCall,
    events: &EventSender,
    exchange: impl FnOnce(Option<mpsc::Sender<Progress>>) -> F,
) -> F::Output {
    let (sink, mut steps) = mpsc::channel(STEPS);
    let mut exchange = std::pin::pin!(exchange(Some(sink)));
    loop {
        tokio::select! {
            biased;
            Some(step) = steps.recv() => pass_on(call, events, step),
            output = &mut exchange => {
                // What was told before the answer came is passed on before it.
                while let Ok(step) = steps.try_recv() {
                    pass_on(call, events, step);
                }
                return output;
            }
        }
    }
}

fn pass_on(call: &ToolCall, events: &EventSender, step: Progress) {
    events.send(|| Event::CallProgress {
        id: call.id.clone(),
        progress: step.progress,
        total: step.total,
        message: step.message.clone(),
    });
    if let Some(sink) = &call.progress {
        let _ = sink.try_send(step);
    }
}
