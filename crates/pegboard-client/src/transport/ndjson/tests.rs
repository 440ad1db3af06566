//! Tests of the reader and the writer of lines.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    line_splitter::LineSplitter,
    read_buffer::{MIN_ROOM, READ_CHUNK},
    *,
};
use crate::transport::{
    ByteBudget, Delivery, EndReason, Envelope, Inbox, Outgoing, Sent, WireEnd, WireFailure, outbox::Outbox,
};
use pegboard_base::sync::Mutex;

/// Records what the reader reports.
#[derive(Default)]
struct Recorder {
    messages: Mutex<Vec<String>>,
    too_long: Mutex<Vec<(String, String)>>,
}

impl Inbox for Recorder {
    fn message(&self, message: Bytes) -> Option<u64> {
        self.messages
            .lock()
            .push(String::from_utf8_lossy(&message).into_owned());
        None
    }
    fn too_long(&self, head: &[u8], tail: &[u8], _limit: usize) {
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        self.too_long.lock().push((text(head), text(tail)));
    }
    fn waits_for(&self, _id: u64) -> bool {
        false
    }
    fn report_failure(&self, _id: u64, _failure: WireFailure) {}
    fn report_end(&self, _end: WireEnd) {}
}

async fn read(input: &[u8], limit: usize) -> (Vec<String>, Vec<(String, String)>, EndReason) {
    let inbox = Arc::new(Recorder::default());
    let end = read_lines(input, inbox.clone(), limit, StdoutNoise::default()).await;
    let messages = inbox.messages.lock().clone();
    let too_long = inbox.too_long.lock().clone();
    (messages, too_long, end)
}

#[tokio::test]
async fn lines_may_end_in_crlf_start_with_a_mark_and_stand_between_noise() {
    let (messages, _, end) = read(b"\xef\xbb\xbf{\"a\":1}\r\nhello\n\n  {\"b\":2} \n[1]\n{\"c\":3}", 1000).await;
    assert_eq!(messages, ["{\"a\":1}", "{\"b\":2}", "[1]", "{\"c\":3}"]);
    assert_eq!(end, EndReason::Eof);
}

/// Holds messages, like callers that have not read them yet.
#[derive(Default)]
struct Kept(Mutex<Vec<Bytes>>);

impl Inbox for Kept {
    fn message(&self, message: Bytes) -> Option<u64> {
        self.0.lock().push(message);
        None
    }
    fn too_long(&self, _head: &[u8], _tail: &[u8], _limit: usize) {}
    fn waits_for(&self, _id: u64) -> bool {
        false
    }
    fn report_failure(&self, _id: u64, _failure: WireFailure) {}
    fn report_end(&self, _end: WireEnd) {}
}

fn feed(lines: &mut LineSplitter, mut bytes: &[u8], inbox: &dyn Inbox) {
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
fn the_memory_of_a_long_message_is_reused_and_then_freed() {
    let kept = Kept::default();
    let mut lines = LineSplitter::new(8 << 20, ByteBudget::default().quota(8 << 20));
    let mut places = Vec::new();
    for length in [1 << 20, (1 << 20) + 5000, 1 << 20, 1 << 20] {
        let long = format!("{{\"text\":\"{}\"}}\n", "x".repeat(length));
        feed(&mut lines, long.as_bytes(), &kept);
        // The reader asks for space as soon as a line is handed on.
        lines.space();
        assert_eq!(lines.buffer.last_long, long.len() - 1);
        for message in kept.0.lock().drain(..) {
            assert_eq!(message, long.trim_end());
            places.push(message.as_ptr());
        }
    }
    assert_eq!(places[1..], [places[1]; 3], "it is reused");
    feed(&mut lines, b"{\"rest\":", &kept);
    lines.buffer.shrink();
    assert_eq!(
        (lines.buffer.last_long, lines.buffer.unread.capacity()),
        (0, READ_CHUNK)
    );
    feed(&mut lines, b"1}\n", &kept);
    assert_eq!(*kept.0.lock(), ["{\"rest\":1}"]);
}

#[test]
fn messages_that_callers_still_hold_are_not_overwritten() {
    let kept = Kept::default();
    let mut lines = LineSplitter::new(8 << 20, ByteBudget::default().quota(8 << 20));
    let message = |n: usize| format!("{{\"n\":{n},\"text\":\"{}\"}}", "x".repeat(n % 5 * 90_000));
    for n in 0..40 {
        feed(&mut lines, (message(n) + "\n").as_bytes(), &kept);
        if n % 7 == 0 {
            kept.0.lock().remove(0);
        }
    }
    // The messages are held, so their memory must not be reused.
    let mut last = 40;
    for read in kept.0.lock().iter().rev() {
        last -= 1;
        assert_eq!(*read, message(last));
    }
    assert_eq!(last, 6);
}

#[tokio::test]
async fn a_line_that_is_too_long_is_skipped_and_the_next_one_is_read() {
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
async fn a_program_that_only_prints_text_is_rejected() {
    let (_, _, end) = read("usage: cat [FILE]\n".repeat(2000).as_bytes(), 100_000).await;
    let EndReason::Flood { first_line, .. } = end else {
        panic!("{end:?}")
    };
    assert_eq!(first_line, "usage: cat [FILE]");
    let mut input = b"{}\n".to_vec();
    input.extend("noise\n".repeat(5000).as_bytes());
    assert_eq!(read(&input, 100_000).await.2, EndReason::Eof);
}

#[tokio::test]
async fn text_that_a_server_prints_before_its_first_message_is_kept() {
    let noise = async |input: &[u8]| {
        let stdout_noise = StdoutNoise::default();
        read_lines(input, Arc::new(Recorder::default()), 1000, stdout_noise.clone()).await;
        stdout_noise.text()
    };
    let listening = b"listening on http://127.0.0.1:3001/mcp\nready\n";
    assert_eq!(
        noise(listening).await.as_deref(),
        Some("listening on http://127.0.0.1:3001/mcp")
    );
    assert_eq!(noise(b"Password: ").await.as_deref(), Some("Password:"));
    assert_eq!(noise(b"hello\nPassword: ").await.as_deref(), Some("hello\nPassword:"));
    assert_eq!(noise(b"\n").await, None);
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
async fn messages_are_written_in_order_and_abandoned_ones_are_not() {
    let outbox = Arc::new(Outbox::default());
    let inbox = Recorder::default();
    for text in ["1", "2", "3"] {
        let message = outgoing(text);
        if text == "2" {
            assert!(message.delivery.abandon());
        }
        outbox.push(message, &inbox);
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
    outbox.push(message, &Recorder::default());
    let end = write_lines(near, outbox, Duration::from_secs(10)).await;
    assert_eq!(end, Some(EndReason::Stalled(Duration::from_secs(10))));
    assert_eq!(delivery.sent(), Sent::No);
}

/// Whether two messages count as sent when the writer is dropped in the middle of a write, after `bytes` bytes.
async fn sent_when_dropped_after(bytes: usize) -> [Sent; 2] {
    let (near, _far) = tokio::io::duplex(bytes);
    let outbox = Arc::new(Outbox::default());
    let deliveries = ["0123", "4567"].map(|text| {
        let message = outgoing(text);
        let delivery = message.delivery.clone();
        outbox.push(message, &Recorder::default());
        delivery
    });
    let mut writing = Box::pin(write_lines(near, outbox, Duration::from_secs(10)));
    let is_pending = |cx: &mut std::task::Context<'_>| std::task::Poll::Ready(writing.as_mut().poll(cx).is_pending());
    assert!(std::future::poll_fn(is_pending).await);
    drop(writing);
    deliveries.map(|delivery| delivery.sent())
}

#[tokio::test]
async fn a_message_is_unsent_when_the_writer_is_dropped_within_it() {
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
async fn a_limit_may_be_smaller_than_the_kept_ends_of_a_line() {
    let (messages, too_long, _) = read(b"{\"id\":7,\"result\":{}}\n{\"ok\":1}\n", 10).await;
    assert_eq!(messages, ["{\"ok\":1}"]);
    assert_eq!(too_long.len(), 1);
}

#[tokio::test]
async fn a_message_after_a_nul_is_not_noise() {
    let (messages, _, _) = read(b"\0{\"id\":7}\n", 1000).await;
    assert_eq!(messages, ["\0{\"id\":7}"]);
}

#[tokio::test]
async fn a_message_truncated_by_the_end_of_the_stream_is_dropped() {
    let (messages, _, end) = read(b"{\"a\":1}\n{\"id\":7,\"resu", 1000).await;
    assert_eq!(messages, ["{\"a\":1}"]);
    assert_eq!(end, EndReason::Eof);
}
