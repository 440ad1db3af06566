use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use http::HeaderValue;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

use super::*;

/// A body whose parts are sent by the test.
struct Parts {
    parts: mpsc::Receiver<Bytes>,
    declared: u64,
}

impl Body for Parts {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.parts
            .poll_recv(cx)
            .map(|part| part.map(|part| Ok(Frame::data(part))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.declared)
    }
}

fn json() -> HeaderMap {
    HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))])
}

fn text(length: usize) -> Bytes {
    vec![b' '; length].into()
}

#[test]
fn a_long_message_reserves_its_length_until_its_last_slice_is_dropped() {
    let limit = BodyLimit::new(4 * UNIT);
    let free = limit.all.free_permits();
    let message = limit.hold(None, text(3 * UNIT)).unwrap();
    assert_eq!(limit.all.free_permits(), free - 3);
    let params = message.slice(10..20);
    drop(message);
    assert_eq!(limit.all.free_permits(), free - 3);
    drop(params);
    assert_eq!(limit.all.free_permits(), free);
}

#[test]
fn a_short_message_reserves_nothing_and_is_not_copied() {
    let limit = BodyLimit::new(4 * UNIT);
    let (free, message) = (limit.all.free_permits(), text(UNIT));
    let at = message.as_ptr();
    let message = limit.hold(None, message).unwrap();
    assert_eq!((limit.all.free_permits(), message.as_ptr()), (free, at));
}

#[test]
fn messages_beyond_the_limit_on_all_are_refused() {
    let limit = BodyLimit::new(4 * UNIT);
    let held: Vec<_> = std::iter::from_fn(|| limit.hold(None, text(4 * UNIT)).ok()).collect();
    assert_eq!(held.len(), ALL_UNITS / 4);
    assert!(matches!(limit.hold(None, text(2 * UNIT)), Err(BodyError::Busy)));
    assert!(limit.hold(None, text(10)).is_ok(), "short ones always have room");
}

#[test]
fn one_principal_leaves_half_of_the_room_to_others() {
    let limit = BodyLimit::new(4 * UNIT);
    let [bob, alice] = ["bob", "alice"].map(Principal::new);
    let held: Vec<_> = std::iter::from_fn(|| limit.hold(Some(&bob), text(4 * UNIT)).ok()).collect();
    assert_eq!(held.len(), ALL_UNITS / 8);
    assert!(limit.hold(Some(&alice), text(4 * UNIT)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn bodies_that_only_declare_their_length_leave_room_for_others() {
    const DECLARED: usize = 128 * UNIT;
    let limit = BodyLimit::new(DECLARED);
    let mut slow = Vec::new();
    for _ in 0..2 * ALL_UNITS / 128 {
        let (sender, parts) = mpsc::channel(4);
        let declared = DECLARED as u64;
        let (reading, headers) = (limit.clone(), json());
        let body = Parts { parts, declared };
        let task = tokio::spawn(async move { reading.read(None, &headers, body).await.map(|body| body.len()) });
        sender.send(text(2 * UNIT)).await.unwrap();
        sender.send(text(UNIT)).await.unwrap();
        slow.push((sender, task));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    // Twice the limit is declared, and a small part of that has come.
    assert_eq!(limit.all.free_permits(), ALL_UNITS - slow.len() * 3);
    let (sender, parts) = mpsc::channel(4);
    sender.send(text(20 * UNIT)).await.unwrap();
    drop(sender);
    let declared = 20 * UNIT as u64;
    let body = limit.read(None, &json(), Parts { parts, declared }).await.unwrap();
    assert_eq!(body.len(), 20 * UNIT);
    drop(body);
    for (_, task) in slow {
        assert!(matches!(task.await.unwrap(), Err(BodyError::Late)));
    }
    assert_eq!(limit.all.free_permits(), ALL_UNITS);
}
