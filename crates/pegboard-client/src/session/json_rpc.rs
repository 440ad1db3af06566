//! JSON-RPC messages: outbound ones are serialised without a JSON tree, inbound ones are parsed as an envelope with a raw payload.

use std::fmt::Write as _;

use pegboard_protocol::{meta, rpc::Envelope};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Map, Value, value::RawValue};

use super::fault::Fault;
use crate::transport::ServerError;

/// The initial capacity for params, in bytes. Enough for most messages.
const PARAMS_CAPACITY: usize = 120;

/// The params of a message, serialised as they are added.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params(Vec<u8>);

impl Params {
    /// Adds a field. A value that fails to serialise, as none of our types does, becomes null.
    pub(crate) fn with(mut self, key: &str, value: &(impl Serialize + ?Sized)) -> Self {
        self.key(key);
        let before = self.0.len();
        if serde_json::to_writer(&mut self.0, value).is_err() {
            self.0.truncate(before);
            self.0.extend_from_slice(b"null");
        }
        self
    }

    /// Adds a field if there is a value for it.
    pub(crate) fn with_some(self, key: &str, value: Option<&(impl Serialize + ?Sized)>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Adds all fields of `other`.
    pub(super) fn and(mut self, other: &Self) -> Self {
        if !self.0.is_empty() && !other.0.is_empty() {
            self.0.push(b',');
        }
        self.0.extend_from_slice(&other.0);
        self
    }

    /// Adds a field whose value is JSON text, and puts it on one line.
    pub(super) fn push_raw(&mut self, key: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push(b',');
        }
        // A string cannot fail to serialise.
        let _ = serde_json::to_writer(&mut self.0, key);
        self.0.push(b':');
        push_on_one_line(&mut self.0, value);
    }

    /// The fields as JSON without braces.
    pub(super) fn into_text(self) -> String {
        String::from_utf8(self.0).unwrap_or_default()
    }

    fn key(&mut self, key: &str) {
        if self.0.is_empty() {
            self.0.reserve(PARAMS_CAPACITY);
        } else {
            self.0.push(b',');
        }
        // Keys are constants, without characters that need escaping.
        self.0.push(b'"');
        self.0.extend_from_slice(key.as_bytes());
        self.0.extend_from_slice(b"\":");
    }
}

/// The `_meta` of a message.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Meta<'a> {
    /// Fields that all messages of a session share, as JSON without braces.
    pub(super) common: &'a str,
    /// The client capabilities, if they are not in `common`; else empty.
    pub(super) capabilities: &'a str,
    /// The server's log level, in the era that sets it in every request. Empty for none.
    pub(super) log_level: &'a str,
    /// Fields of this message only, as JSON without braces.
    pub(super) extra: &'a str,
    pub(super) progress_token: Option<u64>,
}

/// Serialises a caller's `_meta` fields as JSON without braces. Fields that are reserved for the protocol are left out.
pub(super) fn extra_meta(fields: &Map<String, Value>) -> String {
    let mut out = String::new();
    for (key, value) in fields {
        if meta::is_reserved(key) {
            continue;
        }
        if !out.is_empty() {
            out.push(',');
        }
        let _ = write!(out, "{}:{value}", Value::from(key.as_str()));
    }
    out
}

/// Serialises a request.
pub(super) fn request(id: u64, method: &str, params: &Params, meta: Meta<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(params.0.len() + meta.common.len() + method.len() + 96);
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    push_number(&mut out, id);
    push_method(&mut out, method, params, meta);
    out
}

/// Serialises a notification.
pub(super) fn notification(method: &str, params: &Params, meta: Meta<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(params.0.len() + meta.common.len() + method.len() + 64);
    out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
    push_method(&mut out, method, params, meta);
    out
}

/// Serialises the response to a request of the server. `id` is the JSON that the server sent.
pub(super) fn response(id: &str, result: Result<&Value, (i64, &str)>) -> Vec<u8> {
    let mut out = format!(r#"{{"jsonrpc":"2.0","id":{id},"#).into_bytes();
    match result {
        Ok(result) => out.extend_from_slice(format!(r#""result":{result}}}"#).as_bytes()),
        Err((code, message)) => {
            let error = serde_json::json!({ "code": code, "message": message });
            out.extend_from_slice(format!(r#""error":{error}}}"#).as_bytes());
        }
    }
    out
}

fn push_method(out: &mut Vec<u8>, method: &str, params: &Params, meta: Meta<'_>) {
    out.extend_from_slice(br#","method":""#);
    out.extend_from_slice(method.as_bytes());
    out.push(b'"');
    let has_meta = !meta.common.is_empty() || !meta.extra.is_empty() || meta.progress_token.is_some();
    if params.0.is_empty() && !has_meta {
        out.push(b'}');
        return;
    }
    out.extend_from_slice(br#","params":{"#);
    out.extend_from_slice(&params.0);
    if has_meta {
        if !params.0.is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(br#""_meta":{"#);
        out.extend_from_slice(meta.common.as_bytes());
        if !meta.common.is_empty() && !meta.capabilities.is_empty() {
            out.push(b',');
            push_meta_key(out, meta::CLIENT_CAPABILITIES);
            push_on_one_line(out, meta.capabilities);
        }
        if !meta.common.is_empty() && !meta.log_level.is_empty() {
            out.push(b',');
            push_meta_key(out, meta::LOG_LEVEL);
            out.push(b'"');
            out.extend_from_slice(meta.log_level.as_bytes());
            out.push(b'"');
        }
        if !meta.common.is_empty() && !meta.extra.is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(meta.extra.as_bytes());
        if let Some(token) = meta.progress_token {
            if !meta.common.is_empty() || !meta.extra.is_empty() {
                out.push(b',');
            }
            push_meta_key(out, meta::PROGRESS_TOKEN);
            push_number(out, token);
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"}}");
}

/// Appends a key of `_meta`. The protocol's keys have no characters that need escaping.
fn push_meta_key(out: &mut Vec<u8>, key: &str) {
    out.push(b'"');
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends JSON text on one line. Some transports frame messages by line breaks; valid JSON has raw line breaks only between tokens, so a
/// space can replace each.
pub(super) fn push_on_one_line(out: &mut Vec<u8>, json: &str) {
    let start = out.len();
    out.extend_from_slice(json.as_bytes());
    for byte in &mut out[start..] {
        if matches!(*byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

fn push_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// Parses an inbound message as an envelope with a raw payload. Serde rejects duplicates of its keys; a member that is null counts as missing.
pub(super) fn parse(message: &[u8]) -> serde_json::Result<Envelope<'_>> {
    serde_json::from_slice(message).map(Envelope::without_nulls)
}

/// Returns the result of a response. A response with both a result and an error, or with neither, is unreadable.
pub(super) fn outcome<'a>(response: &Envelope<'a>) -> Result<&'a RawValue, Fault> {
    match (response.result, response.error) {
        (Some(result), None) => Ok(result),
        (None, Some(error)) => Err(match serde_json::from_str::<ServerError>(error.get()) {
            Ok(error) => error.into(),
            Err(error) => Fault::unreadable(format!("its error cannot be read: {error}")),
        }),
        (Some(_), Some(_)) => Err(Fault::unreadable("it is both a result and an error")),
        (None, None) => Err(Fault::unreadable("it is neither a result nor an error")),
    }
}

/// Returns the id if it can be one of ours: an unsigned integer, not a string or a float.
pub(super) fn our_id(message: &Envelope<'_>) -> Option<u64> {
    message.id?.get().parse().ok()
}

/// Finds the id of a malformed response: one with a duplicate key, truncated, or not UTF-8. Returns `None` for a request of the server,
/// whose id may coincide with one of ours.
pub(super) fn lenient_id(message: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct OnlyId {
        id: u64,
        #[serde(default)]
        method: Option<IgnoredAny>,
    }
    let ends = message.len().min(256);
    match serde_json::from_slice(message) {
        Ok(OnlyId { id, method }) => method.is_none().then_some(id),
        Err(_) => find_id(&message[..ends], &message[message.len() - ends..]),
    }
}

/// Finds the id of a response in the first and last bytes of a message that cannot be parsed as a whole. Servers write the id either
/// before the result or at the very end.
pub(super) fn find_id(head: &[u8], tail: &[u8]) -> Option<u64> {
    let head_ends = find(head, b"\"result\"")
        .or_else(|| find(head, b"\"error\""))
        .unwrap_or(head.len());
    let is_of_request = |key: &[u8]| find(&head[..head_ends], key).is_some();
    if is_of_request(b"\"method\"") || is_of_request(b"\"params\"") {
        return None;
    }
    number_after_id(&head[..head_ends]).or_else(|| {
        let tail_starts = tail.windows(4).rposition(|window| window == b"\"id\"")?;
        let rest = &tail[tail_starts..];
        // More than one brace after the id means that the id belongs to an inner object.
        let closes_message = rest.iter().filter(|byte| **byte == b'}').count() == 1;
        if closes_message { number_after_id(rest) } else { None }
    })
}

fn number_after_id(bytes: &[u8]) -> Option<u64> {
    let at = find(bytes, b"\"id\"")?;
    let rest = bytes[at + 4..]
        .trim_ascii_start()
        .strip_prefix(b":")?
        .trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match rest.get(digits) {
        Some(b',' | b'}' | b' ' | b'\t') => std::str::from_utf8(&rest[..digits]).ok()?.parse().ok(),
        _ => None,
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn requests_are_written_as_the_protocol_says() {
        let meta = Meta {
            common: r#""a":1"#,
            capabilities: "",
            log_level: "",
            extra: "",
            progress_token: Some(3),
        };
        let params = Params::default().with("name", "x\"y").with_some("cursor", None::<&str>);
        assert_eq!(
            text(request(3, "tools/call", &params, meta)),
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x\"y","_meta":{"a":1,"progressToken":3}}}"#
        );
        let meta = Meta {
            log_level: "info",
            progress_token: None,
            ..meta
        };
        assert_eq!(
            text(request(3, "ping", &Params::default(), meta)),
            r#"{"jsonrpc":"2.0","id":3,"method":"ping","params":{"_meta":{"a":1,"io.modelcontextprotocol/logLevel":"info"}}}"#
        );
        assert_eq!(
            text(request(4, "ping", &Params::default(), Meta::default())),
            r#"{"jsonrpc":"2.0","id":4,"method":"ping"}"#
        );
        for id in [0, 9, 10, 12_345, u64::MAX] {
            assert_eq!(
                text(request(id, "ping", &Params::default(), Meta::default())),
                format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)
            );
        }
        assert_eq!(
            text(notification(
                "notifications/cancelled",
                &Params::default().with("requestId", &3),
                Meta::default()
            )),
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#
        );
    }

    #[test]
    fn responses_carry_the_id_as_it_came() {
        assert_eq!(
            text(response(r#""a-1""#, Ok(&json!({})))),
            r#"{"jsonrpc":"2.0","id":"a-1","result":{}}"#
        );
        assert_eq!(
            text(response("7", Err((-32601, "no")))),
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no"}}"#
        );
    }

    #[test]
    fn only_a_whole_number_is_one_of_our_ids() {
        let id = |text: &str| our_id(&parse(text.as_bytes()).unwrap());
        assert_eq!(id(r#"{"id":7}"#), Some(7));
        for other in [r#"{"id":"7"}"#, r#"{"id":7.0}"#, r#"{"id":null}"#, r#"{"id":-7}"#, "{}"] {
            assert_eq!(id(other), None, "{other}");
        }
    }

    #[test]
    fn a_message_with_a_key_twice_is_refused() {
        for key in ["jsonrpc", "id", "method", "params", "result", "error"] {
            let text = format!(r#"{{"{key}":"1","{key}":"1"}}"#);
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        assert!(parse(br#"{"Id":1,"id":2,"result":{}}"#).is_ok());
    }

    #[test]
    fn the_id_of_a_malformed_response_is_found() {
        assert_eq!(lenient_id(br#"{"result":{"id":9},"id":12,"result":{}}"#), Some(12));
        assert_eq!(lenient_id(b"{\"id\":12,\"result\":\"\xff\"}"), Some(12));
        assert_eq!(lenient_id(br#"{"id":12,"result":{"id":9"#), Some(12));
        assert_eq!(lenient_id(br#"{"id":"12","result":{"id":9},"result":{}}"#), None);
        assert_eq!(lenient_id(br#"{"id":12,"id":13,"result":{}}"#), Some(12));
    }

    #[test]
    fn the_id_of_an_overlong_response_is_found_at_either_end() {
        assert_eq!(
            find_id(br#"{"jsonrpc":"2.0","id":12,"result":{"id":99"#, b"..."),
            Some(12)
        );
        assert_eq!(
            find_id(br#"{"result":{"id":99,"text":""#, br#"xx"}]},"jsonrpc":"2.0","id":12}"#),
            Some(12)
        );
        assert_eq!(find_id(br#"{"result":{"text":""#, br#""x":{"id":12}}}"#), None);
        assert_eq!(find_id(br#"{"id":"12","result":"#, b"x"), None);
    }

    #[test]
    fn the_id_of_a_request_is_not_taken_for_that_of_a_response() {
        assert_eq!(
            find_id(br#"{"jsonrpc":"2.0","id":12,"method":"ping","params":{"x":""#, b"..."),
            None
        );
        assert_eq!(find_id(br#"{"params":{"x":""#, br#""},"method":"ping","id":12}"#), None);
        assert_eq!(lenient_id(br#"{"id":12,"method":"ping","id":12}"#), None);
        assert_eq!(lenient_id(br#"{"id":12,"method":5}"#), None);
        assert_eq!(lenient_id(br#"{"id":12,"result":1,"result":2}"#), Some(12));
    }
}
