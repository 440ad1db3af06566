//! The retry table row by row, in the terms of the written policy.

use serde_json::json;

use super::*;
use pegboard_base::name::ServerName;
use pegboard_client::transport::{Exit, ServerError, SpawnError, TlsFault, WireEnd};
use pegboard_tools::catalog::{Catalog, HeaderRule};

const PLENTY: Duration = Duration::from_secs(60);
const PAUSED: Duration = Duration::from_millis(100);

fn same() -> Next {
    Next::AgainSameSession { after: PAUSED }
}

fn new() -> Next {
    Next::AgainNewSession { after: PAUSED }
}

fn wire(kind: FailureKind, sent: Sent) -> Fault {
    let failure = WireFailure::new(kind, sent, "it failed");
    Fault {
        kind: FaultKind::Wire(failure),
        sent,
    }
}

fn status(code: u16, retry_after: Option<u64>, sent: Sent) -> Fault {
    let retry_after = retry_after.map(Duration::from_secs);
    wire(FailureKind::Status { code, retry_after }, sent)
}

fn error(code: i64, sent: Sent) -> Fault {
    Fault {
        kind: FaultKind::Error(rpc(code)),
        sent,
    }
}

fn rpc(code: i64) -> ServerError {
    ServerError::new(code, "no")
}

fn ended(reason: EndReason, sent: Sent) -> Fault {
    let kind = FaultKind::Ended(WireEnd::new(reason));
    Fault { kind, sent }
}

fn timed_out(sent: Sent) -> Fault {
    let kind = FaultKind::TimedOut {
        waited: Duration::from_secs(1),
        idle: true,
        last_words: None,
    };
    Fault { kind, sent }
}

fn dial(error: DialError) -> Fault {
    error.into()
}

fn classes() -> [ToolClass; 4] {
    let keyed = ToolClass::Keyed("key".into());
    [ToolClass::Never, ToolClass::Safe, ToolClass::Idempotent, keyed]
}

/// What follows the first attempt, with plenty of time left, for never, safe, idempotent and keyed.
fn check(fault: &Fault, expected: [Next; 4]) {
    let attempts = Attempts::first();
    let got = classes().map(|class| decide(fault, &class, &attempts, PLENTY, PAUSED));
    assert_eq!(got, expected, "{fault:?}");
}

/// How often a call is repeated when every attempt ends in this fault.
fn repetitions(fault: &Fault, class: ToolClass) -> u32 {
    repetitions_by(&Retry::default(), fault, class)
}

fn repetitions_by(rule: &Retry, fault: &Fault, class: ToolClass) -> u32 {
    let now = Instant::now();
    let (budget, mut recovery) = (
        RetryBudget::new(now),
        RetryState::with(class, rule, RetryBackoff::steady()),
    );
    while recovery.after(fault, PLENTY, &budget, now) != Next::Stop {}
    recovery.attempts() - 1
}

#[test]
fn not_sent_any_class_is_sent_again() {
    for fault in [
        ConnectFault::Refused,
        ConnectFault::Dns,
        ConnectFault::Timeout,
        ConnectFault::Other,
    ] {
        check(&wire(FailureKind::Connect(fault), Sent::No), [same(); 4]);
        let failed = WireFailure::new(FailureKind::Connect(fault), Sent::No, "no connection");
        check(&dial(failed.into()), [new(); 4]);
    }
    check(&wire(FailureKind::Busy, Sent::No), [same(); 4]);
    check(&ended(EndReason::Eof, Sent::No), [new(); 4]);
    check(&ended(EndReason::Stalled(PAUSED), Sent::No), [Next::Stop; 4]);
}

#[test]
fn rejected_but_retryable_any_class_is_sent_again() {
    let at_once = Duration::ZERO;
    check(
        &wire(FailureKind::SessionGone, Sent::Rejected),
        [Next::AgainNewSession { after: at_once }; 4],
    );
    let after = Duration::from_secs(7);
    check(
        &status(429, Some(7), Sent::Rejected),
        [Next::AgainSameSession { after }; 4],
    );
    check(
        &status(503, Some(7), Sent::Rejected),
        [Next::AgainSameSession { after }; 4],
    );
    check(&status(429, None, Sent::Rejected), [same(); 4]);
    check(
        &error(-32020, Sent::Rejected),
        [Next::AgainRefreshed { after: at_once }; 4],
    );
    check(
        &wire(FailureKind::Rpc(Box::new(rpc(-32020))), Sent::Rejected),
        [Next::AgainRefreshed { after: at_once }; 4],
    );
}

#[test]
fn rejected_for_good_stops() {
    for code in [400, 404, 405, 408, 413, 415, 422] {
        check(&status(code, Some(1), Sent::Rejected), [Next::Stop; 4]);
    }
    for code in [-32700, -32600, -32601, -32021, -32022] {
        check(&error(code, Sent::Rejected), [Next::Stop; 4]);
        check(
            &wire(FailureKind::Rpc(Box::new(rpc(code))), Sent::Rejected),
            [Next::Stop; 4],
        );
    }
    check(&wire(FailureKind::NeedsAuth, Sent::Rejected), [Next::Stop; 4]);
    check(&wire(FailureKind::TooLarge, Sent::Rejected), [Next::Stop; 4]);
    for fault in [ConnectFault::Redirect, ConnectFault::Tls(TlsFault::Expired)] {
        check(&wire(FailureKind::Connect(fault), Sent::Rejected), [Next::Stop; 4]);
    }
}

#[test]
fn a_wrong_setting_is_not_tried_again() {
    let missing = SpawnError::NoFolder { cwd: "/nowhere".into() };
    let unknown = WireFailure::new(FailureKind::NeedsAuth, Sent::Rejected, "who are you");
    for error in [
        DialError::Spawn(missing),
        DialError::Tls("no such file".into()),
        DialError::Setting("not a header".into()),
        DialError::NotBuilt("websocket"),
        DialError::NoCryptography,
        DialError::Failed(unknown),
    ] {
        check(&dial(error), [Next::Stop; 4]);
    }
    check(&ended(EndReason::Closed, Sent::Maybe), [Next::Stop; 4]);
}

#[test]
fn a_call_that_met_our_own_close_unsent_is_made_in_the_next_session() {
    let next = Next::AgainNewSession { after: Duration::ZERO };
    check(&ended(EndReason::Closed, Sent::No), [next; 4]);
}

#[test]
fn unknown_is_sent_again_only_where_that_is_harmless() {
    let harmless = |next: Next| [Next::Stop, next, next, next];
    check(&timed_out(Sent::Maybe), harmless(same()));
    check(&wire(FailureKind::ConnectionLost, Sent::Maybe), harmless(same()));
    check(&wire(FailureKind::Protocol, Sent::Maybe), harmless(same()));
    let unreadable = FaultKind::Unreadable("not JSON".into());
    check(
        &Fault {
            kind: unreadable,
            sent: Sent::Maybe,
        },
        harmless(same()),
    );
    for code in [500, 502, 504] {
        check(&status(code, None, Sent::Maybe), harmless(same()));
    }
    let after = Duration::from_secs(3);
    check(
        &status(503, Some(3), Sent::Maybe),
        harmless(Next::AgainSameSession { after }),
    );
    check(&ended(EndReason::Exited(Exit::Code(1)), Sent::Maybe), harmless(new()));
    check(&ended(EndReason::Broken("reset".into()), Sent::Maybe), harmless(new()));
    check(&wire(FailureKind::TooLarge, Sent::Maybe), [Next::Stop; 4]);
}

#[test]
fn unknown_is_repeated_as_often_as_its_class_allows() {
    let cut = wire(FailureKind::ConnectionLost, Sent::Maybe);
    let counts = classes().map(|class| repetitions(&cut, class));
    assert_eq!(counts, [0, 2, 1, 2], "never, safe, idempotent, keyed");
}

#[test]
fn answered_is_never_sent_again() {
    for code in [-32603, -32602, -32000, 0, 42] {
        check(&error(code, Sent::Maybe), [Next::Stop; 4]);
    }
}

#[test]
fn never_after_a_timeout_for_never() {
    check(&timed_out(Sent::No), [Next::Stop, same(), same(), same()]);
    check(&timed_out(Sent::Maybe), [Next::Stop, same(), same(), same()]);
}

#[test]
fn there_are_three_attempts_at_most_and_each_remedy_is_tried_once() {
    let refused = wire(FailureKind::Connect(ConnectFault::Refused), Sent::No);
    assert_eq!(repetitions(&refused, ToolClass::Never), 2);
    assert_eq!(
        repetitions(&wire(FailureKind::SessionGone, Sent::Rejected), ToolClass::Never),
        1
    );
    assert_eq!(repetitions(&error(-32020, Sent::Rejected), ToolClass::Never), 1);
}

#[test]
fn nothing_is_done_past_the_callers_deadline() {
    let check = |fault: &Fault, left, again: bool| {
        let next = decide(fault, &ToolClass::Never, &Attempts::first(), left, PAUSED);
        assert_eq!(next != Next::Stop, again, "{fault:?} {left:?}");
    };
    let busy = wire(FailureKind::Busy, Sent::No);
    check(&busy, PAUSED, false);
    check(&busy, PAUSED + Duration::from_millis(1), true);
    let gone = wire(FailureKind::SessionGone, Sent::Rejected);
    check(&gone, Duration::ZERO, false);
    let later = status(429, Some(10), Sent::Rejected);
    check(&later, Duration::from_secs(10), false);
    check(&later, Duration::from_secs(11), true);
}

#[test]
fn an_empty_budget_ends_it() {
    let now = Instant::now();
    let budget = RetryBudget::new(now);
    budget.deposit();
    while budget.withdraw(now) {}
    let rule = Retry::default();
    let mut recovery = RetryState::new(ToolClass::Safe, &rule);
    let busy = wire(FailureKind::Busy, Sent::No);
    assert_eq!(recovery.after(&busy, PLENTY, &budget, now), Next::Stop);
    assert_eq!(recovery.attempts(), 1);
}

#[test]
fn pauses_are_spread_between_their_bounds() {
    let mut backoff = RetryBackoff {
        noise: Some(Noise::from_seed(3)),
        ..RetryBackoff::random()
    };
    let taken: Vec<_> = (0..1000).map(|_| backoff.next()).collect();
    assert!(taken.iter().all(|delay| (DELAY.0..=DELAY.1).contains(delay)));
    assert!(taken[0] <= 3 * DELAY.0, "{:?}", taken[0]);
    assert!(taken.contains(&DELAY.1) && taken.iter().any(|delay| *delay < 2 * DELAY.0));
    let mut steady = RetryBackoff::steady();
    assert_eq!([steady.next(), steady.next()], [PAUSED; 2]);
}

#[test]
fn the_operator_says_how_often_and_after_which_waits() {
    let (cut, refused) = (
        wire(FailureKind::ConnectionLost, Sent::Maybe),
        wire(FailureKind::Connect(ConnectFault::Refused), Sent::No),
    );
    let check = |attempts, expected: [u32; 5]| {
        let rule = Retry {
            attempts,
            ..Retry::default()
        };
        let [never, safe, idempotent, _] = classes();
        let got = [
            repetitions_by(&rule, &refused, never.clone()),
            repetitions_by(&rule, &cut, never),
            repetitions_by(&rule, &cut, safe),
            repetitions_by(&rule, &cut, idempotent),
            repetitions_by(&rule, &cut, ToolClass::Anyway),
        ];
        assert_eq!(got, expected, "{attempts}");
    };
    check(0, [0, 0, 0, 0, 0]);
    check(1, [1, 0, 1, 1, 1]);
    check(5, [5, 0, 5, 1, 5]);
    let rule = Retry {
        attempts: 3,
        backoff: vec![Duration::from_secs(1), Duration::from_secs(2)],
        ..Retry::default()
    };
    let mut recovery = RetryState::new(ToolClass::Anyway, &rule);
    let budget = RetryBudget::new(Instant::now());
    for wait in [1, 2, 2] {
        let after = Duration::from_secs(wait);
        let next = recovery.after(&timed_out(Sent::Maybe), PLENTY, &budget, Instant::now());
        assert_eq!(next, Next::AgainSameSession { after });
    }
}

#[test]
fn a_tools_own_setting_wins_over_its_servers() {
    let reads = tool(&json!({"readOnlyHint": true}));
    let check = |trust, of_tool: Option<RetryClass>, mode, even_if_run, expected| {
        let mut policy = Policy {
            trust,
            ..Policy::default()
        };
        policy
            .tool_retry
            .extend(of_tool.map(|class| ("get_*".to_owned(), class)));
        policy.retry.mode = mode;
        policy.retry.even_if_run = even_if_run;
        assert_eq!(ToolClass::under(&policy, &reads), expected, "{policy:?}");
    };
    check(true, None, None, false, ToolClass::Safe);
    check(true, None, Some(RetryClass::Never), false, ToolClass::Never);
    check(false, None, Some(RetryClass::Idempotent), false, ToolClass::Idempotent);
    check(false, None, None, true, ToolClass::Anyway);
    check(
        false,
        Some(RetryClass::Never),
        Some(RetryClass::Safe),
        true,
        ToolClass::Never,
    );
}

fn tool(annotations: &Value) -> Tool {
    let mut catalog = Catalog::default();
    let item = json!({"name": "get_and_list_read_only", "annotations": annotations});
    catalog.read_tools(&ServerName::parse("fx").unwrap(), vec![item], HeaderRule::Ignored);
    (*catalog.tools[0]).clone()
}

#[test]
fn a_class_comes_from_the_operator_then_from_a_trusted_server() {
    let check = |operator: Option<ToolClass>, trusted, annotations: Value, expected| {
        let class = ToolClass::classify(&tool(&annotations), operator.as_ref(), trusted);
        assert_eq!(class, expected, "{operator:?} {trusted} {annotations}");
    };
    let reads = json!({"readOnlyHint": true});
    check(None, true, reads.clone(), ToolClass::Safe);
    check(None, false, reads.clone(), ToolClass::Never);
    check(Some(ToolClass::Never), true, reads, ToolClass::Never);
    check(Some(ToolClass::Idempotent), false, json!({}), ToolClass::Idempotent);
    check(None, true, json!(null), ToolClass::Never);
    check(None, true, json!({}), ToolClass::Never);
    check(
        None,
        true,
        json!({"readOnlyHint": true, "destructiveHint": false}),
        ToolClass::Safe,
    );
    check(
        None,
        true,
        json!({"readOnlyHint": true, "destructiveHint": true}),
        ToolClass::Never,
    );
    let confused = json!({"readOnlyHint": true, "destructiveHint": true, "idempotentHint": true});
    check(None, true, confused, ToolClass::Never);
    check(None, true, json!({"idempotentHint": true}), ToolClass::Idempotent);
    check(
        None,
        true,
        json!({"idempotentHint": true, "destructiveHint": true}),
        ToolClass::Idempotent,
    );
    check(None, true, json!({"readOnlyHint": "true"}), ToolClass::Never);
}

#[test]
fn a_key_must_be_among_the_arguments() {
    let keyed = ToolClass::Keyed("key".into());
    let check = |arguments: &str, expected: &ToolClass| {
        let arguments = Arguments::parse(arguments).unwrap();
        assert_eq!(keyed.clone().with_arguments(&arguments), *expected);
    };
    check(r#"{"key": "a1"}"#, &keyed);
    check(r#"{"key": 7}"#, &keyed);
    for none in ["{}", r#"{"key": ""}"#, r#"{"key": null}"#, r#"{"other": "a1"}"#] {
        check(none, &ToolClass::Never);
    }
    assert_eq!(ToolClass::Safe.with_arguments(&Arguments::default()), ToolClass::Safe);
    assert_eq!(ToolClass::default(), ToolClass::Never);
}
