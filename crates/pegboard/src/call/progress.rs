//! Forwards progress notifications of a call to the caller and to the board's subscribers.

use std::future::Future;

use tokio::sync::mpsc;

use super::view::View;
use crate::event::{Event, EventSender};
use pegboard_client::session::Progress;
use pegboard_tools::tool_call::ToolCall;

/// How many updates may wait to be forwarded. Further updates are dropped.
const MAX_PENDING: usize = 16;

/// Returns whether the caller or a subscriber receives progress.
pub(super) fn is_wanted(call: &ToolCall, events: &EventSender) -> bool {
    call.progress.is_some() || events.has_subscribers()
}

/// Runs an exchange and forwards its progress meanwhile.
pub(super) async fn forward<F: Future>(
    call: &ToolCall,
    view: &View,
    exchange: impl FnOnce(Option<mpsc::Sender<Progress>>) -> F,
) -> F::Output {
    let (sink, mut updates) = mpsc::channel(MAX_PENDING);
    let mut exchange = std::pin::pin!(exchange(Some(sink)));
    loop {
        tokio::select! {
            biased;
            Some(update) = updates.recv() => forward_update(call, view, update),
            output = &mut exchange => {
                // Progress that arrived before the response is forwarded before it.
                while let Ok(update) = updates.try_recv() {
                    forward_update(call, view, update);
                }
                return output;
            }
        }
    }
}

fn forward_update(call: &ToolCall, view: &View, update: Progress) {
    view.events.send(|| Event::CallProgress {
        id: call.id.clone(),
        progress: update.progress,
        total: update.total,
        message: update.message.clone(),
        principal: view.principal.clone(),
    });
    if let Some(sink) = &call.progress {
        let _ = sink.try_send(update);
    }
}
