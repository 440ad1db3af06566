//! The envelope of inbound messages.

use std::fmt;

use pegboard::fuzz::{Received, receive};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Value, value::RawValue};

/// The keys of an envelope. A message that has one of them twice is refused.
const KEYS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];

/// A message does what its top-level keys say, read by another parser: a request reaches the program with its id and method, a response
/// completes the request with its id and no other, and a message with a key twice or of another shape does neither.
pub fn json_rpc(data: &[u8]) {
    // Transports hand over messages without space around them.
    let data = data.trim_ascii();
    let received = receive(data, false).expect("a dispatcher");
    for [fast, slow] in &received.call_results {
        match (fast, slow) {
            (Ok(fast), Ok(slow)) => assert_eq!(fast, slow, "the two parsers of results differ"),
            (Ok(fast), Err(error)) => panic!("the fast parser reads {fast}, the other one says: {error}"),
            (Err(_), _) => {}
        }
    }
    // Parts that are not needed are skipped without a look at their encoding, so the other parser would refuse more.
    if std::str::from_utf8(data).is_err() {
        return;
    }
    let batched = receive(&[b"[", data, b"]"].concat(), true).expect("a dispatcher");
    match serde_json::from_slice::<TopLevel<'_>>(data) {
        Ok(message) if data.first() == Some(&b'{') => {
            check(&received, &message);
            check(&batched, &message);
            check_against_value(&message, data);
        }
        _ => check_refused(&received),
    }
}

fn check(received: &Received, message: &TopLevel<'_>) {
    let has_twice = KEYS.iter().any(|key| message.all(key).count() > 1);
    let method = message.one("method").map(RawValue::get);
    let result = message.one("result");
    if has_twice
        || method.is_some_and(|method| !method.starts_with('"'))
        || (method.is_some() && (result.is_some() || message.one("error").is_some()))
    {
        return check_refused(received);
    }
    let id = message.one("id").map(RawValue::get);
    if let Some(method) = method {
        let expected: Vec<_> = match (id, serde_json::from_str::<String>(method)) {
            (Some(id), Ok(method)) => {
                let params = message.one("params").map(|params| params.get().to_owned());
                vec![(id.to_owned(), method, params)]
            }
            _ => Vec::new(),
        };
        assert_eq!(received.requests, expected, "another request than was sent");
        assert!(
            received.responses.iter().all(|(_, response)| response.is_none()),
            "a request completes a request"
        );
        return;
    }
    assert_eq!(received.requests, [], "a response is taken for a request");
    for (ours, response) in &received.responses {
        let is_meant = id == Some(ours.to_string().as_str());
        let expected = match (is_meant, result, message.one("error")) {
            (true, Some(result), None) => Some(Ok(result.get().as_bytes())),
            (true, _, _) => Some(Err(())),
            (false, _, _) => None,
        };
        let response = response.as_ref().map(|response| response.as_deref().map_err(|_| ()));
        assert_eq!(response, expected, "the response to {ours}");
    }
}

/// A message that is refused may fail the request that it seems to respond to. It does nothing else.
fn check_refused(received: &Received) {
    assert_eq!(received.requests, [], "a malformed message is a request");
    for (id, response) in &received.responses {
        assert!(
            !matches!(response, Some(Ok(_))),
            "a malformed message is a response to {id}"
        );
    }
}

/// Where `serde_json` accepts the message as a value, it finds the same fields.
fn check_against_value(message: &TopLevel<'_>, data: &[u8]) {
    let Ok(Value::Object(fields)) = serde_json::from_slice::<Value>(data) else {
        return;
    };
    for key in KEYS.iter().filter(|key| message.all(key).count() == 1) {
        let raw = message.one(key).map_or("null", RawValue::get);
        let value: Value = serde_json::from_str(raw).expect("a part of valid JSON");
        assert_eq!(Some(&value), fields.get(*key), "{key}");
    }
}

/// All fields of an object in order, with duplicates.
struct TopLevel<'a>(Vec<(String, &'a RawValue)>);

impl<'a> TopLevel<'a> {
    fn all(&self, key: &str) -> impl Iterator<Item = &'a RawValue> {
        self.0
            .iter()
            .filter(move |(found, _)| found == key)
            .map(|(_, value)| *value)
    }

    /// The value of a key. Null is the same as none.
    fn one(&self, key: &str) -> Option<&'a RawValue> {
        self.all(key).next().filter(|value| value.get() != "null")
    }
}

impl<'de> Deserialize<'de> for TopLevel<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = TopLevel<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(TopLevel(fields))
            }
        }

        deserializer.deserialize_map(Fields)
    }
}
