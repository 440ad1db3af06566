//! The times of `--time`: of the start, of the queue, of the server, and our own share.

use std::{fmt, sync::Arc, time::Duration};

use pegboard::{Outcome, Reply, ToolCall, journal};
use pegboard_protocol::meta::pegboard::TIMES;
use serde::Serialize;

/// What is measured while the call is made.
#[derive(Debug, Default)]
pub(super) struct CallTimes {
    /// Until the tool was known, and so its server ready.
    pub(super) start: Duration,
    parts: Option<Arc<journal::CallTimes>>,
}

/// Where the time of the command went, in milliseconds.
#[derive(Debug, Serialize)]
pub(super) struct TimeParts {
    start_ms: f64,
    queued_ms: f64,
    server_ms: f64,
    /// Everything else, with the daemon if the call went through it.
    own_ms: f64,
    total_ms: f64,
}

/// The times that a daemon adds to its result.
#[derive(serde::Deserialize)]
struct OfDaemon {
    queued_ms: f64,
    server_ms: f64,
}

impl CallTimes {
    /// Measures the parts of a call. A daemon is asked for its own.
    pub(super) fn follow(&mut self, call: ToolCall, is_in_daemon: bool) -> ToolCall {
        let parts = Arc::<journal::CallTimes>::default();
        self.parts = Some(parts.clone());
        let call = call.times(parts);
        match is_in_daemon {
            true => call.meta(TIMES, true),
            false => call,
        }
    }

    /// The parts of all that the command took. Removes the times of the daemon from the reply.
    pub(super) fn finish(self, reply: &mut Reply, total: Duration) -> TimeParts {
        let millis = |duration: Duration| duration.as_secs_f64() * 1000.0;
        let (queued, served) = self
            .parts
            .map_or_else(Default::default, |parts| (parts.queued(), parts.served()));
        let (mut queued, mut server) = (millis(queued), millis(served));
        if let Some(of_daemon) = take_from(reply) {
            queued += of_daemon.queued_ms;
            server = of_daemon.server_ms;
        }
        let (start, total) = (millis(self.start), millis(total));
        TimeParts {
            start_ms: round(start),
            queued_ms: round(queued),
            server_ms: round(server),
            own_ms: round((total - start - queued - server).max(0.0)),
            total_ms: round(total),
        }
    }
}

fn take_from(reply: &mut Reply) -> Option<OfDaemon> {
    let (Outcome::Done(answer) | Outcome::ToolFailed(answer)) = &mut reply.outcome else {
        return None;
    };
    let meta = answer.meta.as_mut()?;
    let times = meta.remove(TIMES)?;
    if meta.is_empty() {
        answer.meta = None;
    }
    serde_json::from_value(times).ok()
}

/// Microseconds are exact enough.
fn round(millis: f64) -> f64 {
    (millis * 1000.0).round() / 1000.0
}

impl fmt::Display for TimeParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} ms: ", self.total_ms)?;
        if self.start_ms >= 0.05 {
            write!(f, "start {:.1}, ", self.start_ms)?;
        }
        write!(
            f,
            "queue {:.1}, server {:.1}, pegboard {:.1}",
            self.queued_ms, self.server_ms, self.own_ms
        )
    }
}

#[cfg(test)]
mod tests {
    use pegboard::Answer;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_parts_add_up_to_the_whole() {
        let mut answer = Answer::from_text("hi");
        let meta = json!({TIMES: {"queued_ms": 2.0, "server_ms": 30.0}});
        answer.meta = serde_json::from_value(meta).unwrap();
        let mut reply = Reply::unanswered("1", "fx.echo", Outcome::Done(answer), Duration::ZERO);
        let measured = CallTimes {
            start: Duration::from_millis(100),
            parts: None,
        };
        let parts = measured.finish(&mut reply, Duration::from_millis(140));
        assert_eq!(
            parts.to_string(),
            "140.0 ms: start 100.0, queue 2.0, server 30.0, pegboard 8.0"
        );
        assert_eq!(
            json!(parts),
            json!({"start_ms": 100.0, "queued_ms": 2.0, "server_ms": 30.0, "own_ms": 8.0, "total_ms": 140.0})
        );
        assert!(json!(reply).get("meta").is_none());
    }
}
