//! The answer to a request as it came, its result still unread.

use std::ops::Range;

use bytes::Bytes;

use super::{json_rpc::Incoming, pending_requests::Unanswered};
use crate::json_scan::Scan;

/// A result with more bytes than this is copied before parts of it are kept.
const LONG: usize = 32 << 10;

/// A message that answers a request, and where its result stands in it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Response {
    message: Bytes,
    result: Range<usize>,
    /// Whether the whole message was read, or only its two ends.
    is_proven: bool,
}

impl Response {
    /// The answer whose whole message was read.
    pub(super) fn proven_in(message: &Bytes, result: &str) -> Self {
        Self {
            message: message.slice_ref(result.as_bytes()),
            result: 0..result.len(),
            is_proven: true,
        }
    }

    /// The id and the answer of a message that looks like one at its two ends. What is between them may be megabytes long and is left
    /// to the one who waits for it: if all of it is one JSON object, the guess was right, because a text can be read in one way only.
    pub(super) fn guess(message: &Bytes) -> Option<(u64, Self)> {
        let body = message.trim_ascii_end();
        let mut ends = Ends::default();
        let mut head = Scan::new(body);
        if !head.eat(b'{') {
            return None;
        }
        while !ends.field(&mut head)? {
            if !head.eat(b',') {
                return None;
            }
        }
        if head.peek() != Some(b'{') {
            return None;
        }
        let start = head.at();
        let inner = body.get(start..body.len() - 1)?;
        let end = start + memchr::memrchr(b'}', inner)? + 1;
        let mut tail = Scan::new(&body[end..]);
        while tail.eat(b',') {
            if ends.field(&mut tail)? {
                return None;
            }
        }
        if !tail.eat(b'}') || !tail.is_at_end() {
            return None;
        }
        let answer = Self {
            message: message.clone(),
            result: start..end,
            is_proven: false,
        };
        Some((ends.id?, answer))
    }

    /// What is the result, if the guess was right. Whoever reads it must read it to its end, and take nothing that is not whole.
    pub(super) fn presumed(&self) -> &[u8] {
        &self.message[self.result.clone()]
    }

    /// The same, to be kept in parts. A long one is copied: its message has a share of the board's budget, which what is kept must not hold.
    pub(super) fn presumed_bytes(&self) -> Bytes {
        if self.result.len() > LONG {
            return Bytes::copy_from_slice(self.presumed());
        }
        self.message.slice(self.result.clone())
    }

    /// The result, once the message as a whole was read.
    pub(super) fn proven(&self) -> Result<Bytes, Unanswered> {
        if self.is_proven {
            return Ok(self.message.clone());
        }
        match serde_json::from_slice::<Incoming<'_>>(&self.message) {
            Ok(incoming) if incoming.method.is_some() => Err(Unanswered::Unreadable("it is a request as well".into())),
            Ok(incoming) => Ok(self.message.slice_ref(incoming.outcome()?.get().as_bytes())),
            Err(error) => Err(Unanswered::Unreadable(error.to_string())),
        }
    }
}

/// The fields before and after a result.
#[derive(Default)]
struct Ends {
    id: Option<u64>,
    has_version: bool,
}

impl Ends {
    /// Reads a key and its value; `true` at a result, whose value is not read.
    fn field(&mut self, scan: &mut Scan<'_>) -> Option<bool> {
        match &*scan.key()? {
            "result" => return Some(true),
            "id" if self.id.is_none() => self.id = Some(scan.number()?),
            "jsonrpc" if !self.has_version => {
                scan.text()?;
                self.has_version = true;
            }
            _ => return None,
        }
        Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(text: &str) -> Option<(u64, Response)> {
        Response::guess(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn the_result_is_found_in_every_usual_order() {
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"result":{"a":{"b":"}"}}}"#,
            r#"{"result":{"a":{"b":"}"}},"jsonrpc":"2.0","id":7}"#,
            r#"{"id":7,"result":{"a":{"b":"}"}},"jsonrpc":"2.0"}"#,
            " { \"jsonrpc\" : \"2.0\" , \"id\" : 7 , \"result\" : {\"a\":{\"b\":\"}\"}} } \r\n",
        ] {
            let (id, answer) = guess(text).expect(text);
            assert_eq!(id, 7, "{text}");
            assert_eq!(answer.presumed(), br#"{"a":{"b":"}"}}"#, "{text}");
            assert_eq!(answer.proven().unwrap(), answer.presumed(), "{text}");
        }
    }

    #[test]
    fn what_does_not_look_like_an_answer_is_read_as_a_whole() {
        for text in [
            "",
            "{",
            "{}",
            r#"{"id":7}"#,
            r#"{"id":7,"result":{}"#,
            r#"{"id":"7","result":{}}"#,
            r#"{"id":7.0,"result":{}}"#,
            r#"{"id":7,"id":7,"result":{}}"#,
            r#"{"id":7,"result":{},"id":7}"#,
            r#"{"id":7,"result":[]}"#,
            r#"{"id":7,"result":"{}"}"#,
            r#"{"id":7,"method":"ping","result":{}}"#,
            r#"{"id":7,"result":{},"result":5}"#,
            r#"{"result":{}}"#,
            r#"{"id":7,"error":{"code":1}}"#,
        ] {
            assert_eq!(guess(text), None, "{text}");
        }
    }

    #[test]
    fn a_wrong_guess_is_found_out() {
        let (_, answer) = guess(r#"{"id":7,"result":{"a":1},"later":{"b":2}}"#).unwrap();
        assert_eq!(answer.presumed(), br#"{"a":1},"later":{"b":2}"#);
        assert_eq!(answer.proven().unwrap(), r#"{"a":1}"#);
        for text in [
            r#"{"id":7,"result":{},"error":{}}"#,
            r#"{"id":7,"result":{},"result":{}}"#,
            r#"{"id":7,"result":{},"method":"x","params":{}}"#,
            r#"{"id":7,"result":{x}}"#,
        ] {
            let (_, answer) = guess(text).expect(text);
            assert!(matches!(answer.proven(), Err(Unanswered::Unreadable(_))), "{text}");
        }
    }
}
