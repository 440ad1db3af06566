//! Writes server-sent events around messages.

use bytes::{BufMut, Bytes, BytesMut};

use crate::protocol::Outgoing;

/// Up to this length an event is copied into one buffer, because each buffer becomes a chunk of its own.
const COPIED: usize = 16 * 1024;

/// The comment that keeps proxies from closing an idle stream.
pub(super) const KEEP_ALIVE: Bytes = Bytes::from_static(b": keep-alive\n\n");

/// The id of an event: the stream within its session, and the place in the stream. The first message has place 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) stream: u64,
    pub(super) place: u64,
}

impl EventId {
    /// Parses what is written into events.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (stream, place) = text.split_once('-')?;
        let number = |digits: &str| {
            let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse().ok().filter(|_| is_plain)
        };
        Some(Self {
            stream: number(stream)?,
            place: number(place)?,
        })
    }
}

/// The parts of an event, in order; unused ones are empty.
pub(super) type Frames = [Bytes; 5];

/// The event that carries a message.
pub(super) fn message(id: Option<EventId>, message: Outgoing) -> Frames {
    let message = message.on_one_line();
    let is_short = message.len() <= COPIED;
    let mut head = BytesMut::with_capacity(80 + if is_short { message.len() } else { 0 });
    if let Some(id) = id {
        put_id(&mut head, id);
    }
    head.put_slice(b"event: message\ndata: ");
    if is_short {
        message.parts().into_iter().for_each(|part| head.put_slice(part));
        head.put_slice(b"\n\n");
        return one(head.freeze());
    }
    let [first, second, third] = message.parts().map(Bytes::clone);
    [head.freeze(), first, second, third, Bytes::from_static(b"\n\n")]
}

/// The event before all messages. Its id lets the client resume a stream on which it has got nothing yet.
pub(super) fn priming(id: EventId) -> Bytes {
    let mut event = BytesMut::with_capacity(64);
    put_id(&mut event, id);
    event.put_slice(b"data: \n\n");
    event.freeze()
}

/// The event that tells a client of 2024-11-05 where to send its messages.
pub(super) fn endpoint(path: &str) -> Bytes {
    Bytes::from(format!("event: endpoint\ndata: {path}\n\n"))
}

/// A single buffer.
pub(super) fn one(bytes: Bytes) -> Frames {
    [bytes, Bytes::new(), Bytes::new(), Bytes::new(), Bytes::new()]
}

fn put_id(event: &mut BytesMut, id: EventId) {
    event.put_slice(format!("id: {}-{}\n", id.stream, id.place).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_parsed_as_they_are_written() {
        let id = EventId { stream: 3, place: 17 };
        let written = priming(id);
        assert_eq!(written, "id: 3-17\ndata: \n\n");
        assert_eq!(EventId::parse("3-17"), Some(id));
        for text in ["", "3", "3-", "-1", "3-x", "+3-1", "3-1-1", "99999999999999999999-1"] {
            assert_eq!(EventId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_message_is_one_event_even_if_it_has_line_breaks() {
        let params = Bytes::from_static(b"{\n\"a\":1\r\n}");
        let frames = message(
            Some(EventId { stream: 0, place: 1 }),
            Outgoing::notification("n", params),
        );
        let text: Vec<u8> = frames.concat();
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with("id: 0-1\nevent: message\ndata: {"), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(text.ends_with("\n\n"));
    }

    #[test]
    fn a_long_message_is_not_copied() {
        let params = Bytes::from(format!("{{\"a\":\"{}\"}}", "x".repeat(COPIED)));
        let frames = message(None, Outgoing::notification("n", params.clone()));
        assert!(frames.iter().any(|frame| frame.as_ptr() == params.as_ptr()));
    }
}
