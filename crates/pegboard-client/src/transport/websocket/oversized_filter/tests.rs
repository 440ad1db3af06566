use pegboard_base::sync::Mutex;

use super::*;
use crate::transport::{request_failure::WireFailure, wire_end::WireEnd};

const LIMIT: usize = 1000;
const HEAD: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nx: \r\r\n\r\n";

/// Records the ends of messages over the limit.
#[derive(Default)]
struct Recorder(Mutex<Vec<(Vec<u8>, Vec<u8>)>>);

impl Inbox for Recorder {
    fn message(&self, _message: bytes::Bytes) -> Option<u64> {
        None
    }
    fn too_long(&self, head: &[u8], tail: &[u8], limit: usize) {
        assert_eq!(limit, LIMIT);
        self.0.lock().push((head.to_vec(), tail.to_vec()));
    }
    fn waits_for(&self, _id: u64) -> bool {
        false
    }
    fn report_failure(&self, _id: u64, _failure: WireFailure) {}
    fn report_end(&self, _end: WireEnd) {}
}

fn frame(is_final: bool, opcode: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = BytesMut::new();
    push_header(&mut frame, opcode, payload.len());
    if !is_final {
        frame[0] &= 0x7f;
    }
    frame.extend_from_slice(payload);
    frame.to_vec()
}

/// The first and last bytes of a removed message.
type Ends = (Vec<u8>, Vec<u8>);

/// Filters bytes that arrive in chunks of `size` and are read into buffers of `room`. Returns what passed and the reported messages.
fn filtered(parts: &[Vec<u8>], size: usize, room: usize) -> (io::Result<Vec<u8>>, Vec<Ends>) {
    let inbox = Arc::new(Recorder::default());
    let mut scanner = FrameScanner::new(LIMIT, inbox.clone());
    let whole = [HEAD, &parts.concat()].concat();
    let mut left = Vec::new();
    let mut memory = vec![0; room];
    let mut result = Ok(());
    'all: for mut chunk in whole.chunks(size) {
        loop {
            let mut out = ReadBuf::new(&mut memory);
            if !scanner.emit(&mut out) {
                if chunk.is_empty() {
                    break;
                }
                match scanner.scan(chunk, &mut out) {
                    Ok(consumed) => chunk = &chunk[consumed..],
                    Err(error) => {
                        result = Err(error);
                        break 'all;
                    }
                }
            }
            left.extend_from_slice(out.filled());
        }
    }
    let reported = std::mem::take(&mut *inbox.0.lock());
    (result.map(|()| left), reported)
}

/// Checks that the result is the same for chunks of many sizes.
fn check(parts: &[Vec<u8>], expected: &[Vec<u8>], too_long: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let expected = [HEAD, &expected.concat()].concat();
    let mut last = Vec::new();
    for (size, room) in [(1, 1), (3, 7), (64, 5), (1 << 20, 1 << 20), (1 << 20, 2)] {
        let (left, reported) = filtered(parts, size, room);
        assert_eq!(left.unwrap(), expected, "{size} {room}");
        assert_eq!(reported.len(), too_long, "{size} {room}");
        last = reported;
    }
    last
}

#[test]
fn messages_that_fit_pass_unchanged() {
    let frames = [
        frame(true, TEXT, b"hello"),
        frame(true, BINARY, b""),
        frame(true, TEXT, &[b'x'; LIMIT]),
        frame(true, 9, b"ping"),
        frame(true, 8, b""),
    ];
    check(&frames, &frames, 0);
}

#[test]
fn a_message_over_the_limit_is_removed_and_its_ends_are_reported() {
    let large = [b"{\"id\":7,".as_slice(), &[b'x'; 2 * LIMIT], b"}"].concat();
    let (before, after) = (frame(true, TEXT, b"before"), frame(true, TEXT, b"after"));
    let reported = check(
        &[before.clone(), frame(true, TEXT, &large), after.clone()],
        &[before, after],
        1,
    );
    assert!(reported[0].0.starts_with(b"{\"id\":7,") && reported[0].1.ends_with(b"x}"));
}

#[test]
fn a_fragmented_message_is_passed_on_as_one_frame() {
    let ping = frame(true, 9, b"");
    let frames = [
        frame(false, TEXT, b"he"),
        ping.clone(),
        frame(false, CONTINUE, b""),
        frame(true, CONTINUE, b"llo"),
    ];
    check(&frames, &[ping, frame(true, TEXT, b"hello")], 0);
}

#[test]
fn a_message_that_exceeds_the_limit_in_a_later_frame_is_removed_whole() {
    let frames = [
        frame(false, TEXT, &[b'a'; LIMIT]),
        frame(false, CONTINUE, b"b"),
        frame(true, CONTINUE, b"c"),
        frame(true, TEXT, b"next"),
    ];
    let reported = check(&frames, &[frame(true, TEXT, b"next")], 1);
    assert!(reported[0].0.starts_with(b"aaa") && reported[0].1.ends_with(b"abc"));
}

#[test]
fn a_message_without_end_ends_the_stream_and_is_reported() {
    let frames = [frame(true, TEXT, &[b'x'; 9 * LIMIT])];
    let (left, reported) = filtered(&frames, 100, 100);
    let error = left.unwrap_err();
    assert_eq!(
        error.get_ref().and_then(|error| error.downcast_ref()),
        Some(&EndlessMessage)
    );
    assert_eq!(reported.len(), 1);
}

#[test]
fn invalid_frames_are_left_to_the_parser_or_rejected() {
    // A continuation of nothing, a reserved opcode, a masked frame, a reserved bit.
    let frames = [
        frame(true, CONTINUE, b"x"),
        frame(true, 3, b"x"),
        vec![0x81, 0x81, 0, 0, 0, 0, b'x'],
        vec![0xc1, 1, b'x'],
    ];
    check(&frames, &frames, 0);
    let within = [frame(false, TEXT, b"x"), frame(true, TEXT, b"y")];
    assert_eq!(
        filtered(&within, 100, 100).0.unwrap_err().kind(),
        io::ErrorKind::InvalidData
    );
}
