//! The healthy server on the same board, which is called throughout a cell.

use std::time::Duration;

use pegboard::{Outcome, Pegboard, ToolCall};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::*;

/// The pause between two calls of the healthy server.
const BEAT: Duration = Duration::from_millis(25);

/// The results of the calls of the healthy server.
#[derive(Debug, Default)]
pub(crate) struct Neighbour {
    pub(crate) answered: u32,
    pub(crate) failed: u32,
    pub(crate) slowest: Duration,
}

/// Calls the healthy server until `ended` is cancelled, and once after that.
pub(super) async fn call_repeatedly(board: Pegboard, ended: CancellationToken) -> Neighbour {
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let mut seen = Neighbour::default();
    loop {
        let is_last = ended.is_cancelled();
        let began = Instant::now();
        let reply = tools.call(ToolCall::new("ok.hello").timeout(secs(20))).await;
        seen.slowest = seen.slowest.max(began.elapsed());
        match reply.outcome {
            Outcome::Done(_) => seen.answered += 1,
            _ => seen.failed += 1,
        }
        if is_last {
            return seen;
        }
        tokio::select! {
            () = ended.cancelled() => {}
            () = tokio::time::sleep(BEAT) => {}
        }
    }
}
