//! Newline-delimited messages.

use std::cell::OnceCell;

use pegboard::fuzz::{LinesRead, read_lines};
use tokio::runtime::Runtime;

use crate::chunks;

const LIMITS: [usize; 5] = [16, 100, 1000, 70_000, 300_000];
/// A line that exceeds the limit by this factor ends the connection. Whether it is seen whole before that depends on the chunks.
const ENDLESS: usize = 8;
/// How many bytes are kept at each end of a skipped message.
const KEPT: usize = 256;

/// The first byte chooses the size limit, the second how the rest is split. However a stream is split, the same messages come out; each is a
/// line of the stream within the limit.
pub fn framing(data: &[u8]) {
    let [limit, seed, rest @ ..] = data else { return };
    let limit = LIMITS[usize::from(*limit) % LIMITS.len()];
    let stream = chunks::expand(rest);
    let mut first: Option<LinesRead> = None;
    for way in chunks::ways(&stream, *seed) {
        let lines = read(&way, limit);
        check(&lines, &stream, limit);
        let is_endless = stream
            .split(|byte| *byte == b'\n')
            .any(|line| line.len() > limit * ENDLESS);
        match &first {
            Some(first) if !is_endless => assert_eq!(&lines, first, "another split, other messages"),
            Some(_) => {}
            None => first = Some(lines),
        }
    }
}

fn check(lines: &LinesRead, stream: &[u8], limit: usize) {
    let mut rest = stream.split(|byte| *byte == b'\n');
    for message in &lines.messages {
        assert!(message.len() <= limit, "a message of {} bytes", message.len());
        assert!(!message.contains(&b'\n') && matches!(message.first(), Some(b'{' | b'[' | 0)));
        // In order, and unchanged but for the space around it.
        let is_same = |line: &[u8]| {
            let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
            line.trim_ascii() == message
        };
        assert!(rest.any(is_same), "a message that is no line of the stream");
    }
    for (head, tail) in &lines.skipped {
        assert!(head.len() <= KEPT && tail.len() <= KEPT);
    }
}

fn read(chunks: &[&[u8]], limit: usize) -> LinesRead {
    thread_local! {
        static RUNTIME: OnceCell<Runtime> = const { OnceCell::new() };
    }
    RUNTIME.with(|runtime| {
        let runtime = runtime.get_or_init(|| {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            builder.enable_time().build().expect("a runtime")
        });
        runtime.block_on(read_lines(chunks, limit))
    })
}
