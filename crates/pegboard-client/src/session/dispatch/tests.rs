//! Which request each inbound message completes, and how long a request waits.

use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::session::{
    fault::FaultKind,
    pending_requests::{ExceededLimit, ResponseReceiver},
    progress::ProgressSubscription,
};

fn dispatcher() -> Arc<Dispatcher> {
    Dispatcher::for_tests().0
}

fn receive(dispatcher: &Dispatcher, text: &str) -> Option<u64> {
    dispatcher.message(Bytes::copy_from_slice(text.as_bytes()))
}

const LONG: Duration = Duration::from_secs(60);

async fn result(receiver: &mut ResponseReceiver) -> Result<Bytes, Fault> {
    let response = receiver.receive(LONG, Instant::now() + LONG).await.expect("in time");
    response.and_then(|response| response.result())
}

#[tokio::test]
async fn each_response_reaches_its_own_request_and_no_other() {
    let dispatcher = dispatcher();
    let (mut first, mut second) = (
        dispatcher.pending.register().unwrap(),
        dispatcher.pending.register().unwrap(),
    );
    assert_eq!(
        receive(&dispatcher, &format!(r#"{{"id":{},"result":"two"}}"#, second.id)),
        Some(second.id)
    );
    assert_eq!(
        receive(&dispatcher, &format!(r#"{{"result":"one","id":{}}}"#, first.id)),
        Some(first.id)
    );
    assert_eq!(result(&mut first).await.unwrap(), r#""one""#);
    assert_eq!(result(&mut second).await.unwrap(), r#""two""#);
    assert!(!dispatcher.waits_for(first.id) && !dispatcher.waits_for(second.id));
}

#[tokio::test]
async fn ids_that_only_look_like_ours_answer_nothing() {
    let dispatcher = dispatcher();
    let receiver = dispatcher.pending.register().unwrap();
    for id in ["\"1\"", "1.0", "1e0", "null", "true"] {
        assert_eq!(
            receive(&dispatcher, &format!(r#"{{"id":{id},"result":{{}}}}"#)),
            None,
            "{id}"
        );
    }
    assert!(dispatcher.waits_for(receiver.id));
}

#[tokio::test]
async fn a_request_of_the_server_with_our_id_is_no_response() {
    let (dispatcher, mut requests) = Dispatcher::for_tests();
    let receiver = dispatcher.pending.register().unwrap();
    assert_eq!(
        receive(&dispatcher, &format!(r#"{{"id":{},"method":"ping"}}"#, receiver.id)),
        None
    );
    assert!(dispatcher.waits_for(receiver.id));
    assert_eq!(requests.recv().await.unwrap().method, "ping");
}

#[tokio::test]
async fn a_malformed_response_fails_only_its_own_request() {
    for broken in [
        r#"{"id":ID,"result":{},"result":{}}"#,
        r#"{"id":ID,"result":{}"#,
        r#"{"id":ID}"#,
        r#"{"id":ID,"result":{},"error":{"code":1}}"#,
        r#"{"id":ID,"error":"no"}"#,
        r#"{"id":ID,"result":"\x"}"#,
    ] {
        let dispatcher = dispatcher();
        let (mut receiver, other) = (
            dispatcher.pending.register().unwrap(),
            dispatcher.pending.register().unwrap(),
        );
        receive(&dispatcher, &broken.replace("ID", &receiver.id.to_string()));
        assert!(
            matches!(result(&mut receiver).await.unwrap_err().kind, FaultKind::Unreadable(_)),
            "{broken}"
        );
        assert!(dispatcher.waits_for(other.id));
    }
}

#[tokio::test]
async fn a_message_that_is_a_request_and_a_response_at_once_is_neither() {
    for ambiguous in [
        r#"{"id":ID,"method":"ping","result":5}"#,
        r#"{"result":5,"method":"ping","id":ID}"#,
        r#"{"id":ID,"method":"ping","error":{"code":1,"message":""}}"#,
    ] {
        let (dispatcher, mut requests) = Dispatcher::for_tests();
        let receiver = dispatcher.pending.register().unwrap();
        assert_eq!(
            receive(&dispatcher, &ambiguous.replace("ID", &receiver.id.to_string())),
            None
        );
        assert!(
            requests.try_recv().is_err() && dispatcher.waits_for(receiver.id),
            "{ambiguous}"
        );
    }
}

proptest::proptest! {
    #[test]
    fn a_message_with_a_key_twice_is_never_accepted(
        is_request: bool, twice in 0_usize..4, at in 0_usize..5, is_escaped: bool, changed: bool,
    ) {
        let (dispatcher, mut requests) = Dispatcher::for_tests();
        let mut receiver = dispatcher.pending.register().unwrap();
        let id = receiver.id.to_string();
        let mut fields = match is_request {
            true => vec![("jsonrpc", r#""2.0""#), ("id", &*id), ("method", r#""ping""#), ("params", "{}")],
            false => vec![("jsonrpc", r#""2.0""#), ("id", &*id), ("result", "{}")],
        };
        let (key, value) = fields[twice % fields.len()];
        let value = if changed { r#""other""# } else { value };
        // An escaped key is the same key.
        let escaped = format!("\\u{:04x}{}", u32::from(key.as_bytes()[0]), &key[1..]);
        fields.insert(at.min(fields.len()), (if is_escaped { &escaped } else { key }, value));
        let fields: Vec<String> = fields.iter().map(|(key, value)| format!(r#""{key}":{value}"#)).collect();
        receive(&dispatcher, &format!("{{{}}}", fields.join(",")));
        proptest::prop_assert!(requests.try_recv().is_err());
        let response = receiver.response.try_recv().ok();
        let result = response.map(|response| response.and_then(|response| response.result()));
        proptest::prop_assert!(!matches!(result, Some(Ok(_))), "{:?}", result);
    }
}

#[tokio::test]
async fn when_the_connection_ends_every_request_fails_once_with_whether_it_was_sent() {
    let dispatcher = dispatcher();
    let (mut queued, mut sent) = (
        dispatcher.pending.register().unwrap(),
        dispatcher.pending.register().unwrap(),
    );
    assert!(sent.delivery.begin());
    sent.delivery.mark_sent();
    dispatcher.report_end(WireEnd::new(EndReason::Eof));
    dispatcher.report_end(WireEnd::new(EndReason::Closed));
    let end = WireEnd::new(EndReason::Eof);
    let fault = |sent| Fault::ended(end.clone(), sent);
    assert_eq!(result(&mut queued).await, Err(fault(Sent::No)));
    assert_eq!(result(&mut sent).await, Err(fault(Sent::Maybe)));
    assert_eq!(dispatcher.pending.register().unwrap_err(), fault(Sent::No));
}

#[tokio::test]
async fn a_hundred_unexpected_messages_end_the_connection() {
    let dispatcher = dispatcher();
    for _ in 0..MAX_UNEXPECTED {
        receive(&dispatcher, r#"{"id":999,"result":{}}"#);
    }
    let EndReason::Protocol(text) = dispatcher.pending.until_ended().await.reason else {
        panic!()
    };
    assert!(text.contains("too many messages"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn progress_restarts_the_idle_timeout_but_not_the_deadline() {
    let dispatcher = dispatcher();
    let (sink, mut steps) = mpsc::channel(4);
    let mut receiver = dispatcher.pending.register().unwrap();
    let id = receiver.id;
    let mut subscription = ProgressSubscription::new(&dispatcher.progress, sink);
    subscription.rebind(id);
    let server = tokio::spawn({
        let dispatcher = dispatcher.clone();
        async move {
            for step in 1..=100 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let text = format!(
                    r#"{{"method":"notifications/progress","params":{{"progressToken":{id},"progress":{step}}}}}"#
                );
                receive(&dispatcher, &text);
            }
        }
    });
    let started = Instant::now();
    let late = receiver
        .receive(Duration::from_secs(5), started + Duration::from_secs(30))
        .await;
    assert_eq!(late.unwrap_err(), ExceededLimit::Total);
    assert_eq!(started.elapsed(), Duration::from_secs(30));
    assert_eq!(steps.recv().await.unwrap().progress, 1.0);
    server.abort();
    let late = receiver.receive(Duration::from_secs(5), started + LONG).await;
    assert_eq!(late.unwrap_err(), ExceededLimit::Idle);
}

#[tokio::test]
async fn each_message_of_a_batch_is_dispatched() {
    let dispatcher = dispatcher();
    dispatcher.rules().accept_batches(true);
    let mut receiver = dispatcher.pending.register().unwrap();
    let batch = format!(
        r#"[{{"method":"notifications/message"}}, {{"id":{},"result":7}}]"#,
        receiver.id
    );
    assert_eq!(receive(&dispatcher, &batch), Some(receiver.id));
    assert_eq!(result(&mut receiver).await.unwrap(), "7");
}

#[tokio::test]
async fn ten_requests_in_the_era_without_them_end_the_connection() {
    let (dispatcher, mut requests) = Dispatcher::for_tests();
    dispatcher.rules().accept_requests(false);
    for id in 0..10 {
        receive(&dispatcher, &format!(r#"{{"id":{id},"method":"roots/list"}}"#));
    }
    assert!(matches!(
        dispatcher.pending.until_ended().await.reason,
        EndReason::Protocol(_)
    ));
    assert!(requests.try_recv().is_err());
}

#[tokio::test]
async fn a_batch_is_dispatched_and_nested_batches_are_rejected() {
    let dispatcher = dispatcher();
    dispatcher.rules().accept_batches(true);
    let mut receiver = dispatcher.pending.register().unwrap();
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(receive(&dispatcher, &deep), None);
    let batch = format!(r#"[{deep},5,{{"id":{},"result":1}}]"#, receiver.id);
    assert_eq!(receive(&dispatcher, &batch), Some(receiver.id));
    assert_eq!(result(&mut receiver).await.unwrap(), "1");
}

/// After SIGSTOP and SIGCONT the timer of the request fires before the reader wakes.
#[tokio::test(start_paused = true)]
async fn a_response_that_arrived_while_the_process_was_stopped_wins_over_the_timer() {
    let opened = Instant::now();
    for (idle, total) in [(LONG, 2 * LONG), (2 * LONG, LONG)] {
        let dispatcher = dispatcher();
        let mut receiver = dispatcher.pending.register().unwrap();
        let id = receiver.id;
        let begun = Instant::now();
        let waiting = tokio::spawn(async move { receiver.receive(idle, begun + total).await });
        let reader = dispatcher.clone();
        tokio::spawn(async move {
            tokio::time::sleep_until(begun + 30 * LONG).await;
            receive(&reader, &format!(r#"{{"id":{id},"result":{{}}}}"#));
        });
        tokio::task::yield_now().await;
        tokio::time::advance(60 * LONG).await;
        assert!(waiting.await.unwrap().expect("not late").is_ok());
    }
    assert!(opened.elapsed() < 121 * LONG, "there was no further wait");
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_response_times_out_at_its_limit_and_soon_after_a_stop() {
    let dispatcher = dispatcher();
    let mut receiver = dispatcher.pending.register().unwrap();
    let begun = Instant::now();
    assert_eq!(
        receiver.receive(2 * LONG, begun + LONG).await,
        Err(ExceededLimit::Total)
    );
    assert_eq!(begun.elapsed(), LONG);
    let mut receiver = dispatcher.pending.register().unwrap();
    let waiting = tokio::spawn(async move { receiver.receive(LONG, Instant::now() + 2 * LONG).await });
    tokio::task::yield_now().await;
    tokio::time::advance(60 * LONG).await;
    let resumed = Instant::now();
    assert_eq!(waiting.await.unwrap(), Err(ExceededLimit::Total));
    assert!(resumed.elapsed() <= Duration::from_secs(1));
}

#[tokio::test]
async fn a_batch_in_a_protocol_version_without_them_fails_the_requests_that_it_responds_to() {
    let dispatcher = dispatcher();
    let (mut first, mut second, mut other) = (
        dispatcher.pending.register().unwrap(),
        dispatcher.pending.register().unwrap(),
        dispatcher.pending.register().unwrap(),
    );
    let batch = format!(
        r#"[{{"id":{},"result":7}}, {{"id":{},"result":8}}, {{"id":{},"method":"ping"}}]"#,
        first.id, second.id, other.id
    );
    assert_eq!(receive(&dispatcher, &batch), Some(first.id));
    for receiver in [&mut first, &mut second] {
        let fault = result(receiver).await.unwrap_err();
        assert!(matches!(fault.kind, FaultKind::Unreadable(why) if why.text.contains("batch")));
    }
    assert_eq!(
        receive(&dispatcher, &format!(r#"{{"id":{},"result":9}}"#, other.id)),
        Some(other.id)
    );
    assert_eq!(result(&mut other).await.unwrap(), "9");
}
