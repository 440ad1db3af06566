//! What the desk promises to those who wait.

use super::*;
use crate::session::progress::Steps;

fn desk() -> Arc<Desk> {
    Desk::new().0
}

fn hear(desk: &Desk, text: &str) -> Option<u64> {
    desk.message(Bytes::copy_from_slice(text.as_bytes()))
}

const LONG: Duration = Duration::from_secs(60);

async fn answer(place: &mut Place) -> Result<Bytes, Unanswered> {
    let answer = place.answer(LONG, Instant::now() + LONG).await.expect("in time");
    answer.and_then(|answer| answer.proven())
}

#[tokio::test]
async fn each_answer_reaches_its_own_request_and_no_other() {
    let desk = desk();
    let (mut first, mut second) = (desk.place().unwrap(), desk.place().unwrap());
    assert_eq!(
        hear(&desk, &format!(r#"{{"id":{},"result":"two"}}"#, second.id)),
        Some(second.id)
    );
    assert_eq!(
        hear(&desk, &format!(r#"{{"result":"one","id":{}}}"#, first.id)),
        Some(first.id)
    );
    assert_eq!(answer(&mut first).await.unwrap(), r#""one""#);
    assert_eq!(answer(&mut second).await.unwrap(), r#""two""#);
    assert!(!desk.waits_for(first.id) && !desk.waits_for(second.id));
}

#[tokio::test]
async fn ids_that_only_look_like_ours_answer_nothing() {
    let desk = desk();
    let place = desk.place().unwrap();
    for id in ["\"1\"", "1.0", "1e0", "null", "true"] {
        assert_eq!(hear(&desk, &format!(r#"{{"id":{id},"result":{{}}}}"#)), None, "{id}");
    }
    assert!(desk.waits_for(place.id));
}

#[tokio::test]
async fn a_request_of_the_server_with_our_id_is_no_answer() {
    let (desk, mut requests) = Desk::new();
    let place = desk.place().unwrap();
    assert_eq!(hear(&desk, &format!(r#"{{"id":{},"method":"ping"}}"#, place.id)), None);
    assert!(desk.waits_for(place.id));
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
        let desk = desk();
        let (mut place, other) = (desk.place().unwrap(), desk.place().unwrap());
        hear(&desk, &broken.replace("ID", &place.id.to_string()));
        assert!(
            matches!(answer(&mut place).await, Err(Unanswered::Unreadable(_))),
            "{broken}"
        );
        assert!(desk.waits_for(other.id));
    }
}

#[tokio::test]
async fn when_the_wire_ends_every_request_ends_once_with_what_is_known() {
    let desk = desk();
    let (mut queued, mut sent) = (desk.place().unwrap(), desk.place().unwrap());
    assert!(sent.delivery.begin());
    sent.delivery.done();
    desk.ended(WireEnd::new(EndReason::Eof));
    desk.ended(WireEnd::new(EndReason::Closed));
    let end = WireEnd::new(EndReason::Eof);
    let unanswered = |sent| Err(Unanswered::Ended { end: end.clone(), sent });
    assert_eq!(answer(&mut queued).await, unanswered(Sent::No));
    assert_eq!(answer(&mut sent).await, unanswered(Sent::Maybe));
    assert!(matches!(desk.place(), Err(Unanswered::Ended { sent: Sent::No, .. })));
}

#[tokio::test]
async fn a_hundred_messages_that_fit_nothing_end_the_conversation() {
    let desk = desk();
    for _ in 0..MAX_STRAYS {
        hear(&desk, r#"{"id":999,"result":{}}"#);
    }
    let EndReason::Protocol(text) = desk.until_ended().await.reason else {
        panic!()
    };
    assert!(text.contains("too many messages"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn progress_starts_the_idle_limit_anew_but_not_the_total_one() {
    let desk = desk();
    let (sink, mut steps) = mpsc::channel(4);
    let mut place = desk.place().unwrap();
    let id = place.id;
    let mut listening = Steps::new(&desk, sink);
    listening.go_on_under(id);
    let server = tokio::spawn({
        let desk = desk.clone();
        async move {
            for step in 1..=100 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let text = format!(
                    r#"{{"method":"notifications/progress","params":{{"progressToken":{id},"progress":{step}}}}}"#
                );
                hear(&desk, &text);
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
    let desk = desk();
    desk.expect_batches(true);
    let mut place = desk.place().unwrap();
    let batch = format!(
        r#"[{{"method":"notifications/message"}}, {{"id":{},"result":7}}]"#,
        place.id
    );
    assert_eq!(hear(&desk, &batch), Some(place.id));
    assert_eq!(answer(&mut place).await.unwrap(), "7");
}

#[tokio::test]
async fn ten_requests_in_the_era_without_them_end_the_conversation() {
    let (desk, mut requests) = Desk::new();
    desk.expect_requests(false);
    for id in 0..10 {
        hear(&desk, &format!(r#"{{"id":{id},"method":"roots/list"}}"#));
    }
    assert!(matches!(desk.until_ended().await.reason, EndReason::Protocol(_)));
    assert!(requests.try_recv().is_err());
}

#[tokio::test]
async fn a_batch_is_read_and_what_is_nested_in_it_is_not_followed_down() {
    let desk = desk();
    desk.expect_batches(true);
    let mut place = desk.place().unwrap();
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(hear(&desk, &deep), None);
    let batch = format!(r#"[{deep},5,{{"id":{},"result":1}}]"#, place.id);
    assert_eq!(hear(&desk, &batch), Some(place.id));
    assert_eq!(answer(&mut place).await.unwrap(), "1");
}

/// SIGSTOP and SIGCONT: the timer of the request has fired long ago, and the reader wakes only after it.
#[tokio::test(start_paused = true)]
async fn an_answer_that_arrived_while_the_process_was_stopped_is_read_before_the_timer_is_believed() {
    let opened = Instant::now();
    for (idle, total) in [(LONG, 2 * LONG), (2 * LONG, LONG)] {
        let desk = desk();
        let mut place = desk.place().unwrap();
        let id = place.id;
        let begun = Instant::now();
        let waiting = tokio::spawn(async move { place.answer(idle, begun + total).await });
        let reader = desk.clone();
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
    let desk = desk();
    let mut place = desk.place().unwrap();
    let begun = Instant::now();
    assert_eq!(place.answer(2 * LONG, begun + LONG).await, Err(Late::Total));
    assert_eq!(begun.elapsed(), LONG);
    let mut place = desk.place().unwrap();
    let waiting = tokio::spawn(async move { place.answer(LONG, Instant::now() + 2 * LONG).await });
    tokio::task::yield_now().await;
    tokio::time::advance(60 * LONG).await;
    let resumed = Instant::now();
    assert_eq!(waiting.await.unwrap(), Err(Late::Total));
    assert!(resumed.elapsed() <= Duration::from_secs(1));
}

#[tokio::test]
async fn a_batch_in_a_protocol_version_without_them_costs_the_calls_that_it_answers() {
    let desk = desk();
    let (mut first, mut second, mut other) = (desk.place().unwrap(), desk.place().unwrap(), desk.place().unwrap());
    let batch = format!(
        r#"[{{"id":{},"result":7}}, {{"id":{},"result":8}}, {{"id":{},"method":"ping"}}]"#,
        first.id, second.id, other.id
    );
    assert_eq!(hear(&desk, &batch), Some(first.id));
    for place in [&mut first, &mut second] {
        let unanswered = answer(place).await.unwrap_err();
        assert!(matches!(unanswered, Unanswered::Unreadable(why) if why.contains("batch")));
    }
    assert_eq!(
        hear(&desk, &format!(r#"{{"id":{},"result":9}}"#, other.id)),
        Some(other.id)
    );
    assert_eq!(answer(&mut other).await.unwrap(), "9");
}
