use bytes::Bytes;
use futures_util::FutureExt;

use super::*;

fn message(number: usize) -> Outgoing {
    Outgoing::notification("n", Bytes::from(format!("{{\"number\":{number}}}")))
}

fn text(event: &(Option<EventId>, Outgoing)) -> String {
    let id = event.0.unwrap();
    let message = String::from_utf8(event.1.clone().into_bytes().to_vec()).unwrap();
    format!(
        "{}-{} {}",
        id.stream,
        id.place,
        message.split("\"number\":").nth(1).unwrap().trim_end_matches('}')
    )
}

async fn next(reader: &mut EventReader) -> Option<String> {
    let event = std::future::poll_fn(|cx| reader.poll_event(cx)).await;
    event.as_ref().map(text)
}

fn keeping() -> Keeping {
    Keeping {
        all: Arc::default(),
        tasks: TaskTracker::new(),
        linger: Duration::from_secs(60),
    }
}

fn stream() -> (mpsc::Sender<Outgoing>, Arc<ReplayStream>) {
    let (sender, outbox) = mpsc::channel(1024);
    let stream = ReplayStream::new(0, MessageSource::Outbox(outbox), &keeping());
    (sender, stream)
}

#[tokio::test]
async fn a_client_that_comes_back_gets_what_it_missed() {
    let (sender, stream) = stream();
    let mut reader = stream.read(None, false);
    for number in 1..=3 {
        sender.try_send(message(number)).unwrap();
        assert_eq!(next(&mut reader).await, Some(format!("0-{number} {number}")));
    }
    drop(reader);
    sender.try_send(message(4)).unwrap();
    let mut back = stream.read(Some(1), true);
    for number in 2..=4 {
        assert_eq!(next(&mut back).await, Some(format!("0-{number} {number}")));
    }
    assert_eq!(next(&mut back).now_or_never(), None);
}

#[tokio::test]
async fn only_the_last_reader_gets_events() {
    let (sender, stream) = stream();
    let mut first = stream.read(None, false);
    let waiting = tokio::spawn(async move { next(&mut first).await });
    tokio::task::yield_now().await;
    let mut second = stream.read(None, false);
    assert_eq!(waiting.await.unwrap(), None);
    sender.try_send(message(1)).unwrap();
    assert_eq!(next(&mut second).await.as_deref(), Some("0-1 1"));
}

#[tokio::test]
async fn a_new_reader_without_an_id_gets_only_what_is_new() {
    let (sender, stream) = stream();
    sender.try_send(message(1)).unwrap();
    let mut first = stream.read(None, false);
    next(&mut first).await;
    drop(first);
    sender.try_send(message(2)).unwrap();
    let mut second = stream.read(None, false);
    assert_eq!(next(&mut second).await.as_deref(), Some("0-2 2"));
}

#[tokio::test]
async fn an_id_from_the_future_is_not_believed() {
    let (sender, stream) = stream();
    sender.try_send(message(1)).unwrap();
    let mut reader = stream.read(Some(u64::MAX), true);
    assert_eq!(next(&mut reader).await.as_deref(), Some("0-1 1"));
}

#[tokio::test]
async fn what_is_kept_is_bounded_in_number_and_bytes() {
    let (sender, stream) = stream();
    let mut reader = stream.read(None, false);
    for number in 1..=MAX_EVENTS + 10 {
        sender.try_send(message(number)).unwrap();
        next(&mut reader).await;
    }
    let mut back = stream.read(Some(0), true);
    assert_eq!(next(&mut back).await.as_deref(), Some("0-11 11"));
    let long = Outgoing::notification("n", Bytes::from(format!("{{\"a\":\"{}\"}}", "x".repeat(2 * MAX_BYTES))));
    sender.try_send(long).unwrap();
    let mut back = stream.read(Some(MAX_EVENTS as u64 + 10), true);
    let (id, _) = std::future::poll_fn(|cx| back.poll_event(cx)).await.unwrap();
    assert_eq!(id.unwrap().place, MAX_EVENTS as u64 + 11);
    assert_eq!(
        stream.state.lock().kept.len(),
        1,
        "the newest is kept even if it is long"
    );
}

#[tokio::test]
async fn kept_bytes_are_counted_until_they_are_dropped() {
    let (sender, stream) = stream();
    let all = stream.all.clone();
    let mut reader = stream.read(None, false);
    sender.try_send(message(1)).unwrap();
    next(&mut reader).await;
    assert_eq!(all.0.load(Ordering::Relaxed), message(1).len());
    drop((reader, stream));
    assert_eq!(all.0.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn an_ended_stream_ends_its_reader() {
    let (_sender, stream) = stream();
    let mut reader = stream.read(None, false);
    let waiting = tokio::spawn(async move { next(&mut reader).await });
    tokio::task::yield_now().await;
    stream.end();
    assert_eq!(waiting.await.unwrap(), None);
    assert!(stream.has_ended());
}

/// A long message that tells when the buffer that it came in is released.
struct Buffer(Vec<u8>, Arc<AtomicUsize>);

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.1.fetch_add(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_long_event_that_is_kept_takes_no_room_of_its_server() {
    let (_sender, stream) = stream();
    let released = Arc::<AtomicUsize>::default();
    let long = format!("{{\"number\":{}}}", "1".repeat(200_000));
    let length = long.len();
    let mut sent = 0;
    let mut send = || {
        let buffer = Buffer(long.clone().into_bytes(), released.clone());
        stream.push(Outgoing::notification("n", Bytes::from_owner(buffer)));
        sent += 1;
        sent
    };
    assert_eq!(send(), released.load(Ordering::Relaxed));
    // Other streams keep all that may be kept, so that this one keeps nothing longer than it is needed.
    stream.all.0.fetch_add(MAX_ALL_BYTES - length, Ordering::Relaxed);
    let sent = send();
    assert_eq!(sent, released.load(Ordering::Relaxed) + 1);
    let mut reader = stream.read(Some(1), false);
    next(&mut reader).await.unwrap();
    assert_eq!(sent, released.load(Ordering::Relaxed));
    stream.all.0.fetch_sub(MAX_ALL_BYTES - length, Ordering::Relaxed);
}
