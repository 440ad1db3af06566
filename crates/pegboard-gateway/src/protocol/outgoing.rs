//! [`Outgoing`]: a whole message to the client, around a result that is not copied if it is long.

use std::{num::NonZeroU32, sync::Arc};

use bytes::{BufMut, Bytes, BytesMut};
use memchr::memchr2;
use pegboard_protocol::RpcError;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;

use super::{raw_result::RawResult, rpc_errors::may_have_executed};

/// Up to this length a result is copied into one buffer with its envelope: one write of one buffer costs less than three.
const COPIED: usize = 4 * 1024;

/// Longer results take room in the buffers of servers and clients.
const BUFFERED: usize = 64 * 1024;

/// A JSON-RPC message to the client, in up to three parts.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    head: Bytes,
    /// The text of a long result or of long params.
    body: Bytes,
    tail: Bytes,
    /// In a box, because few messages have one.
    error: Option<Box<ErrorNote>>,
    /// The room that it takes among the unread messages of its connection.
    room: Option<Arc<OwnedSemaphorePermit>>,
}

/// What the status of a response with an error depends on.
#[derive(Clone, Copy, Debug)]
struct ErrorNote {
    code: i64,
    /// The field `retry_after` of the error's data, in seconds; `None` if the request may have taken effect.
    retry_after: Option<NonZeroU32>,
}

impl Outgoing {
    /// The response with a result. A modern client gets the fields of the result that its version requires.
    pub(crate) fn result(id: &str, result: &RawResult, is_modern: bool) -> Self {
        let mut head = BytesMut::with_capacity(64 + id.len() + result.short_len(COPIED));
        head.put_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        head.put_slice(id.as_bytes());
        head.put_slice(b",\"result\":");
        let rest = if is_modern {
            result.write_modern_head(&mut head)
        } else {
            result.json().clone()
        };
        Self::close(head, rest)
    }

    /// The response with an error. The id is `null` if the request's could not be parsed.
    pub(crate) fn error(id: Option<&str>, error: &RpcError) -> Self {
        let mut head = BytesMut::with_capacity(128);
        head.put_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
        head.put_slice(id.unwrap_or("null").as_bytes());
        head.put_slice(b",\"error\":");
        let error_text = to_text(error);
        let data = error
            .data
            .as_ref()
            .filter(|_| !may_have_executed(error) && !error.is_passed_on);
        let seconds = data.and_then(|data| data.get("retry_after")?.as_u64());
        let retry_after = seconds.and_then(|seconds| NonZeroU32::new(u32::try_from(seconds).unwrap_or(u32::MAX)));
        let note = ErrorNote {
            code: error.code,
            retry_after,
        };
        Self {
            error: Some(Box::new(note)),
            ..Self::close(head, error_text)
        }
    }

    /// A notification. `params` is the text of an object.
    pub(crate) fn notification(method: &str, params: Bytes) -> Self {
        Self::with_method(None, method, params)
    }

    /// A request of ours. `params` is the text of an object.
    pub(crate) fn request(id: u64, method: &str, params: Bytes) -> Self {
        Self::with_method(Some(id), method, params)
    }

    /// The responses of a batch.
    pub(crate) fn batch(responses: Vec<Self>) -> Self {
        let length = responses.iter().map(|response| response.len() + 1).sum::<usize>();
        let mut whole = BytesMut::with_capacity(length + 1);
        for response in responses {
            whole.put_u8(if whole.is_empty() { b'[' } else { b',' });
            response.parts().into_iter().for_each(|part| whole.put_slice(part));
        }
        whole.put_u8(b']');
        Self::whole(whole.freeze())
    }

    /// The parts in order. Short messages have one, and the others are empty.
    pub(crate) fn parts(&self) -> [&Bytes; 3] {
        [&self.head, &self.body, &self.tail]
    }

    /// The length of the message.
    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.body.len() + self.tail.len()
    }

    /// Whether the message is so long that the unread ones of a connection are limited.
    pub(super) fn is_long(&self) -> bool {
        self.len() > BUFFERED
    }

    /// Takes room among the unread messages of its connection until it is dropped.
    #[must_use]
    pub(super) fn in_room(mut self, room: OwnedSemaphorePermit) -> Self {
        self.room = Some(Arc::new(room));
        self
    }

    /// The message in one buffer. Copies only if it has several parts.
    pub(crate) fn into_bytes(self) -> Bytes {
        if self.body.is_empty() && self.tail.is_empty() {
            return self.head;
        }
        let mut whole = BytesMut::with_capacity(self.len());
        self.parts().into_iter().for_each(|part| whole.put_slice(part));
        whole.freeze()
    }

    /// Copies a long message, so that whoever keeps it does not keep the buffer of its server.
    pub(crate) fn detach(&mut self) {
        if self.body.len() > BUFFERED {
            self.body = Bytes::copy_from_slice(&self.body);
        }
    }

    /// The code, if the message is a response with an error.
    pub(crate) fn error_code(&self) -> Option<i64> {
        self.error.as_ref().map(|error| error.code)
    }

    /// After how many seconds the client may send the request again, if the error says so.
    pub(crate) fn retry_after(&self) -> Option<NonZeroU32> {
        self.error.as_ref()?.retry_after
    }

    /// The message without line breaks, for wires on which one ends a message. JSON has them only between tokens, so that a space
    /// means the same. Copies only a part that has one.
    pub(crate) fn on_one_line(mut self) -> Self {
        for part in [&mut self.head, &mut self.body, &mut self.tail] {
            if memchr2(b'\n', b'\r', part).is_some() {
                let line = part
                    .iter()
                    .map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte });
                *part = line.collect::<Vec<_>>().into();
            }
        }
        self
    }

    fn with_method(id: Option<u64>, method: &str, params: Bytes) -> Self {
        let mut head = BytesMut::with_capacity(64 + method.len() + params.len().min(COPIED));
        head.put_slice(b"{\"jsonrpc\":\"2.0\",");
        if let Some(id) = id {
            head.put_slice(format!("\"id\":{id},").as_bytes());
        }
        head.put_slice(b"\"method\":");
        head.put_slice(&to_text(&method));
        head.put_slice(b",\"params\":");
        Self::close(head, params)
    }

    /// Adds the body and the closing brace.
    fn close(mut head: BytesMut, body: Bytes) -> Self {
        if body.len() <= COPIED {
            head.put_slice(&body);
            head.put_u8(b'}');
            return Self::whole(head.freeze());
        }
        Self {
            head: head.freeze(),
            body,
            tail: Bytes::from_static(b"}"),
            error: None,
            room: None,
        }
    }

    fn whole(head: Bytes) -> Self {
        Self {
            head,
            body: Bytes::new(),
            tail: Bytes::new(),
            error: None,
            room: None,
        }
    }
}

/// The JSON text of a value that cannot fail to serialise.
pub(super) fn to_text(value: &impl Serialize) -> Bytes {
    // Strings, numbers and JSON values have no case that fails.
    serde_json::to_vec(value).unwrap_or_else(|_| b"null".to_vec()).into()
}

#[cfg(test)]
mod tests {
    use pegboard_protocol::code;
    use serde_json::{Value, json};

    use super::*;

    fn json_of(outgoing: Outgoing) -> Value {
        assert_eq!(outgoing.len(), outgoing.clone().into_bytes().len());
        serde_json::from_slice(&outgoing.into_bytes()).unwrap()
    }

    fn raw(text: &str) -> RawResult {
        RawResult::from_text(Bytes::copy_from_slice(text.as_bytes()), false)
    }

    /// The call has reached the server, so nothing may make a client send it again on its own.
    #[test]
    fn only_errors_of_this_gateway_say_when_to_come_back() {
        for code in [code::BUSY, code::STOPPING] {
            let data = json!({"retry_after": 1, "may_have_executed": false});
            let ours = RpcError::new(code, "later").data(data);
            assert_eq!(Outgoing::error(Some("1"), &ours).retry_after(), NonZeroU32::new(1));
            let of_server = RpcError {
                is_passed_on: true,
                ..ours.clone()
            };
            assert_eq!(Outgoing::error(Some("1"), &of_server).retry_after(), None);
        }
    }

    #[test]
    fn a_result_is_put_into_its_envelope() {
        for text in ["{}", " { } ", r#"{"a":1}"#, "\n{\n\"a\": 1}"] {
            let value: Value = serde_json::from_str(text).unwrap();
            let legacy = json_of(Outgoing::result("\"x\"", &raw(text), false));
            assert_eq!(legacy, json!({"jsonrpc": "2.0", "id": "x", "result": value}), "{text}");
            let modern = json_of(Outgoing::result("1", &raw(text), true));
            let mut expected = value;
            expected["resultType"] = json!("complete");
            assert_eq!(modern["result"], expected, "{text}");
        }
    }

    #[test]
    fn a_long_result_is_not_copied() {
        let text = Bytes::from(format!("{{\"a\":\"{}\"}}", "x".repeat(COPIED)));
        for (is_modern, skipped) in [(false, 0), (true, 1)] {
            let outgoing = Outgoing::result("1", &RawResult::from_text(text.clone(), false), is_modern);
            let body = outgoing.parts()[1];
            assert_eq!(body.as_ptr(), text[skipped..].as_ptr());
            json_of(outgoing);
        }
    }

    #[test]
    fn a_message_can_be_put_on_one_line() {
        let text = format!("{{\n\"a\":\r\n\"{}\\n\"}}", "x".repeat(COPIED));
        let outgoing = Outgoing::result("1", &raw(&text), false);
        let expected = json_of(outgoing.clone());
        let line = outgoing.on_one_line();
        assert!(!line.clone().into_bytes().contains(&b'\n'));
        assert_eq!(json_of(line), expected);
    }

    #[test]
    fn errors_notifications_requests_and_batches_are_messages() {
        let error = Outgoing::error(None, &RpcError::new(-1, "no").data(json!(3)));
        assert_eq!(error.error_code(), Some(-1));
        let error_json = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -1, "message": "no", "data": 3}});
        assert_eq!(json_of(error.clone()), error_json);
        let batch = Outgoing::batch(vec![error.clone(), error]);
        assert_eq!(json_of(batch), json!([error_json, error_json]));
        let notification = Outgoing::notification("a/\"b", Bytes::from_static(b"{\"x\":1}"));
        assert_eq!(
            json_of(notification),
            json!({"jsonrpc": "2.0", "method": "a/\"b", "params": {"x": 1}})
        );
        let request = Outgoing::request(3, "roots/list", Bytes::from_static(b"{}"));
        assert_eq!(
            json_of(request),
            json!({"jsonrpc": "2.0", "id": 3, "method": "roots/list", "params": {}})
        );
    }
}
