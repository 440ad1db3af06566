use bytes::Bytes;
use http::HeaderValue;
use serde_json::{Value, json};

use super::*;
use crate::protocol::{Incoming, Message, parse};

const V: (&str, &str) = (header::PROTOCOL_VERSION, Version::V2026_07_28.as_str());
const CALL: (&str, &str) = (header::METHOD, method::TOOLS_CALL);

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
    const NAME: &str = header::NAME;
    for (headers, name, code) in [
        (&[V, CALL, (NAME, "now")][..], "now", None),
        (&[V, CALL, (NAME, "=?base64?bm93?=")], "now", None),
        (&[V, CALL, (NAME, "=?base64?w6Q=?=")], "ä", None),
        (&[V, CALL, (NAME, "=?base64?!?=")], "now", Some(code::HEADER_MISMATCH)),
        (&[V, CALL, (NAME, "later")], "now", Some(code::HEADER_MISMATCH)),
        (&[V, CALL], "now", Some(code::HEADER_MISMATCH)),
        (
            &[V, CALL, (NAME, "now"), (NAME, "now")],
            "now",
            Some(code::HEADER_MISMATCH),
        ),
        (&[V, (NAME, "now")], "now", Some(code::HEADER_MISMATCH)),
        (
            &[V, (header::METHOD, method::TOOLS_LIST), (NAME, "now")],
            "now",
            Some(code::HEADER_MISMATCH),
        ),
        (&[CALL, (NAME, "now")], "now", Some(code::HEADER_MISMATCH)),
        (
            &[
                (header::PROTOCOL_VERSION, Version::V2025_11_25.as_str()),
                CALL,
                (NAME, "now"),
            ],
            "now",
            Some(code::HEADER_MISMATCH),
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
            Some(code::HEADER_MISMATCH),
        ),
        (
            &[V, CALL, (NAME, "now"), ("mcp-param-a", "1"), ("mcp-param-a", "2")],
            "now",
            Some(code::HEADER_MISMATCH),
        ),
    ] {
        let params = json!({"name": name, "_meta": {meta::PROTOCOL_VERSION: Version::V2026_07_28.as_str()}});
        let outcome = check(&map(headers), &request(method::TOOLS_CALL, &params));
        assert_eq!(outcome.err().map(|error| error.code), code, "{headers:?}");
    }
}

#[test]
fn the_name_of_a_resource_is_its_uri() {
    let params =
        json!({"uri": "file:///a", "name": "x", "_meta": {meta::PROTOCOL_VERSION: Version::V2026_07_28.as_str()}});
    let request = request(method::RESOURCES_READ, &params);
    for (name, is_right) in [("file:///a", true), ("x", false)] {
        let headers = map(&[V, (header::METHOD, method::RESOURCES_READ), (header::NAME, name)]);
        assert_eq!(check(&headers, &request).is_ok(), is_right, "{name}");
    }
}

#[test]
fn the_era_is_known_by_header_or_body() {
    let plain = request(method::TOOLS_LIST, &json!({}));
    let modern = request(
        method::TOOLS_LIST,
        &json!({"_meta": {meta::PROTOCOL_VERSION: Version::V2026_07_28.as_str()}}),
    );
    let discover = request(method::SERVER_DISCOVER, &json!({}));
    const SESSION: (&str, &str) = (header::SESSION_ID, "x");
    const LEGACY: (&str, &str) = (header::PROTOCOL_VERSION, Version::V2025_06_18.as_str());
    for (headers, request, is) in [
        (&[][..], &plain, false),
        (&[V], &plain, true),
        (&[LEGACY], &plain, false),
        (&[(header::PROTOCOL_VERSION, "2031-01-01")], &plain, true),
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
    let request = request(method::TOOLS_LIST, &json!({}));
    let unknown = map(&[(header::PROTOCOL_VERSION, "2031-01-01")]);
    assert_eq!(check(&unknown, &request).unwrap_err().code, code::UNSUPPORTED_VERSION);
    // The endpoint refuses the missing `_meta`.
    assert!(check(&map(&[V]), &request).is_ok());
}

#[test]
fn a_session_takes_every_version_with_a_handshake() {
    for (version, is_right) in [
        (Version::V2025_06_18.as_str(), true),
        (Version::V2025_11_25.as_str(), true),
        (Version::V2026_07_28.as_str(), false),
        ("1.0", false),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert(VERSION, HeaderValue::from_static(version));
        assert_eq!(check_version(&headers).is_ok(), is_right, "{version}");
    }
    assert!(check_version(&HeaderMap::new()).is_ok());
}
