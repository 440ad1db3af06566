//! To which of the calls in flight a question belongs, and when it is rejected.

use serde_json::{Map, Value, json};

use super::*;
use crate::session::host::{HostHandle, NoHost};
use pegboard_base::caller::{Caller, Principal};

fn table() -> Arc<CallsInFlight> {
    Arc::new(CallsInFlight::new(Clock::start()))
}

/// Registers a call. `who` is `view` or `view of principal`.
fn begin(calls: &Arc<CallsInFlight>, id: &str, who: &str, host: Option<&HostHandle>) -> CallInFlight {
    let (view, principal) = match who.split_once(" of ") {
        Some((view, principal)) => (view, Some(Principal::new(principal))),
        None => (who, None),
    };
    let meta: Map<String, Value> = [("trace".to_owned(), json!(id))].into_iter().collect();
    let mut caller = Caller::new(id, view, &meta);
    caller.principal = principal.as_ref();
    calls.register(OnBehalf { caller, host })
}

fn host() -> HostHandle {
    HostHandle::new(Arc::new(NoHost))
}

/// `call/view/principal` of the call that a question belongs to, `connection`, or why it is rejected.
fn shown(attribution: &Attribution) -> String {
    match attribution {
        Attribution::Connection => "connection".to_owned(),
        Attribution::Rejected(why) => (*why).to_owned(),
        Attribution::Call(owner) => {
            let caller = owner.caller();
            let principal = caller.principal.map_or("-", Principal::as_str);
            format!("{}/{}/{principal}", caller.call, caller.view)
        }
    }
}

fn attributed(calls: &Arc<CallsInFlight>) -> String {
    shown(&calls.attribute(None))
}

#[tokio::test(start_paused = true)]
async fn a_question_belongs_to_the_only_call_in_flight() {
    let calls = table();
    assert_eq!(attributed(&calls), "connection");
    let one = begin(&calls, "1", "chat", None);
    let Attribution::Call(owner) = calls.attribute(None) else {
        panic!("no call")
    };
    assert_eq!(owner.caller().meta["trace"], "1");
    assert_eq!(attributed(&calls), "1/chat/-");
    drop(one);
    assert_eq!(attributed(&calls), "connection");
    assert_eq!(calls.count(), 0);
}

#[tokio::test(start_paused = true)]
async fn of_several_calls_only_what_they_have_in_common_is_known() {
    let calls = table();
    let _one = begin(&calls, "1", "chat", None);
    let _two = begin(&calls, "2", "chat", None);
    assert_eq!(attributed(&calls), "/chat/-");
    let _three = begin(&calls, "3", "other", None);
    assert_eq!(attributed(&calls), "connection", "no principal and no host of a view");

    let calls = table();
    let _one = begin(&calls, "1", "a of alice", None);
    let _two = begin(&calls, "2", "b of alice", None);
    assert_eq!(attributed(&calls), "//alice");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_may_belong_to_two_people_is_rejected() {
    let (ours, theirs) = (host(), host());
    for (first, second) in [
        (("v of alice", None), ("v of bob", None)),
        (("v of alice", None), ("v", None)),
        (("v", Some(&ours)), ("v", Some(&theirs))),
        (("v", Some(&ours)), ("v", None)),
        (("v of alice", Some(&ours)), ("v of bob", Some(&ours))),
    ] {
        let calls = table();
        let one = begin(&calls, "1", first.0, first.1);
        let mut two = begin(&calls, "2", second.0, second.1);
        assert_eq!(attributed(&calls), AMBIGUOUS);
        // The response stream of a call leaves no doubt.
        let on_stream = calls.attribute(Some(one.owner().clone()));
        assert!(shown(&on_stream).starts_with("1/v/"), "{on_stream:?}");
        two.complete();
        drop(two);
        assert!(attributed(&calls).starts_with("1/v/"));
    }
}

/// A call that is dropped with a request in flight, and the id of the request that follows its cancellation.
fn cancelled(calls: &Arc<CallsInFlight>, who: &str, request: u64) -> u64 {
    let call = begin(calls, "x", who, None);
    call.owner().set_request(request);
    call.owner().cancelled_before(request + 1);
    request + 1
}

/// The server may have asked for a cancelled call before it read the cancellation.
#[tokio::test(start_paused = true)]
async fn a_cancelled_call_counts_for_seconds_after_the_server_has_read_the_cancellation() {
    let calls = table();
    let probe = cancelled(&calls, "v of alice", 1);
    assert_eq!(attributed(&calls), NO_CALL);
    let bobs = begin(&calls, "2", "v of bob", None);
    tokio::time::advance(CROSSING / 2).await;
    assert_eq!(attributed(&calls), AMBIGUOUS, "the server has read nothing since");
    calls.late_response(probe, true);
    assert_eq!(attributed(&calls), AMBIGUOUS);
    tokio::time::advance(GRACE).await;
    assert_eq!(attributed(&calls), "2/v/bob");
    // A cancelled call of the same client does not matter.
    cancelled(&calls, "v of bob", 7);
    assert_eq!(attributed(&calls), "2/v/bob");
    drop(bobs);
    assert_eq!(shown(&calls.attribute_late()), NO_CALL);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_counts_until_its_late_response() {
    let calls = table();
    cancelled(&calls, "v of alice", 1);
    let _bobs = begin(&calls, "2", "v of bob", None);
    assert_eq!(attributed(&calls), AMBIGUOUS);
    calls.late_response(1, false);
    assert_eq!(attributed(&calls), "2/v/bob");
}

/// Its response may have been faster than the end of the call here.
#[tokio::test(start_paused = true)]
async fn a_server_that_has_read_the_cancellation_before_the_call_is_dropped_has_seconds_too() {
    let calls = table();
    calls.late_response(2, true);
    cancelled(&calls, "v of alice", 1);
    let _bobs = begin(&calls, "2", "v of bob", None);
    assert_eq!(attributed(&calls), AMBIGUOUS);
    tokio::time::advance(GRACE).await;
    assert_eq!(attributed(&calls), "2/v/bob");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_goes_on_with_cancelled_calls_may_ask_until_it_responds_to_them() {
    for is_progress in [true, false] {
        let calls = table();
        let probe = cancelled(&calls, "v of alice", 1);
        calls.late_response(probe, true);
        if is_progress {
            calls.late_progress(1);
        } else {
            calls.late_response(1, true);
        }
        let _bobs = begin(&calls, "2", "v of bob", None);
        tokio::time::advance(GRACE).await;
        assert_eq!(attributed(&calls), "2/v/bob");
        let probe = cancelled(&calls, "v of alice", 10);
        calls.late_response(probe, true);
        tokio::time::advance(GRACE).await;
        assert_eq!(attributed(&calls), AMBIGUOUS);
        calls.late_response(10, true);
        assert_eq!(attributed(&calls), "2/v/bob");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_never_sent_does_not_count() {
    let calls = table();
    let alices = begin(&calls, "1", "v of alice", None);
    alices.owner().set_unsent();
    drop(alices);
    let _bobs = begin(&calls, "2", "v of bob", None);
    assert_eq!(attributed(&calls), "2/v/bob");
}

#[tokio::test(start_paused = true)]
async fn many_cancelled_calls_of_one_client_are_kept_as_one() {
    let calls = table();
    for number in 0..=MAX_CANCELLED {
        cancelled(&calls, "v of alice", 2 * number as u64 + 1);
    }
    assert_eq!(calls.table.lock().cancelled.len(), MAX_CANCELLED);
    let _bobs = begin(&calls, "1", "v of bob", None);
    for number in 0..=MAX_CANCELLED {
        calls.late_response(2 * number as u64 + 1, false);
    }
    assert_eq!(attributed(&calls), AMBIGUOUS, "one of them may have gone on");
    calls.late_response(2 * MAX_CANCELLED as u64 + 2, true);
    tokio::time::advance(GRACE).await;
    assert_eq!(attributed(&calls), "1/v/bob");
}

#[tokio::test(start_paused = true)]
async fn more_cancelled_calls_than_are_kept_make_questions_ambiguous() {
    let calls = table();
    for number in 0..=MAX_CANCELLED {
        drop(begin(&calls, "x", &format!("v of user-{number}"), None));
    }
    assert_eq!(calls.table.lock().cancelled.len(), MAX_CANCELLED);
    calls.table.lock().cancelled.clear();
    let _one = begin(&calls, "1", "v of alice", None);
    assert_eq!(attributed(&calls), AMBIGUOUS);
    tokio::time::advance(CROSSING).await;
    assert_eq!(attributed(&calls), "1/v/alice");
}

#[tokio::test(start_paused = true)]
async fn a_question_is_withdrawn_when_the_last_call_that_it_may_belong_to_ends() {
    let calls = table();
    let one = begin(&calls, "1", "v of alice", None);
    let two = begin(&calls, "2", "v of alice", None);
    let attribution = calls.attribute(None);
    let mut ended = std::pin::pin!(attribution.ended());
    let wait = Duration::from_secs(1);
    assert!(tokio::time::timeout(wait, ended.as_mut()).await.is_err());
    drop(one);
    assert!(tokio::time::timeout(wait, ended.as_mut()).await.is_err());
    drop(two);
    assert!(tokio::time::timeout(wait, ended.as_mut()).await.is_ok());
}
