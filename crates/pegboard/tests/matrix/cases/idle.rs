//! Faults while no call is under way.

use std::time::Duration;

use pegboard_testkit::Fault;
use serde_json::json;

use super::{BOTH, EVERY, play};
use crate::{
    case::{Case, Wire},
    support::*,
};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case {
            id: "F075",
            fault: "the server dies while idle",
            must: "it is started again, and no caller sees it",
            wires: EVERY,
            eras: BOTH,
            bound: 4_000,
            how: play!(|stage| {
                let dying = stage.fake().fault(Fault::DiesIdle { after_ms: 300 });
                let fake = dying.then_after(1, stage.fake());
                stage.open(&fake).await;
                stage.warm().await;
                // Between two HTTP requests there is nothing that could end.
                let again = stage.until(secs(8), |stage| match stage.cell.wire {
                    Wire::Http1 | Wire::Http2 => stage.control().is_some_and(|control| control.starts() > 1),
                    _ => stage.status().restarts > 0 && stage.status().state == pegboard::State::Ready,
                });
                let again = again.await;
                // A request that is written while the end of its connection is on its way may be lost, and is told as such.
                tokio::time::sleep(Duration::from_millis(300)).await;
                format!("started again: {again}; {}", stage.call().await)
            }),
            ends: &[("", "", "started again: true; ok, ran 1")],
        },
        Case {
            id: "F078",
            fault: "100 callers reach a server that is not there yet",
            must: "one connection",
            wires: EVERY,
            eras: BOTH,
            bound: 6_000,
            how: play!(|stage| {
                stage.limit(|limits| limits.in_flight = 100);
                let fake = stage.fake();
                stage.open(&fake).await;
                let replies = stage.calls(100, json!({})).await;
                let well = replies.iter().filter(|reply| !reply.is_error()).count();
                // The probe for the newest era is part of the same attempt.
                let starts = stage.count("initialize").max(stage.count("server/discover"));
                format!("{well} ok; {starts} handshake")
            }),
            ends: &[("", "", "100 ok; 1 handshake")],
        },
        Case {
            id: "F080",
            fault: "the stream of notices ends",
            must: "it is opened again, and calls go on",
            wires: "SMH2W",
            eras: "m",
            bound: 3_000,
            how: play!(|stage| {
                let (after_ms, gracefully) = (100, true);
                let fake = stage.fake().fault_on(
                    pegboard_testkit::When::method("subscriptions/listen").first(1),
                    Fault::NoticeStreamEnds { after_ms, gracefully },
                );
                stage.open(&fake).await;
                stage.warm().await;
                let again = stage
                    .until(secs(10), |stage| stage.count("subscriptions/listen") > 1)
                    .await;
                format!("opened again: {again}; {}", stage.call().await)
            }),
            ends: &[("", "", "opened again: true; ok, ran 1")],
        },
    ]
}
