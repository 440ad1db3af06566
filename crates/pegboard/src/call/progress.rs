//! Forwards progress notifications of a call to the caller and to the board's subscribers.

use std::future::Future;

use tokio::sync::mpsc;

use super::ToolCall;
use crate::{
    event::{Event, EventSender},
    session::Progress,
};

/// How many updates may wait to be forwarded. Only the newest matter, so a few are enough.
const STEPS: usize = 16;

/// Returns whether the caller or a subscriber wants progress.
pub(super) fn is_wanted(call: &ToolCall, events: &EventSender) -> bool {
    call.progress.is_some() || events.is_heard()
}

/// Runs an exchange and forwards its progress meanwhile.
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
                // Progress that arrived before the response is forwarded before it.
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
