//! Server-sent events.

use pegboard::fuzz::{Events, parse_events};

use crate::chunks;

const LIMITS: [usize; 4] = [16, 100, 1000, 70_000];
/// How many bytes are kept of the beginning of a skipped event.
const KEPT: usize = 256;

/// The first byte chooses the size limit and whether large events are skipped, the second how the rest is split. However a stream is split,
/// the same events come out, no more than the limit is held in memory, and events have no more data than the stream.
pub fn sse(data: &[u8]) {
    let [choice, seed, rest @ ..] = data else { return };
    let limit = LIMITS[usize::from(*choice) / 2 % LIMITS.len()];
    let lenient = choice & 1 == 1;
    let stream = chunks::expand(rest);
    let mut first: Option<Events> = None;
    for way in chunks::ways(&stream, *seed) {
        let parsed = parse_events(&way, limit, lenient);
        assert!(parsed.most_held <= limit, "{} bytes are held", parsed.most_held);
        let bytes: usize = parsed.events.iter().map(|event| event.data.len()).sum();
        assert!(bytes <= stream.len());
        for event in &parsed.events {
            let most = if event.is_skipped { KEPT } else { limit };
            assert!(event.data.len() <= most && (lenient || !event.is_skipped));
            assert!(
                event.is_skipped || !event.data.contains(&b'\r'),
                "a line break in a line"
            );
        }
        if !lenient {
            check_against_lines(&parsed, &stream);
        }
        let parsed = comparable(parsed);
        match &first {
            // The size at which an event counts as endless depends on the chunks.
            Some(first) if lenient && (parsed.too_large || first.too_large) => {}
            Some(first) => assert_eq!(&parsed, first, "another split, other events"),
            None => first = Some(parsed),
        }
    }
}

/// What does not depend on how the stream is split.
fn comparable(mut parsed: Events) -> Events {
    parsed.most_held = 0;
    // Of a skipped event, how much of its first line belongs to its beginning depends on the chunks.
    for event in parsed.events.iter_mut().filter(|event| event.is_skipped) {
        event.data.clear();
    }
    parsed
}

/// Compares with a parser that has the whole stream in memory.
fn check_against_lines(parsed: &Events, stream: &[u8]) {
    if parsed.too_large {
        return;
    }
    let stream = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    let mut data: Option<Vec<u8>> = None;
    let mut events = Vec::new();
    let complete = lines(stream);
    for line in complete {
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match (line.is_empty(), field) {
            (true, _) => events.extend(data.take()),
            (false, b"data") => match &mut data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => data = Some(value.to_vec()),
            },
            _ => {}
        }
    }
    let parsed: Vec<&[u8]> = parsed.events.iter().map(|event| &*event.data).collect();
    assert_eq!(parsed, events, "other events than the whole stream has");
}

/// The complete lines, which end in CR LF, LF or CR.
fn lines(mut stream: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    while let Some(at) = stream.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
        lines.push(&stream[..at]);
        let is_pair = stream[at] == b'\r' && stream.get(at + 1) == Some(&b'\n');
        stream = &stream[at + 1 + usize::from(is_pair)..];
    }
    lines
}
