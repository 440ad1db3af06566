//! What the desk promises to those who wait.

use super::*;
use crate::session::progress::Steps;

fn pending() -> Arc<PendingRequests> {
    PendingRequests::new().0
}

fn hear(pending: &PendingRequests, text: &str) -> Option<u64> {
    pending.message(Bytes::copy_from_slice(text.as_bytes()))
}

const LONG: Duration = Duration::from_secs(60);

async fn answer(place: &mut Place) -> Result<Bytes, Unanswered> {
    let answer = place.answer(LONG, Instant::now() + LONG).await.expect("in time");
    answer.and_then(|answer| answer.proven())
}

#[tokio::test]
async fn each_answer_reaches_its_own_request_and_no_other() {
    let pending = pending();
    let (mut first, mut second) = (pending.place().unwrap(), pending.place().unwrap());
    assert_eq!(
        hear(&pending, &format!(r#"{{"id":{},"result":"two"}}"#, second.id)),
        Some(second.id)
    );
    assert_eq!(
        hear(&pending, &format!(r#"{{"result":"one","id":{}}}"#, first.id)),
        Some(first.id)
    );
    assert_eq!(answer(&mut first).await.unwrap(), r#""one""#);
    assert_eq!(answer(&mut second).await.unwrap(), r#""two""#);
    assert!(!pending.waits_for(first.id) && !pending.waits_for(second.id));
}

#[tokio::test]
async fn ids_that_only_look_like_ours_answer_nothing() {
    let pending = pending();
    let place = pending.place().unwrap();
    for id in ["\"1\"", "1.0", "1e0", "null", "true"] {
        assert_eq!(hear(&pending, &format!(r#"{{"id":{id},"result":{{}}}}"#)), None, "{id}");
    }
    assert!(pending.waits_for(place.id));
}

#[tokio::test]
async fn a_request_of_the_server_with_our_id_is_no_answer() {
    let (pending, mut requests) = PendingRequests::new();
    let place = pending.place().unwrap();
    assert_eq!(
        hear(&pending, &format!(r#"{{"id":{},"method":"ping"}}"#, place.id)),
        None
    );
    assert!(pending.waits_for(place.id));
    assert_eq!(requests.recv().await.unwrap().method, "ping");
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_costs_only_its_call() {
    for broken in [
        r#"{"id":ID,"result":{},"result":{}}"#,
        r#"{"id":ID,"result":{}"#,
        r#"{"id":ID}"#,
        r#"{"id":ID,"result":{},"error":{"code":1}}"#,
        r#"{"id":ID,"error":"no"}"#,
        r#"{"id":ID,"result":"\x"}"#,
    ] {
        let pending = pending();
        let (mut place, other) = (pending.place().unwrap(), pending.place().unwrap());
        hear(&pending, &broken.replace("ID", &place.id.to_string()));
        assert!(
            matches!(answer(&mut place).await, Err(Unanswered::Unreadable(_))),
            "{broken}"
        );
        assert!(pending.waits_for(other.id));
    }
}

#[tokio::test]
async fn when_the_wire_ends_every_request_ends_once_with_what_is_known() {
    let pending = pending();
    let (mut queued, mut sent) = (pending.place().unwrap(), pending.place().unwrap());
    assert!(sent.delivery.begin());
    sent.delivery.done();
    pending.ended(WireEnd::new(EndReason::Eof));
    pending.ended(WireEnd::new(EndReason::Closed));
    let end = WireEnd::new(EndReason::Eof);
    let unanswered = |sent| Err(Unanswered::Ended { end: end.clone(), sent });
    assert_eq!(answer(&mut queued).await, unanswered(Sent::No));
    assert_eq!(answer(&mut sent).await, unanswered(Sent::Maybe));
    assert!(matches!(pending.place(), Err(Unanswered::Ended { sent: Sent::No, .. })));
}

#[tokio::test]
async fn a_hundred_messages_that_fit_nothing_end_the_conversation() {
    let pending = pending();
    for _ in 0..MAX_STRAYS {
        hear(&pending, r#"{"id":999,"result":{}}"#);
    }
    let EndReason::Protocol(text) = pending.until_ended().await.reason else {
        panic!()
    };
    assert!(text.contains("too many messages"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn progress_starts_the_idle_limit_anew_but_not_the_total_one() {
    let pending = pending();
    let (sink, mut steps) = mpsc::channel(4);
    let mut place = pending.place().unwrap();
    let id = place.id;
    let mut listening = Steps::new(&pending, sink);
    listening.rebind(id);
    let server = tokio::spawn({
        let pending = pending.clone();
        async move {
            for step in 1..=100 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let text = format!(
                    r#"{{"method":"notifications/progress","params":{{"progressToken":{id},"progress":{step}}}}}"#
                );
                hear(&pending, &text);
            }
        }
    });
    let started = Instant::now();
    let late = place
        .answer(Duration::from_secs(5), started + Duration::from_secs(30))
        .await;
    assert_eq!(late.unwrap_err(), Late::Total);
    assert_eq!(started.elapsed(), Duration::from_secs(30));
    assert_eq!(steps.recv().await.unwrap().progress, 1.0);
    server.abort();
    let late = place.answer(Duration::from_secs(5), started + LONG).await;
    assert_eq!(late.unwrap_err(), Late::Idle);
}

#[tokio::test]
async fn a_batch_is_read_message_by_message() {
    let pending = pending();
    pending.expect_batches(true);
    let mut place = pending.place().unwrap();
    let batch = format!(
        r#"[{{"method":"notifications/message"}}, {{"id":{},"result":7}}]"#,
        place.id
    );
    assert_eq!(hear(&pending, &batch), Some(place.id));
    assert_eq!(answer(&mut place).await.unwrap(), "7");
}

#[tokio::test]
async fn ten_requests_in_the_era_without_them_end_the_conversation() {
    let (pending, mut requests) = PendingRequests::new();
    pending.expect_requests(false);
    for id in 0..10 {
        hear(&pending, &format!(r#"{{"id":{id},"method":"roots/list"}}"#));
    }
    assert!(matches!(pending.until_ended().await.reason, EndReason::Protocol(_)));
    assert!(requests.try_recv().is_err());
}

#[tokio::test]
async fn a_batch_is_read_and_what_is_nested_in_it_is_not_followed_down() {
    let pending = pending();
    pending.expect_batches(true);
    let mut place = pending.place().unwrap();
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(hear(&pending, &deep), None);
    let batch = format!(r#"[{deep},5,{{"id":{},"result":1}}]"#, place.id);
    assert_eq!(hear(&pending, &batch), Some(place.id));
    assert_eq!(answer(&mut place).await.unwrap(), "1");
}

/// SIGSTOP and SIGCONT: the timer of the request has fired long ago, and the reader wakes only after it.
#[tokio::test(start_paused = true)]
async fn an_answer_that_arrived_while_the_process_was_stopped_is_read_before_the_timer_is_believed() {
    let opened = Instant::now();
    for (idle, total) in [(LONG, 2 * LONG), (2 * LONG, LONG)] {
        let pending = pending();
        let mut place = pending.place().unwrap();
        let id = place.id;
        let begun = Instant::now();
        let waiting = tokio::spawn(async move { place.answer(idle, begun + total).await });
        let reader = pending.clone();
        tokio::spawn(async move {
            tokio::time::sleep_until(begun + 30 * LONG).await;
            hear(&reader, &format!(r#"{{"id":{id},"result":{{}}}}"#));
        });
        tokio::task::yield_now().await;
        tokio::time::advance(60 * LONG).await;
        assert!(waiting.await.unwrap().expect("not late").is_ok());
    }
    assert!(opened.elapsed() < 121 * LONG, "nothing else was waited for");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_answered_is_late_at_its_limit_and_soon_after_a_stop() {
    let pending = pending();
    let mut place = pending.place().unwrap();
    let begun = Instant::now();
    assert_eq!(place.answer(2 * LONG, begun + LONG).await, Err(Late::Total));
    assert_eq!(begun.elapsed(), LONG);
    let mut place = pending.place().unwrap();
    let waiting = tokio::spawn(async move { place.answer(LONG, Instant::now() + 2 * LONG).await });
    tokio::task::yield_now().await;
    tokio::time::advance(60 * LONG).await;
    let resumed = Instant::now();
    assert_eq!(waiting.await.unwrap(), Err(Late::Total));
    assert!(resumed.elapsed() <= Duration::from_secs(1));
}

#[tokio::test]
async fn a_batch_in_a_protocol_version_without_them_costs_the_calls_that_it_answers() {
    let pending = pending();
    let (mut first, mut second, mut other) = (
        pending.place().unwrap(),
        pending.place().unwrap(),
        pending.place().unwrap(),
    );
    let batch = format!(
        r#"[{{"id":{},"result":7}}, {{"id":{},"result":8}}, {{"id":{},"method":"ping"}}]"#,
        first.id, second.id, other.id
    );
    assert_eq!(hear(&pending, &batch), Some(first.id));
    for place in [&mut first, &mut second] {
        let unanswered = answer(place).await.unwrap_err();
        assert!(matches!(unanswered, Unanswered::Unreadable(why) if why.contains("batch")));
    }
    assert_eq!(
        hear(&pending, &format!(r#"{{"id":{},"result":9}}"#, other.id)),
        Some(other.id)
    );
    assert_eq!(answer(&mut other).await.unwrap(), "9");
}
