//! Server-sent events out of a stream of bytes, with a bound on each event.

use memchr::memchr2;

/// One event. A field that did not come is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: String,
    pub(super) data: Vec<u8>,
}

/// An event, or a line of it, is larger than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLarge;

/// Takes bytes as they come and gives events as they are complete.
#[derive(Debug)]
pub(super) struct Parser {
    /// The part of a line that has come so far.
    line: Vec<u8>,
    event: Event,
    has_data: bool,
    /// The id of the last complete event, for a resumption.
    last_id: Option<String>,
    next_id: Option<String>,
    retry: Option<u64>,
    limit: usize,
    after_cr: bool,
    at_start: bool,
}

impl Parser {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            event: Event::default(),
            has_data: false,
            last_id: None,
            next_id: None,
            retry: None,
            limit,
            after_cr: false,
            at_start: true,
        }
    }

    /// The id to resume after.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How many milliseconds the server wants us to wait before we come back.
    pub(super) fn retry_ms(&self) -> Option<u64> {
        self.retry
    }

    /// Takes the next bytes and hands each complete event to `each`.
    pub(super) fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(Event)) -> Result<(), TooLarge> {
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
        if self.line.len() + self.event.data.len() + part.len() > self.limit {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn end_of_line(&mut self) -> Option<Event> {
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
                // The usual case: one line, whose bytes are moved and not copied.
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_last_id_and_the_wanted_pause_are_remembered() {
        let (_, parser) = parse(&[b"id: 7\nretry: 500\ndata: \n\nid: 8\ndata: cut"]);
        assert_eq!(parser.last_id(), Some("7"));
        assert_eq!(parser.retry_ms(), Some(500));
        let (_, parser) = parse(&[b"retry: soon\nid: a\0b\ndata: x\n\n"]);
        assert_eq!((parser.last_id(), parser.retry_ms()), (None, None));
    }

    #[test]
    fn an_event_that_is_too_large_is_refused() {
        let mut parser = Parser::new(10);
        assert_eq!(parser.feed(b"data: 0123456789", |_| {}), Err(TooLarge));
    }
}
