//! Faults while no call is in flight.

use std::time::Duration;

use pegboard_testkit::Fault;
use serde_json::json;

use super::{case, play};
use crate::{
    matrix::case::{Case, Wire},
    support::*,
};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case(
            "F075",
            "the server dies while idle",
            "it is restarted, and no caller notices",
            play!(|stage| {
                let dying = stage.fake().fault(Fault::DiesIdle { after_ms: 300 });
                let fake = dying.then_after(1, stage.fake());
                stage.open_listed(&fake).await;
                // Between two HTTP requests there is no connection whose end the board could notice.
                let again = stage.until(secs(8), |stage| match stage.cell.wire {
                    Wire::Http1 | Wire::Http2 => stage.control().is_some_and(|control| control.starts() > 1),
                    _ => stage.status().restarts > 0 && stage.status().state == pegboard::State::Ready,
                });
                let again = again.await;
                // A request that is written while its connection is being closed may rightly be lost.
                tokio::time::sleep(Duration::from_millis(300)).await;
                format!("started again: {again}; {}", stage.call().await)
            }),
            "started again: true; ok, ran 1",
        )
        .within(4_000),
        case(
            "F078",
            "100 callers reach a server that is not connected yet",
            "one connection is opened",
            play!(|stage| {
                stage.allow_long_calls();
                stage.limit(|limits| limits.max_in_flight = 100);
                let fake = stage.fake();
                stage.open(&fake).await;
                let replies = stage.calls(100, json!({})).await;
                let well = replies.iter().filter(|reply| !reply.is_error()).count();
                // The probe for the modern era is part of the same attempt.
                let starts = stage.count("initialize").max(stage.count("server/discover"));
                format!("{well} ok; {starts} handshake")
            }),
            "100 ok; 1 handshake",
        )
        .within(6_000),
        case(
            "F080",
            "the listen stream ends",
            "it is reopened, and calls go on",
            play!(|stage| {
                let (after_ms, gracefully) = (100, true);
                let fake = stage.fake().fault_on(
                    pegboard_testkit::When::method("subscriptions/listen").first(1),
                    Fault::NoticeStreamEnds { after_ms, gracefully },
                );
                stage.open_listed(&fake).await;
                let again = stage
                    .until(secs(10), |stage| stage.count("subscriptions/listen") > 1)
                    .await;
                format!("opened again: {again}; {}", stage.call().await)
            }),
            "opened again: true; ok, ran 1",
        )
        .on("SMH2W")
        .in_era("m")
        .within(3_000),
    ]
}
