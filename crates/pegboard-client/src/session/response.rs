//! The response to a request, with its result still unparsed.

use std::ops::Range;

use bytes::Bytes;
use serde::de::DeserializeOwned;

use super::{fault::Fault, json_rpc};
use pegboard_base::json_scan::Scan;

/// A result with more bytes than this is copied before slices of it are kept.
const LONG: usize = 32 << 10;

/// A response message, and the range of its result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Response {
    message: Bytes,
    result: Range<usize>,
    /// Whether the whole message was parsed, as opposed to only its two ends.
    is_verified: bool,
}

impl Response {
    /// Creates a response from a message that was parsed as a whole.
    pub(super) fn from_verified(message: &Bytes, result: &str) -> Self {
        Self {
            message: message.slice_ref(result.as_bytes()),
            result: 0..result.len(),
            is_verified: true,
        }
    }

    /// Recognises a response by its two ends, and returns its id. The result between them may be megabytes long, so the caller of the
    /// request parses it: if it is one JSON object, the guess was right, because JSON is unambiguous.
    pub(super) fn recognize(message: &Bytes) -> Option<(u64, Self)> {
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
        let response = Self {
            message: message.clone(),
            result: start..end,
            is_verified: false,
        };
        Some((ends.id?, response))
    }

    /// Returns the result, if the message was recognised correctly. The caller must parse it to its end and reject malformed JSON.
    pub(super) fn unverified_result(&self) -> &[u8] {
        &self.message[self.result.clone()]
    }

    /// Like [`Self::unverified_result`], for callers that keep slices. A long result is copied: kept slices must not hold the message's share
    /// of the byte budget.
    pub(super) fn unverified_bytes(&self) -> Bytes {
        if self.result.len() > LONG {
            return Bytes::copy_from_slice(self.unverified_result());
        }
        self.message.slice(self.result.clone())
    }

    /// Like [`Self::unverified_result`], as a part of the message, which holds its share of the byte budget.
    pub(super) fn unverified_part(&self) -> Bytes {
        self.message.slice(self.result.clone())
    }

    /// Parses the whole message and returns its result.
    pub(super) fn result(&self) -> Result<Bytes, Fault> {
        if self.is_verified {
            return Ok(self.message.clone());
        }
        match json_rpc::parse(&self.message) {
            Ok(incoming) if incoming.method.is_some() => Err(Fault::unreadable("it is a request as well")),
            Ok(incoming) => Ok(self.message.slice_ref(json_rpc::outcome(&incoming)?.get().as_bytes())),
            Err(error) => Err(Fault::unreadable(error.to_string())),
        }
    }
}

/// Parses a result, which must be an object.
pub(super) fn parse_result<T: DeserializeOwned>(result: &[u8]) -> Result<T, Fault> {
    // Serde would fill a struct from an array, by position.
    if result.first() != Some(&b'{') {
        return Err(Fault::unreadable("the result is no object"));
    }
    serde_json::from_slice(result).map_err(|error| Fault::unreadable(error.to_string()))
}

/// The envelope fields before and after a result.
#[derive(Default)]
struct Ends {
    id: Option<u64>,
    has_version: bool,
}

impl Ends {
    /// Parses a field. Returns `true` at the result, whose value is left unparsed.
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
    use crate::session::fault::FaultKind;

    fn recognize(text: &str) -> Option<(u64, Response)> {
        Response::recognize(&Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn the_result_is_found_in_every_usual_order() {
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"result":{"a":{"b":"}"}}}"#,
            r#"{"result":{"a":{"b":"}"}},"jsonrpc":"2.0","id":7}"#,
            r#"{"id":7,"result":{"a":{"b":"}"}},"jsonrpc":"2.0"}"#,
            " { \"jsonrpc\" : \"2.0\" , \"id\" : 7 , \"result\" : {\"a\":{\"b\":\"}\"}} } \r\n",
        ] {
            let (id, response) = recognize(text).expect(text);
            assert_eq!(id, 7, "{text}");
            assert_eq!(response.unverified_result(), br#"{"a":{"b":"}"}}"#, "{text}");
            assert_eq!(response.result().unwrap(), response.unverified_result(), "{text}");
        }
    }

    #[test]
    fn what_does_not_look_like_a_response_is_parsed_as_a_whole() {
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
            assert_eq!(recognize(text), None, "{text}");
        }
    }

    #[test]
    fn a_wrong_guess_is_found_out() {
        let (_, response) = recognize(r#"{"id":7,"result":{"a":1},"later":{"b":2}}"#).unwrap();
        assert_eq!(response.unverified_result(), br#"{"a":1},"later":{"b":2}"#);
        assert_eq!(response.result().unwrap(), r#"{"a":1}"#);
        for text in [
            r#"{"id":7,"result":{},"error":{}}"#,
            r#"{"id":7,"result":{},"result":{}}"#,
            r#"{"id":7,"result":{},"method":"x","params":{}}"#,
            r#"{"id":7,"result":{x}}"#,
        ] {
            let (_, response) = recognize(text).expect(text);
            let fault = response.result().unwrap_err();
            assert!(matches!(fault.kind, FaultKind::Unreadable(_)), "{text}");
        }
    }
}
