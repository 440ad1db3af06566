//! Validates the MCP headers of a request against its body.

use axum::http::{HeaderMap, header};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::demo::message::{Fault, Request};
use crate::demo::protocol::{META_VERSION, unsupported};
use crate::demo::version::Version;

const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// The content types that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Accepts {
    pub(super) json: bool,
    pub(super) events: bool,
}

impl Accepts {
    /// Parses `Accept`. A client without the header accepts JSON.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(header::ACCEPT).iter().peekable();
        if values.peek().is_none() {
            return Self {
                json: true,
                events: false,
            };
        }
        let mut accepts = Self {
            json: false,
            events: false,
        };
        for kind in values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
        {
            let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            accepts.json |= ["application/json", "application/*", "*/*"].contains(&kind.as_str());
            accepts.events |= ["text/event-stream", "text/*", "*/*"].contains(&kind.as_str());
        }
        accepts
    }
}

/// Returns `true` if a request is of the modern era: by its body, or by a version header that no handshake negotiates.
pub(super) fn is_modern(headers: &HeaderMap, request: &Request) -> bool {
    let named = headers.get(VERSION).and_then(|version| version.to_str().ok());
    body_version(request).is_some()
        || request.method == "server/discover"
        || named.is_some_and(|named| Version::parse(named).is_none_or(Version::is_modern))
}

/// Checks that the headers of a modern request match its body.
pub(super) fn check(headers: &HeaderMap, request: &Request) -> Result<(), Fault> {
    let version = single(headers, VERSION)?;
    let Some(in_body) = body_version(request) else {
        return match version {
            Some(named) if Version::parse(named).is_none() => Err(unsupported(named)),
            _ => Err(Fault::invalid_params(format!("`_meta` needs the key `{META_VERSION}`"))),
        };
    };
    agree("MCP-Protocol-Version", version, in_body.as_str().unwrap_or_default())?;
    agree("Mcp-Method", single(headers, METHOD)?, &request.method)?;
    let key = match request.method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(()),
    };
    let Some(in_body) = request.params.get(key).and_then(Value::as_str) else {
        return Err(Fault::invalid_params(format!("`{key}` is missing or not a string")));
    };
    let name = single(headers, NAME)?.map(decode).transpose()?;
    agree("Mcp-Name", name.as_deref(), in_body)
}

fn body_version(request: &Request) -> Option<&Value> {
    request.params.get("_meta")?.get(META_VERSION)
}

fn agree(header: &str, value: Option<&str>, in_body: &str) -> Result<(), Fault> {
    match value {
        Some(value) if value == in_body => Ok(()),
        Some(value) => Err(mismatch(format!(
            "the {header} header says `{value}`, the body says `{in_body}`"
        ))),
        None => Err(mismatch(format!("the {header} header is missing"))),
    }
}

fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Fault> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(mismatch(format!("the {name} header is given twice")));
    }
    value
        .to_str()
        .map(Some)
        .map_err(|_| mismatch(format!("the {name} header is not plain text")))
}

/// Decodes a header value. Text that a header cannot carry is sent as `=?base64?…?=`.
fn decode(value: &str) -> Result<String, Fault> {
    let Some(coded) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Ok(value.to_owned());
    };
    let bytes = BASE64_STANDARD.decode(coded).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| mismatch("the Mcp-Name header is not valid base64 of UTF-8"))
}

fn mismatch(message: impl Into<String>) -> Fault {
    Fault::new(Fault::HEADER_MISMATCH, message)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};
    use serde_json::json;

    use super::*;
    use crate::demo::message::Id;

    fn map(headers: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        map
    }

    fn request(method: &str, params: &Value) -> Request {
        Request {
            id: Id::Number(1),
            method: method.into(),
            params: params.as_object().unwrap().clone(),
        }
    }

    #[test]
    fn headers_must_say_what_the_body_says() {
        const V: (&str, &str) = (VERSION, "2026-07-28");
        const CALL: (&str, &str) = (METHOD, "tools/call");
        for (headers, name, code) in [
            (&[V, CALL, (NAME, "now")][..], "now", None),
            (&[V, CALL, (NAME, "=?base64?bm93?=")], "now", None),
            (&[V, CALL, (NAME, "=?base64?w6Q=?=")], "ä", None),
            (&[V, CALL, (NAME, "=?base64?!?=")], "now", Some(-32020)),
            (&[V, CALL, (NAME, "later")], "now", Some(-32020)),
            (&[V, CALL], "now", Some(-32020)),
            (&[V, CALL, (NAME, "now"), (NAME, "now")], "now", Some(-32020)),
            (&[V, (NAME, "now")], "now", Some(-32020)),
            (&[V, (METHOD, "tools/list"), (NAME, "now")], "now", Some(-32020)),
            (&[CALL, (NAME, "now")], "now", Some(-32020)),
            (&[(VERSION, "2025-11-25"), CALL, (NAME, "now")], "now", Some(-32020)),
        ] {
            let request = request(
                "tools/call",
                &json!({"name": name, "_meta": {META_VERSION: "2026-07-28"}}),
            );
            assert_eq!(
                check(&map(headers), &request).err().map(|fault| fault.code),
                code,
                "{headers:?}"
            );
        }
    }

    #[test]
    fn a_body_without_a_version_is_refused_by_what_its_header_says() {
        let request = request("tools/list", &json!({}));
        for (version, modern, code) in [
            ("2026-07-28", true, -32602),
            ("2031-01-01", true, -32022),
            ("2025-06-18", false, -32602),
        ] {
            let headers = map(&[(VERSION, version)]);
            assert_eq!(is_modern(&headers, &request), modern, "{version}");
            assert_eq!(check(&headers, &request).unwrap_err().code, code, "{version}");
        }
    }

    #[test]
    fn accept_is_read_like_http_says() {
        for (accept, json, events) in [
            ("application/json, text/event-stream", true, true),
            ("application/json;q=0.9", true, false),
            ("*/*", true, true),
            ("text/html", false, false),
        ] {
            assert_eq!(
                Accepts::of(&map(&[("accept", accept)])),
                Accepts { json, events },
                "{accept}"
            );
        }
        assert_eq!(
            Accepts::of(&HeaderMap::new()),
            Accepts {
                json: true,
                events: false
            }
        );
    }
}
