//! What the reader and the writer of lines promise.

use bytes::Bytes;

use super::*;
use crate::transport::Budget;
use crate::transport::{Delivery, Envelope};

#[derive(Default)]
struct Heard {
    messages: Mutex<Vec<String>>,
    too_long: Mutex<Vec<(String, String)>>,
}

impl Inbox for Heard {
    fn message(&self, message: Bytes) -> Option<u64> {
        self.messages
            .lock()
            .unwrap()
            .push(String::from_utf8_lossy(&message).into_owned());
        None
    }
    fn too_long(&self, head: &[u8], tail: &[u8], _limit: usize) {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        self.too_long.lock().unwrap().push((text(head), text(tail)));
    }
    fn waits_for(&self, _id: u64) -> bool {
        false
    }
    fn failed(&self, _id: u64, _failure: WireFailure) {}
    fn ended(&self, _end: WireEnd) {}
}

async fn read(input: &[u8], limit: usize) -> (Vec<String>, Vec<(String, String)>, EndReason) {
    let heard = Arc::new(Heard::default());
    let end = read_lines(input, heard.clone(), limit, StdoutNoise::default()).await;
    let messages = heard.messages.lock().unwrap().clone();
    let too_long = heard.too_long.lock().unwrap().clone();
    (messages, too_long, end)
}

#[tokio::test]
async fn lines_may_end_in_crlf_start_with_a_mark_and_stand_between_noise() {
    let (messages, _, end) = read(b"\xef\xbb\xbf{\"a\":1}\r\nhello\n\n  {\"b\":2} \n[1]\n{\"c\":3}", 1000).await;
    assert_eq!(messages, ["{\"a\":1}", "{\"b\":2}", "[1]", "{\"c\":3}"]);
    assert_eq!(end, EndReason::Eof);
}

/// Keeps messages as callers do that have not read them yet.
#[derive(Default)]
struct Kept(Mutex<Vec<Bytes>>);

impl Inbox for Kept {
    fn message(&self, message: Bytes) -> Option<u64> {
        self.0.lock().unwrap().push(message);
        None
    }
    fn too_long(&self, _head: &[u8], _tail: &[u8], _limit: usize) {}
    fn waits_for(&self, _id: u64) -> bool {
        false
    }
    fn failed(&self, _id: u64, _failure: WireFailure) {}
    fn ended(&self, _end: WireEnd) {}
}

fn feed(lines: &mut Lines, mut bytes: &[u8], inbox: &dyn Inbox) {
    while !bytes.is_empty() {
        let space = lines.space();
        let room = space.capacity() - space.len();
        assert!(room >= MIN_ROOM);
        let (part, rest) = bytes.split_at(room.min(bytes.len()).min(50_000));
        space.extend_from_slice(part);
        bytes = rest;
        lines.drain(inbox).unwrap();
    }
}

#[test]
fn what_a_long_message_took_is_used_again_and_then_given_back() {
    let kept = Kept::default();
    let mut lines = Lines::new(8 << 20, Budget::default().account(8 << 20));
    let mut places = Vec::new();
    for length in [1 << 20, (1 << 20) + 5000, 1 << 20, 1 << 20] {
        let long = format!("{{\"text\":\"{}\"}}\n", "x".repeat(length));
        feed(&mut lines, long.as_bytes(), &kept);
        // As soon as it is handed on, the next bytes are waited for.
        lines.space();
        assert_eq!(lines.room.recent, long.len() - 1);
        for message in kept.0.lock().unwrap().drain(..) {
            assert_eq!(message, long.trim_end());
            places.push(message.as_ptr());
        }
    }
    assert_eq!(places[1..], [places[1]; 3], "it is used again");
    feed(&mut lines, b"{\"rest\":", &kept);
    lines.room.shrink();
    assert_eq!((lines.room.recent, lines.room.held.capacity()), (0, READ_CHUNK));
    feed(&mut lines, b"1}\n", &kept);
    assert_eq!(*kept.0.lock().unwrap(), ["{\"rest\":1}"]);
}

#[test]
fn messages_that_nobody_has_read_yet_stay_as_they_are() {
    let kept = Kept::default();
    let mut lines = Lines::new(8 << 20, Budget::default().account(8 << 20));
    let message = |n: usize| format!("{{\"n\":{n},\"text\":\"{}\"}}", "x".repeat(n % 5 * 90_000));
    for n in 0..40 {
        feed(&mut lines, (message(n) + "\n").as_bytes(), &kept);
        if n % 7 == 0 {
            kept.0.lock().unwrap().remove(0);
        }
    }
    // What was read is kept here, so that nothing of it can be used again.
    let mut last = 40;
    for read in kept.0.lock().unwrap().iter().rev() {
        last -= 1;
        assert_eq!(*read, message(last));
    }
    assert_eq!(last, 6);
}

#[tokio::test]
async fn a_line_that_is_too_long_is_skipped_and_the_next_one_is_heard() {
    let mut input = br#"{"id":7,"result":""#.to_vec();
    input.extend(vec![b'x'; 300_000]);
    input.extend(b"\",\"end\":true}\n{\"ok\":1}\n");
    let (messages, too_long, _) = read(&input, 100_000).await;
    assert_eq!(messages, ["{\"ok\":1}"]);
    let [(head, tail)] = too_long.as_slice() else {
        panic!("{too_long:?}")
    };
    assert!(head.starts_with("{\"id\":7"), "{head}");
    assert!(tail.ends_with("\"end\":true}"), "{tail}");
}

#[tokio::test]
async fn a_line_without_end_ends_the_connection() {
    let (_, _, end) = read(&vec![b'{'; 1_000_000], 100_000).await;
    let EndReason::Protocol(text) = end else {
        panic!("{end:?}")
    };
    assert!(text.contains("has no end"), "{text}");
}

#[tokio::test]
async fn a_program_that_only_prints_text_is_found_out() {
    let (_, _, end) = read("usage: cat [FILE]\n".repeat(2000).as_bytes(), 100_000).await;
    let EndReason::Protocol(text) = end else {
        panic!("{end:?}")
    };
    assert!(text.contains("usage: cat"), "{text}");
    let mut input = b"{}\n".to_vec();
    input.extend("noise\n".repeat(5000).as_bytes());
    assert_eq!(read(&input, 100_000).await.2, EndReason::Eof);
}

#[tokio::test]
async fn what_a_server_prints_before_its_first_message_is_kept_to_be_told() {
    let heard = async |input: &[u8]| {
        let stdout_noise = StdoutNoise::default();
        read_lines(input, Arc::new(Heard::default()), 1000, stdout_noise.clone()).await;
        stdout_noise.text()
    };
    let listening = b"listening on http://127.0.0.1:3001/mcp\nready\n";
    assert_eq!(
        heard(listening).await.as_deref(),
        Some("listening on http://127.0.0.1:3001/mcp")
    );
    assert_eq!(heard(b"Password: ").await.as_deref(), Some("Password:"));
    assert_eq!(heard(b"hello\nPassword: ").await.as_deref(), Some("hello\nPassword:"));
    assert_eq!(heard(b"\n").await, None);
}

fn outgoing(text: &str) -> Outgoing {
    Outgoing {
        body: text.as_bytes().to_vec(),
        id: None,
        delivery: Arc::new(Delivery::default()),
        envelope: Envelope::default(),
        taken: None,
    }
}

#[tokio::test]
async fn messages_are_written_in_order_and_those_given_up_are_not() {
    let outbox = Arc::new(Outbox::default());
    let heard = Heard::default();
    for text in ["1", "2", "3"] {
        let message = outgoing(text);
        if text == "2" {
            assert!(message.delivery.abandon());
        }
        outbox.push(message, &heard);
    }
    outbox.close();
    let mut written = Vec::new();
    assert_eq!(write_lines(&mut written, outbox, Duration::from_secs(1)).await, None);
    assert_eq!(written, b"1\n3\n");
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stops_reading_is_noticed_and_its_message_counts_as_unsent() {
    let (near, _far) = tokio::io::duplex(8);
    let outbox = Arc::new(Outbox::default());
    let message = outgoing("0123456789");
    let delivery = message.delivery.clone();
    outbox.push(message, &Heard::default());
    let end = write_lines(near, outbox, Duration::from_secs(10)).await;
    assert_eq!(end, Some(EndReason::Stalled(Duration::from_secs(10))));
    assert_eq!(delivery.sent(), Sent::No);
}

/// What is known about two messages when the writer ends in the middle of a write after so many bytes.
async fn sent_when_dropped_after(bytes: usize) -> [Sent; 2] {
    let (near, _far) = tokio::io::duplex(bytes);
    let outbox = Arc::new(Outbox::default());
    let deliveries = ["0123", "4567"].map(|text| {
        let message = outgoing(text);
        let delivery = message.delivery.clone();
        outbox.push(message, &Heard::default());
        delivery
    });
    let mut writing = Box::pin(write_lines(near, outbox, Duration::from_secs(10)));
    let is_pending = |cx: &mut std::task::Context<'_>| std::task::Poll::Ready(writing.as_mut().poll(cx).is_pending());
    assert!(std::future::poll_fn(is_pending).await);
    drop(writing);
    deliveries.map(|delivery| delivery.sent())
}

#[tokio::test]
async fn a_writer_that_is_ended_in_a_message_has_not_sent_it() {
    assert_eq!(sent_when_dropped_after(3).await, [Sent::No, Sent::No]);
    assert_eq!(sent_when_dropped_after(5).await, [Sent::Maybe, Sent::No]);
    assert_eq!(sent_when_dropped_after(8).await, [Sent::Maybe, Sent::No]);
}

#[tokio::test]
async fn a_message_that_lacks_only_its_newline_may_have_been_read() {
    assert_eq!(sent_when_dropped_after(4).await, [Sent::Maybe, Sent::No]);
    assert_eq!(sent_when_dropped_after(9).await, [Sent::Maybe, Sent::Maybe]);
}

#[tokio::test]
async fn a_limit_may_be_smaller_than_what_is_kept_of_a_line() {
    let (messages, too_long, _) = read(b"{\"id\":7,\"result\":{}}\n{\"ok\":1}\n", 10).await;
    assert_eq!(messages, ["{\"ok\":1}"]);
    assert_eq!(too_long.len(), 1);
}

#[tokio::test]
async fn a_message_behind_a_nul_is_no_noise() {
    let (messages, _, _) = read(b"\0{\"id\":7}\n", 1000).await;
    assert_eq!(messages, ["\0{\"id\":7}"]);
}

#[tokio::test]
async fn a_message_cut_off_by_the_end_is_not_heard() {
    let (messages, _, end) = read(b"{\"a\":1}\n{\"id\":7,\"resu", 1000).await;
    assert_eq!(messages, ["{\"a\":1}"]);
    assert_eq!(end, EndReason::Eof);
}
