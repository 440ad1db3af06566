//! Writes the head of a response.

use std::{
    io::Write as _,
    time::{SystemTime, UNIX_EPOCH},
};

use http::{StatusCode, response::Parts};
use http_body::Body;
use pegboard::telemetry::RequestTag;

/// The length of a date as HTTP writes it.
const DATE: usize = "Sun, 06 Nov 1994 08:49:37 GMT".len();

/// How a client finds the end of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunks,
}

impl Framing {
    pub(super) fn of(body: &impl Body) -> Self {
        body.size_hint().exact().map_or(Self::Chunks, Self::Length)
    }
}

/// The date of responses, written once in a second.
#[derive(Default)]
pub(super) struct Date {
    second: u64,
    text: String,
}

impl Date {
    pub(super) fn now(&mut self) -> &str {
        let now = SystemTime::now();
        let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if second != self.second || self.text.is_empty() {
            self.second = second;
            self.text.clear();
            self.text.reserve_exact(DATE);
            self.text.push_str(&httpdate::fmt_http_date(now));
        }
        &self.text
    }
}

/// Writes the head of a response. With `is_last` the client learns that the connection is closed after it.
pub(super) fn write(head: &mut Vec<u8>, parts: &Parts, framing: Framing, date: &str, tag: &RequestTag, is_last: bool) {
    if parts.status == StatusCode::OK {
        head.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    } else {
        let reason = parts.status.canonical_reason().unwrap_or_default();
        head.extend_from_slice(b"HTTP/1.1 ");
        head.extend_from_slice(parts.status.as_str().as_bytes());
        head.push(b' ');
        head.extend_from_slice(reason.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    for (name, value) in &parts.headers {
        field(head, name.as_str(), value.as_bytes());
    }
    match framing {
        // It has no body, and none is to be expected.
        Framing::Length(0) if parts.status == StatusCode::NO_CONTENT => {}
        Framing::Length(length) => field(head, "content-length", length.to_string().as_bytes()),
        Framing::Chunks => field(head, "transfer-encoding", b"chunked"),
    }
    if is_last {
        field(head, "connection", b"close");
    }
    field(head, "date", date.as_bytes());
    head.extend_from_slice(b"x-request-id: ");
    // A buffer takes everything.
    let _ = write!(head, "{tag}\r\n");
    head.extend_from_slice(b"\r\n");
}

fn field(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use http::Response;

    use super::*;

    fn written(status: u16, framing: Framing, is_last: bool) -> String {
        let response = Response::builder().status(status).header("x-a", "b").body(()).unwrap();
        let mut head = Vec::new();
        let tag = RequestTag::new(Some(b"7f"));
        write(&mut head, &response.into_parts().0, framing, "now", &tag, is_last);
        String::from_utf8(head).unwrap()
    }

    #[test]
    fn a_head_says_how_its_body_ends() {
        assert_eq!(
            written(200, Framing::Length(12), false),
            "HTTP/1.1 200 OK\r\nx-a: b\r\ncontent-length: 12\r\ndate: now\r\nx-request-id: 7f\r\n\r\n"
        );
        assert_eq!(
            written(429, Framing::Chunks, true),
            "HTTP/1.1 429 Too Many Requests\r\nx-a: b\r\ntransfer-encoding: chunked\r\nconnection: close\r\ndate: now\r\nx-request-id: 7f\r\n\r\n"
        );
        assert_eq!(
            written(204, Framing::Length(0), false),
            "HTTP/1.1 204 No Content\r\nx-a: b\r\ndate: now\r\nx-request-id: 7f\r\n\r\n"
        );
    }

    #[test]
    fn a_date_is_written_once_in_a_second() {
        let mut date = Date::default();
        let first = date.now().to_owned();
        assert_eq!(first.len(), DATE);
        assert!(first.ends_with(" GMT"));
        date.second = 1;
        assert_eq!(date.now().len(), DATE);
        assert!(date.second > 1);
    }
}
