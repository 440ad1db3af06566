//! Calls that are dropped while their server starts, stops or is idle.

use std::time::Duration;

use pegboard::{ToolCall, config::Start};
use pegboard_testkit::{is_alive, read_log};

use crate::{drops::fixtures::*, support::*};

/// The caller that caused a start may be dropped at any point. The start continues for the next caller, and happens once.
#[tokio::test]
async fn a_call_can_be_dropped_at_any_moment_of_a_start() {
    for (wire, era) in WIRES {
        let before = tasks();
        for lingers in [false, true] {
            for polls in 0.. {
                assert!(polls < MANY, "the call did not end");
                let folder = tempfile::tempdir().unwrap();
                let log = folder.path().join("log");
                let fake = fake(era).log(&log);
                let fixture = Fixture::new(wire, fake, |settings| settings.start = Start::Lazy).await;
                let tools = fixture.board.toolset();
                let ended = ends_within(polls, lingers, tools.call(ToolCall::new("fx.asks"))).await;
                let what = format!("a start over {wire:?} left after {polls} polls");
                fixture.is_as_before(&what).await;
                fixture.board.shutdown().await;
                let spawned = read_log(&log).unwrap().spawned;
                if wire == Wire::Stdio {
                    assert_eq!(spawned.len(), 1, "{what}");
                    assert!(!is_alive(spawned[0]), "{what}, and a process stayed");
                }
                drop((tools, fixture));
                if ended {
                    break;
                }
            }
        }
        at_most(before, &format!("starts over {wire:?} in {era:?}")).await;
    }
}

/// A board may be dropped together with a call that was just made.
#[tokio::test]
async fn a_board_can_be_dropped_at_any_moment_of_a_start() {
    let before = tasks();
    for polls in 0..40 {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let fake = fake(pegboard_testkit::Era::Legacy).log(&log);
        let fixture = Fixture::new(Wire::Stdio, fake, |settings| settings.start = Start::Lazy).await;
        let tools = fixture.board.toolset();
        ends_within(polls, polls % 2 == 0, tools.call(ToolCall::new("fx.t"))).await;
        drop((tools, fixture));
        at_most(before, &format!("a board that was dropped after {polls} polls")).await;
        for pid in spawned(&log) {
            gone(pid, secs(10)).await;
        }
    }
}

/// Enabling, disabling and reconnecting a server can be dropped at any point, and repeated.
#[tokio::test]
async fn changes_of_a_server_can_be_dropped_at_any_moment() {
    for wire in [Wire::Memory, Wire::Stdio, Wire::Http] {
        let fixture = Fixture::new(wire, fake(pegboard_testkit::Era::Legacy), |settings| {
            settings.limits.stop_timeout = Duration::from_millis(200);
        })
        .await;
        let (board, fx) = (&fixture.board, name("fx"));
        let works = async |what: &str| {
            let reply = tokio::time::timeout(PATIENCE, call(&board.toolset(), "fx.t", serde_json::json!({}))).await;
            assert_eq!(reply.expect("an answer").text(), "done", "after {what}");
        };
        works("the start").await;
        let before = tasks();
        for polls in 0..12 {
            ends_within(polls, polls % 2 == 0, board.reconnect(&fx)).await;
            works("reconnecting").await;
            ends_within(polls, polls % 2 == 0, board.disable(&fx)).await;
            board.enable(&fx).await;
            works("switching it off and on").await;
        }
        at_most(before + fixture.slack(), "changing a server").await;
        board.shutdown().await;
    }
}
