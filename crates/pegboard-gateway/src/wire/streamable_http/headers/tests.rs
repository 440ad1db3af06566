use bytes::Bytes;
use http::HeaderValue;
use serde_json::{Value, json};

use super::*;
use crate::protocol::{Incoming, Message, parse};

const V: (&str, &str) = ("mcp-protocol-version", "2026-07-28");
const CALL: (&str, &str) = ("mcp-method", "tools/call");

fn map(headers: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    map
}

fn request(method: &str, params: &Value) -> Request {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    match parse(&Bytes::from(message)) {
        Ok(Incoming::One(Message::Request(request))) => request,
        other => panic!("{other:?}"),
    }
}

#[test]
fn headers_must_say_what_the_body_says() {
    const NAME: &str = "mcp-name";
    for (headers, name, code) in [
        (&[V, CALL, (NAME, "now")][..], "now", None),
        (&[V, CALL, (NAME, "=?base64?bm93?=")], "now", None),
        (&[V, CALL, (NAME, "=?base64?w6Q=?=")], "ä", None),
        (&[V, CALL, (NAME, "=?base64?!?=")], "now", Some(-32020)),
        (&[V, CALL, (NAME, "later")], "now", Some(-32020)),
        (&[V, CALL], "now", Some(-32020)),
        (&[V, CALL, (NAME, "now"), (NAME, "now")], "now", Some(-32020)),
        (&[V, (NAME, "now")], "now", Some(-32020)),
        (&[V, ("mcp-method", "tools/list"), (NAME, "now")], "now", Some(-32020)),
        (&[CALL, (NAME, "now")], "now", Some(-32020)),
        (
            &[("mcp-protocol-version", "2025-11-25"), CALL, (NAME, "now")],
            "now",
            Some(-32020),
        ),
        (&[V, CALL, (NAME, "now"), ("mcp-param-city", "Bonn")], "now", None),
        (
            &[V, CALL, (NAME, "now"), ("mcp-param-city", "=?base64?w6Q=?=")],
            "now",
            None,
        ),
        (
            &[V, CALL, (NAME, "now"), ("mcp-param-city", "=?base64?!?=")],
            "now",
            Some(-32020),
        ),
        (
            &[V, CALL, (NAME, "now"), ("mcp-param-a", "1"), ("mcp-param-a", "2")],
            "now",
            Some(-32020),
        ),
    ] {
        let params = json!({"name": name, "_meta": {META_VERSION: "2026-07-28"}});
        let outcome = check(&map(headers), &request("tools/call", &params));
        assert_eq!(outcome.err().map(|error| error.code), code, "{headers:?}");
    }
}

#[test]
fn the_name_of_a_resource_is_its_uri() {
    let params = json!({"uri": "file:///a", "name": "x", "_meta": {META_VERSION: "2026-07-28"}});
    let request = request("resources/read", &params);
    for (name, is_right) in [("file:///a", true), ("x", false)] {
        let headers = map(&[V, ("mcp-method", "resources/read"), ("mcp-name", name)]);
        assert_eq!(check(&headers, &request).is_ok(), is_right, "{name}");
    }
}

#[test]
fn the_era_is_known_by_header_or_body() {
    let plain = request("tools/list", &json!({}));
    let modern = request("tools/list", &json!({"_meta": {META_VERSION: "2026-07-28"}}));
    let discover = request("server/discover", &json!({}));
    const SESSION: (&str, &str) = ("mcp-session-id", "x");
    const LEGACY: (&str, &str) = ("mcp-protocol-version", "2025-06-18");
    for (headers, request, is) in [
        (&[][..], &plain, false),
        (&[V], &plain, true),
        (&[LEGACY], &plain, false),
        (&[("mcp-protocol-version", "2031-01-01")], &plain, true),
        (&[], &modern, true),
        (&[LEGACY], &modern, true),
        (&[LEGACY, SESSION], &modern, false),
        (&[V, SESSION], &plain, true),
        (&[], &discover, true),
    ] {
        assert_eq!(is_modern(&map(headers), request), is, "{headers:?}");
    }
}

#[test]
fn a_body_without_a_version_is_refused_for_an_unknown_version_in_the_header() {
    let request = request("tools/list", &json!({}));
    let unknown = map(&[("mcp-protocol-version", "2031-01-01")]);
    assert_eq!(
        check(&unknown, &request).unwrap_err().code,
        RpcError::UNSUPPORTED_VERSION
    );
    // The endpoint refuses the missing `_meta`.
    assert!(check(&map(&[V]), &request).is_ok());
}

#[test]
fn a_session_takes_every_version_with_a_handshake() {
    for (version, is_right) in [
        ("2025-06-18", true),
        ("2025-11-25", true),
        ("2026-07-28", false),
        ("1.0", false),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(VERSION, HeaderValue::from_static(version));
        assert_eq!(check_version(&headers).is_ok(), is_right, "{version}");
    }
    assert!(check_version(&HeaderMap::new()).is_ok());
}
