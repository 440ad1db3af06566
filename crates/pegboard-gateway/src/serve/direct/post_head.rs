//! [`PostHead`]: the head of a posted message, and how the same head is found again.

use std::ops::Range;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Uri,
    header::{CONNECTION, CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING, UPGRADE},
    request::Parts,
};
use httparse::{EMPTY_HEADER, Status};

/// Requests with more headers are left to the general server.
const MAX_HEADERS: usize = 64;

/// The most digits in the length of a body.
const MAX_DIGITS: usize = 7;

/// The head of a request that is served here.
pub(super) struct PostHead {
    pub(super) parts: Parts,
    text: Bytes,
    /// Where the length of the body stands in the text.
    digits: Range<usize>,
}

/// The lengths of a request, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) head: usize,
    pub(super) body: usize,
}

/// What the beginning of a request is.
pub(super) enum Parsed {
    /// A whole head of a posted message.
    Post(Box<PostHead>, Lengths),
    /// The beginning of a head.
    Partial,
    /// The general server knows better.
    Other,
}

impl PostHead {
    /// The lengths of a request that begins with this head, except for the length of its body.
    pub(super) fn find(&self, read: &[u8], max_body: usize) -> Option<Lengths> {
        let (before, after) = (&self.text[..self.digits.start], &self.text[self.digits.end..]);
        let rest = read.strip_prefix(before)?;
        let count = rest
            .iter()
            .take(MAX_DIGITS)
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (digits, rest) = rest.split_at(count);
        let body = parse_length(digits, max_body)?;
        rest.starts_with(after).then_some(Lengths {
            head: before.len() + count + after.len(),
            body,
        })
    }
}

/// Parses the head of a request.
pub(super) fn parse(read: &[u8], max_body: usize) -> Parsed {
    const START: &[u8] = b"POST /";
    let known = read.len().min(START.len());
    if read[..known] != START[..known] {
        return Parsed::Other;
    }
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(read) {
        Ok(Status::Complete(length)) => match to_head(&request, &read[..length], max_body) {
            Some((head, body)) => Parsed::Post(Box::new(head), Lengths { head: length, body }),
            None => Parsed::Other,
        },
        Ok(Status::Partial) => Parsed::Partial,
        Err(_) => Parsed::Other,
    }
}

fn to_head(request: &httparse::Request<'_, '_>, head: &[u8], max_body: usize) -> Option<(PostHead, usize)> {
    if request.method != Some("POST") || request.version != Some(1) {
        return None;
    }
    let text = Bytes::copy_from_slice(head);
    // Where a part of the head stands in it.
    let place = |part: &[u8]| {
        let start = part.as_ptr().addr() - head.as_ptr().addr();
        start..start + part.len()
    };
    let uri = Uri::from_maybe_shared(text.slice(place(request.path?.as_bytes()))).ok()?;
    let mut headers = HeaderMap::with_capacity(request.headers.len());
    let mut length = None;
    for header in request.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
        if name == CONTENT_LENGTH {
            let body = parse_length(header.value, max_body)?;
            if length.replace((place(header.value), body)).is_some() {
                return None;
            }
        }
        let is_plain = match name {
            CONNECTION => header.value.eq_ignore_ascii_case(b"keep-alive"),
            TRANSFER_ENCODING | UPGRADE | EXPECT => false,
            _ => true,
        };
        if !is_plain {
            return None;
        }
        let value = HeaderValue::from_maybe_shared(text.slice(place(header.value))).ok()?;
        headers.append(name, value);
    }
    let (digits, body) = length?;
    let mut parts = Request::new(()).into_parts().0;
    (parts.method, parts.uri, parts.headers) = (Method::POST, uri, headers);
    Some((PostHead { parts, text, digits }, body))
}

/// The length of a body, if it is written plainly and not too long.
fn parse_length(digits: &[u8], max: usize) -> Option<usize> {
    if digits.is_empty() || digits.len() > MAX_DIGITS || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let length = digits
        .iter()
        .fold(0, |length, digit| 10 * length + usize::from(digit - b'0'));
    (length <= max).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\nMcp-Name: a\r\n\r\n";

    fn post(text: &str) -> Option<(Box<PostHead>, Lengths)> {
        match parse(text.as_bytes(), 100) {
            Parsed::Post(head, lengths) => Some((head, lengths)),
            Parsed::Partial | Parsed::Other => None,
        }
    }

    #[test]
    fn a_posted_message_is_parsed() {
        let (head, lengths) = post(&format!("{HEAD}rest")).unwrap();
        assert_eq!(
            lengths,
            Lengths {
                head: HEAD.len(),
                body: 12
            }
        );
        assert_eq!(
            (head.parts.uri.path(), &head.parts.headers["mcp-name"]),
            ("/mcp", &HeaderValue::from_static("a"))
        );
        assert_eq!(head.parts.headers.len(), 3);
    }

    #[test]
    fn a_head_is_found_again_with_another_length_and_in_no_other_text() {
        let (head, _) = post(HEAD).unwrap();
        let find = |text: &str| head.find(text.as_bytes(), 100).map(|lengths| lengths.body);
        assert_eq!(find(HEAD), Some(12));
        assert_eq!(find(&format!("{}xyz", HEAD.replace("12", "7"))), Some(7));
        assert_eq!(find(&HEAD.replace("12", "100")), Some(100));
        for other in [
            HEAD.replace("12", "101"),
            HEAD.replace("12", ""),
            HEAD.replace("12", "-1"),
            HEAD.replace("12", "00000012"),
            HEAD.replace("12", "1 2"),
            HEAD.replace("localhost", "Localhost"),
            HEAD.replace("Mcp-Name: a", "Mcp-Name: b"),
            HEAD.replace("\r\n\r\n", "\r\nContent-Length: 13\r\n\r\n"),
            HEAD.replace("/mcp", "/mcp/x"),
            HEAD[..HEAD.len() - 1].to_owned(),
            String::new(),
        ] {
            assert_eq!(find(&other), None, "{other:?}");
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_the_general_server() {
        for other in [
            HEAD.replace("POST", "GET"),
            HEAD.replace("POST", "POSTS"),
            HEAD.replace("1.1", "1.0"),
            HEAD.replace("/mcp", "http://localhost/mcp"),
            HEAD.replace("Content-Length: 12\r\n", ""),
            HEAD.replace("12", "+12"),
            HEAD.replace("12", "101"),
            HEAD.replace("12", "12, 12"),
            HEAD.replace("12", "99999999999999999999"),
            HEAD.replace("Mcp-Name: a", "Content-Length: 12"),
            HEAD.replace("Mcp-Name: a", "Transfer-Encoding: chunked"),
            HEAD.replace("Mcp-Name: a", "transfer-encoding: identity"),
            HEAD.replace("Mcp-Name: a", "Expect: 100-continue"),
            HEAD.replace("Mcp-Name: a", "Upgrade: websocket"),
            HEAD.replace("Mcp-Name: a", "Connection: close"),
            HEAD.replace("Mcp-Name: a", "Connection: keep-alive, Upgrade"),
            HEAD.replace("Mcp-Name: a", "Mcp Name: a"),
            HEAD.replace("Mcp-Name: a", "Mcp-Name : a"),
            HEAD.replace("Mcp-Name: a", " folded"),
            HEAD.replace("Mcp-Name: a", &"x: y\r\n".repeat(MAX_HEADERS)),
            "\r\n".to_owned() + HEAD,
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
        ] {
            assert!(matches!(parse(other.as_bytes(), 100), Parsed::Other), "{other:?}");
        }
        for plain in [
            HEAD.replace("Mcp-Name: a", "Connection: Keep-Alive"),
            HEAD.replace("Mcp-Name: a", "Mcp-Name:"),
        ] {
            assert!(post(&plain).is_some(), "{plain:?}");
        }
    }

    #[test]
    fn each_beginning_of_a_head_is_one() {
        for end in 0..HEAD.len() {
            assert!(matches!(parse(&HEAD.as_bytes()[..end], 100), Parsed::Partial), "{end}");
        }
    }
}
