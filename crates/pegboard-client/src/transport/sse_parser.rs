//! Parses server-sent events from a byte stream, with a bound on the size of an event.

use memchr::memchr2;

use super::oversized::Oversized;

/// One event. Missing fields are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Its kind.
    pub name: String,
    /// Its data.
    pub data: Vec<u8>,
    /// Set for an event over the size limit: `data` is its beginning, and this its end.
    pub end: Option<Vec<u8>>,
}

/// An event exceeds the size limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

/// An incremental parser: it takes chunks of bytes and emits complete events.
#[derive(Debug)]
pub struct Parser {
    /// The incomplete last line.
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    /// The id of the last complete event, to resume after.
    last_id: Option<String>,
    next_id: Option<String>,
    retry: Option<u64>,
    limit: usize,
    on_oversized: OnOversized,
    skipping: Option<SkippedEvent>,
    after_cr: bool,
    at_start: bool,
}

/// How the parser treats an event over the size limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnOversized {
    /// It fails.
    Fail,
    /// It skips the event and goes on with the next one.
    #[cfg(any(feature = "sse", feature = "fuzz", test))]
    Skip,
}

/// An event over the size limit that is being skipped.
#[derive(Debug, Default)]
struct SkippedEvent {
    event: Oversized,
    /// Whether the current line is empty so far. An empty line ends the event.
    at_line_start: bool,
}

impl Parser {
    /// A parser that skips events over the size limit. It fails only on one that exceeds the limit many times over.
    #[cfg(any(feature = "sse", feature = "fuzz", test))]
    pub(super) fn lenient(limit: usize) -> Self {
        Self {
            on_oversized: OnOversized::Skip,
            ..Self::new(limit)
        }
    }

    /// A parser that fails on an event over the size limit.
    pub fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            event: Event::default(),
            has_data: false,
            last_id: None,
            next_id: None,
            retry: None,
            limit,
            on_oversized: OnOversized::Fail,
            skipping: None,
            after_cr: false,
            at_start: true,
        }
    }

    /// The id of the last complete event, to resume after.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// The reconnection delay that the server asks for, in milliseconds.
    pub(super) fn retry_ms(&self) -> Option<u64> {
        self.retry
    }

    /// How many bytes of the incomplete event are in memory.
    pub(super) fn held_bytes(&self) -> usize {
        self.line.len() + self.event.data.len()
    }

    /// Skips the event that is being read.
    #[cfg(feature = "sse")]
    pub(super) fn skip(&mut self) {
        self.start_skipping();
    }

    /// Parses the next bytes and passes each complete event to `each`.
    pub fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(Event)) -> Result<(), TooLarge> {
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_cr) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let Some(end) = memchr2(b'\r', b'\n', bytes) else {
                self.keep(bytes)?;
                return Ok(());
            };
            self.keep(&bytes[..end])?;
            self.after_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if let Some(event) = self.end_of_line() {
                each(event);
            }
        }
        Ok(())
    }

    fn keep(&mut self, part: &[u8]) -> Result<(), TooLarge> {
        if self.skipping.is_none() && self.line.len() + self.event.data.len() + part.len() <= self.limit {
            self.line.extend_from_slice(part);
            return Ok(());
        }
        let (on_oversized, limit) = (self.on_oversized, self.limit);
        let skipped = self.start_skipping();
        skipped.add(part);
        if on_oversized == OnOversized::Fail || skipped.event.is_endless(limit) {
            return Err(TooLarge);
        }
        Ok(())
    }

    /// Starts to skip the event that is being read, unless that has begun. Of the bytes read so far, only the first and last are kept.
    fn start_skipping(&mut self) -> &mut SkippedEvent {
        self.skipping.get_or_insert_with(|| {
            let mut skipped = SkippedEvent::default();
            let data = std::mem::take(&mut self.event.data);
            let line = std::mem::take(&mut self.line);
            skipped.add(&data);
            skipped.add(line.strip_prefix(b"data:").unwrap_or(&line));
            skipped
        })
    }

    /// Handles the end of a line of a skipped event. An empty line ends the event.
    fn end_of_skipped_line(&mut self) -> Option<Event> {
        let skipped = self.skipping.as_mut()?;
        if !std::mem::replace(&mut skipped.at_line_start, true) {
            return None;
        }
        let skipped = self.skipping.take()?;
        self.has_data = false;
        self.next_id = None;
        Some(Event {
            name: std::mem::take(&mut self.event).name,
            data: skipped.event.head,
            end: Some(skipped.event.tail),
        })
    }

    fn end_of_line(&mut self) -> Option<Event> {
        if self.skipping.is_some() {
            return self.end_of_skipped_line();
        }
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.at_start) && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        if line.is_empty() {
            return self.end_of_event();
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value_at = match line.get(colon + 1) {
            Some(b' ') => colon + 2,
            _ => (colon + 1).min(line.len()),
        };
        match &line[..colon] {
            b"data" if !self.has_data && self.event.data.is_empty() => {
                // The usual case: a single line, which is moved and not copied.
                line.drain(..value_at);
                self.event.data = line;
                self.has_data = true;
            }
            b"data" => {
                self.event.data.push(b'\n');
                self.event.data.extend_from_slice(&line[value_at..]);
            }
            b"event" => self.event.name = String::from_utf8_lossy(&line[value_at..]).into_owned(),
            b"id" if !line[value_at..].contains(&0) => {
                self.next_id = Some(String::from_utf8_lossy(&line[value_at..]).into_owned());
            }
            b"retry" => {
                let digits = std::str::from_utf8(&line[value_at..]).ok();
                self.retry = digits.and_then(|digits| digits.parse().ok()).or(self.retry);
            }
            _ => {}
        }
        None
    }

    fn end_of_event(&mut self) -> Option<Event> {
        if let Some(id) = self.next_id.take() {
            self.last_id = (!id.is_empty()).then_some(id);
        }
        let event = std::mem::take(&mut self.event);
        std::mem::take(&mut self.has_data).then_some(event)
    }
}

impl SkippedEvent {
    fn add(&mut self, part: &[u8]) {
        self.at_line_start &= part.is_empty();
        self.event.add(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::oversized::KEPT_BYTES;

    fn parse(chunks: &[&[u8]]) -> (Vec<(String, String)>, Parser) {
        let mut parser = Parser::new(1000);
        let mut events = Vec::new();
        for chunk in chunks {
            parser
                .feed(chunk, |event| {
                    events.push((event.name, String::from_utf8(event.data).unwrap()))
                })
                .unwrap();
        }
        (events, parser)
    }

    fn check(input: &str, expected: &[(&str, &str)]) {
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, data)| (name.to_string(), data.to_string()))
            .collect();
        assert_eq!(parse(&[input.as_bytes()]).0, expected, "whole: {input:?}");
        let bytes: Vec<&[u8]> = input.as_bytes().chunks(1).collect();
        assert_eq!(parse(&bytes).0, expected, "byte by byte: {input:?}");
    }

    #[test]
    fn events_are_read_whatever_their_line_ends_and_spaces() {
        check("data: a\n\n", &[("", "a")]);
        check("data:a\r\n\r\n", &[("", "a")]);
        check("data: a\r\r", &[("", "a")]);
        check("\u{feff}data: a\n\n", &[("", "a")]);
        check("event: message\ndata: a\ndata: b\n\n", &[("message", "a\nb")]);
        check("data:  two spaces\n\n", &[("", " two spaces")]);
        check("data\n\n", &[("", "")]);
        check("data: \n\ndata: x\n\n", &[("", ""), ("", "x")]);
        check("data: \ndata: b\n\n", &[("", "\nb")]);
        check(": keep-alive\n\n: again\n\ndata: a\n\n", &[("", "a")]);
        check("event: lonely\n\ndata: a\n\n", &[("", "a")]);
        check(
            "other: field\ndata: {\"a\": \"b: c\"}\n\n",
            &[("", "{\"a\": \"b: c\"}")],
        );
        check("data: never finished", &[]);
    }

    #[test]
    fn the_last_id_and_the_retry_delay_are_remembered() {
        let (_, parser) = parse(&[b"id: 7\nretry: 500\ndata: \n\nid: 8\ndata: cut"]);
        assert_eq!(parser.last_id(), Some("7"));
        assert_eq!(parser.retry_ms(), Some(500));
        let (_, parser) = parse(&[b"retry: soon\nid: a\0b\ndata: x\n\n"]);
        assert_eq!((parser.last_id(), parser.retry_ms()), (None, None));
    }

    #[test]
    fn an_event_over_the_limit_fails() {
        let mut parser = Parser::new(10);
        assert_eq!(parser.feed(b"data: 0123456789", |_| {}), Err(TooLarge));
    }

    #[test]
    fn the_events_after_an_oversized_one_are_read() {
        let long = "x".repeat(900);
        for between in ["", "more: of it\n", "data: a\ndata: b\n"] {
            let text = format!("data: {{\"id\":7,{long}\n{between}data: {long}\"end\"}}\n\ndata: next\n\n");
            for size in [1, 7, text.len()] {
                let mut parser = Parser::lenient(1000);
                let mut events = Vec::new();
                for chunk in text.as_bytes().chunks(size) {
                    parser.feed(chunk, |event| events.push(event)).unwrap();
                }
                assert_eq!(events.len(), 2, "{between:?} by {size}");
                assert!(events[0].data.starts_with(b"{\"id\":7,xxx") && events[0].data.len() <= KEPT_BYTES);
                assert!(events[0].end.as_ref().unwrap().ends_with(b"xxx\"end\"}"));
                assert_eq!((events[1].data.as_slice(), &events[1].end), (b"next".as_slice(), &None));
            }
        }
    }

    #[test]
    fn an_event_without_end_fails() {
        let mut parser = Parser::lenient(1000);
        let fed = (0..1000).find(|_| parser.feed(&[b'x'; 100], |_| {}).is_err());
        assert!(fed.is_some_and(|fed| fed < 100), "{fed:?}");
    }
}
