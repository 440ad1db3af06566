use std::sync::Mutex;

use super::*;
use crate::transport::{WireEnd, WireFailure};

const LIMIT: usize = 1000;
const HEAD: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nx: \r\r\n\r\n";

/// Notes the ends of messages that were too long.
#[derive(Default)]
struct Noting(Mutex<Vec<(Vec<u8>, Vec<u8>)>>);

impl Inbox for Noting {
    fn message(&self, _message: bytes::Bytes) -> Option<u64> {
        None
    }
    fn too_long(&self, head: &[u8], tail: &[u8], limit: usize) {
        assert_eq!(limit, LIMIT);
        self.0.lock().unwrap().push((head.to_vec(), tail.to_vec()));
    }
    fn waits_for(&self, _id: u64) -> bool {
        false
    }
    fn failed(&self, _id: u64, _failure: WireFailure) {}
    fn ended(&self, _end: WireEnd) {}
}

fn frame(is_last: bool, kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = BytesMut::new();
    push_header(&mut frame, kind, payload.len());
    if !is_last {
        frame[0] &= 0x7f;
    }
    frame.extend_from_slice(payload);
    frame.to_vec()
}

/// Both ends of a message that was taken out.
type Ends = (Vec<u8>, Vec<u8>);

/// What is left of the bytes when they come in parts of this size and are read in parts of that.
fn sifted(parts: &[Vec<u8>], size: usize, room: usize) -> (io::Result<Vec<u8>>, Vec<Ends>) {
    let inbox = Arc::new(Noting::default());
    let mut sorter = FrameScanner::new(LIMIT, inbox.clone());
    let whole = [HEAD, &parts.concat()].concat();
    let mut left = Vec::new();
    let mut memory = vec![0; room];
    let mut result = Ok(());
    'all: for mut chunk in whole.chunks(size) {
        loop {
            let mut out = ReadBuf::new(&mut memory);
            if !sorter.hand_out(&mut out) {
                if chunk.is_empty() {
                    break;
                }
                match sorter.take(chunk, &mut out) {
                    Ok(taken) => chunk = &chunk[taken..],
                    Err(error) => {
                        result = Err(error);
                        break 'all;
                    }
                }
            }
            left.extend_from_slice(out.filled());
        }
    }
    let noted = std::mem::take(&mut *inbox.0.lock().unwrap());
    (result.map(|()| left), noted)
}

/// Checks the same for chunks of many sizes.
fn check(parts: &[Vec<u8>], expected: &[Vec<u8>], too_long: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let expected = [HEAD, &expected.concat()].concat();
    let mut last = Vec::new();
    for (size, room) in [(1, 1), (3, 7), (64, 5), (1 << 20, 1 << 20), (1 << 20, 2)] {
        let (left, noted) = sifted(parts, size, room);
        assert_eq!(left.unwrap(), expected, "{size} {room}");
        assert_eq!(noted.len(), too_long, "{size} {room}");
        last = noted;
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
fn a_message_that_is_too_large_is_taken_out_and_its_ends_are_told() {
    let large = [b"{\"id\":7,".as_slice(), &[b'x'; 2 * LIMIT], b"}"].concat();
    let (before, after) = (frame(true, TEXT, b"before"), frame(true, TEXT, b"after"));
    let noted = check(
        &[before.clone(), frame(true, TEXT, &large), after.clone()],
        &[before, after],
        1,
    );
    assert!(noted[0].0.starts_with(b"{\"id\":7,") && noted[0].1.ends_with(b"x}"));
}

#[test]
fn a_message_in_several_frames_is_handed_on_as_one() {
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
fn a_message_that_becomes_too_large_in_a_later_frame_is_taken_out_whole() {
    let frames = [
        frame(false, TEXT, &[b'a'; LIMIT]),
        frame(false, CONTINUE, b"b"),
        frame(true, CONTINUE, b"c"),
        frame(true, TEXT, b"next"),
    ];
    let noted = check(&frames, &[frame(true, TEXT, b"next")], 1);
    assert!(noted[0].0.starts_with(b"aaa") && noted[0].1.ends_with(b"abc"));
}

#[test]
fn a_message_without_end_ends_the_stream_and_is_told() {
    let frames = [frame(true, TEXT, &[b'x'; 9 * LIMIT])];
    let (left, noted) = sifted(&frames, 100, 100);
    let error = left.unwrap_err();
    assert_eq!(
        error.get_ref().and_then(|error| error.downcast_ref()),
        Some(&EndlessMessage)
    );
    assert_eq!(noted.len(), 1);
}

#[test]
fn what_the_protocol_forbids_is_left_to_the_parser_or_refused() {
    // A continuation of nothing, a reserved kind, a masked frame, a reserved bit.
    let frames = [
        frame(true, CONTINUE, b"x"),
        frame(true, 3, b"x"),
        vec![0x81, 0x81, 0, 0, 0, 0, b'x'],
        vec![0xc1, 1, b'x'],
    ];
    check(&frames, &frames, 0);
    let within = [frame(false, TEXT, b"x"), frame(true, TEXT, b"y")];
    assert_eq!(
        sifted(&within, 100, 100).0.unwrap_err().kind(),
        io::ErrorKind::InvalidData
    );
}
