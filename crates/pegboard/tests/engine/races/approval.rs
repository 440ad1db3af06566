//! Calls that wait for approval while their server changes.

use pegboard::*;

use crate::{
    races::fixtures::*,
    support::{assert_outcome, name, process},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_for_approval_survives_two_replacements() {
    let (_folder, [log]) = files(["log"]);
    let mut held = HeldCall::start(process(&good(&log, "one"))).await;
    held.board.apply(one(needs_approval(process(&good(&log, "two"))))).await;
    held.board
        .apply(one(needs_approval(process(&good(&log, "three")))))
        .await;
    let reply = held.approve().await;
    assert_eq!(reply.text(), "three");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_for_approval_does_not_reach_a_new_server_that_denies_the_tool() {
    let (_folder, [log]) = files(["log"]);
    let mut held = HeldCall::start(process(&good(&log, "one"))).await;
    let mut denied = process(&good(&log, "two"));
    denied.deny = vec!["hello".into()];
    held.board.apply(one(denied)).await;
    let reply = held.approve().await;
    assert!(
        reply.is_error(),
        "the new server, whose config denies the tool, was called and said: {}",
        reply.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_for_approval_is_not_made_after_its_view_was_closed() {
    let (_folder, [log]) = files(["log"]);
    let mut held = HeldCall::start(process(&good(&log, "one"))).await;
    held.view.close().await;
    let reply = held.approve().await;
    assert!(reply.is_error(), "called after the view was closed: {}", reply.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn drain_waits_for_a_call_that_waits_for_approval() {
    let (_folder, [log]) = files(["log"]);
    let mut held = HeldCall::start(process(&good(&log, "one"))).await;
    let drained = held.board.drain(ms(300)).await;
    let reply = held.approve().await;
    assert!(
        !drained || reply.is_error(),
        "drained, and then the call was made: {}",
        reply.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn approved_calls_do_not_reach_what_was_removed_or_disabled() {
    for remove in [false, true] {
        let (_folder, [log]) = files(["log"]);
        let mut held = HeldCall::start(process(&good(&log, "x"))).await;
        if remove {
            held.board.disconnect(&name("fx")).await;
        } else {
            held.board.disable(&name("fx")).await;
        }
        assert_outcome(&held.approve().await, Kind::Unavailable, false);
        assert_eq!((calls(&log), alive(&log).len()), (0, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_goes_to_the_successor_keeps_to_its_limits() {
    let (_folder, [log, new, gate]) = files(["log", "new", "gate"]);
    let mut held = HeldCall::start(process(&gated(&log, &gate, "x"))).await;
    let mut serial = process(&gated(&new, &gate, "y"));
    serial.policy.serial = true;
    held.board.apply(one(serial)).await;
    let v = held.board.toolset();
    let busy = tokio::spawn(async move { v.call(ToolCall::new("fx.slow")).await });
    until("it arrives", || calls(&new) == 1).await;
    // The successor is busy and takes one call at a time, so this one must end without it.
    assert!(held.approve().await.is_error());
    assert_eq!(calls(&new), 1);
    std::fs::write(&gate, "").unwrap();
    assert_eq!(busy.await.unwrap().text(), "done");
}
