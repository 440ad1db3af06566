//! Checks the headers of a request against its body.

use std::borrow::Cow;

use axum::http::HeaderMap;
use pegboard_protocol::{
    header, meta,
    method::{self, RequestMethod},
};
use serde_json::Value;

use crate::script::Script;

pub(super) fn session_id(headers: &HeaderMap) -> Option<String> {
    Some(String::from_utf8_lossy(headers.get(header::SESSION_ID)?.as_bytes()).into_owned())
}

pub(super) fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let accepted = headers.get_all("accept").iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|value| {
        let value = value.split(';').next().unwrap_or_default().trim();
        value == kind || value == "*/*"
    })
}

/// Returns `true` if the request was sent to a name of this computer, and by a page of this computer if by any.
pub(super) fn are_local(headers: &HeaderMap) -> bool {
    let text = |name: &str| Some(headers.get(name)?.to_str().unwrap_or("unreadable"));
    let origin = text("origin").map(|origin| origin.split_once("://").map_or(origin, |(_, host)| host));
    text("host").is_none_or(is_local) && origin.is_none_or(is_local)
}

fn is_local(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    ["localhost", "127.0.0.1", "[::1]"].contains(&name)
}

/// Refuses a protocol version that the server does not speak. A missing one is accepted.
pub(super) fn check_legacy(script: &Script, headers: &HeaderMap) -> Result<(), String> {
    match headers
        .get(header::PROTOCOL_VERSION)
        .map(|value| value.to_str().unwrap_or_default())
    {
        Some(version) if !script.versions.iter().any(|known| known == version) => {
            Err(format!("Bad Request: unsupported protocol version {version}"))
        }
        _ => Ok(()),
    }
}

/// Checks the headers that a modern request must mirror from its body.
pub(super) fn check_modern(script: &Script, headers: &HeaderMap, message: &Value) -> Result<(), String> {
    let params = &message["params"];
    // This era has no responses to the server, so every message has a method.
    let Some(method) = message["method"].as_str() else {
        return Ok(());
    };
    // A missing version is an error of the parameters, which is reported as such.
    if let Some(version) = params["_meta"][meta::PROTOCOL_VERSION]
        .as_str()
        .filter(|_| message.get("id").is_some())
    {
        check(headers, header::PROTOCOL_VERSION, Some(version))?;
    }
    check(headers, header::METHOD, Some(method))?;
    if let Some(key) = RequestMethod::find(method).and_then(|known| known.subject) {
        check(headers, header::NAME, params[key].as_str())?;
    }
    if method == method::TOOLS_CALL
        && let Some(tool) = script.tools.iter().find(|tool| params["name"] == tool.name())
    {
        let schema = tool.definition.get("inputSchema").unwrap_or(&Value::Null);
        check_mirrored(headers, schema, &params["arguments"])?;
    }
    Ok(())
}

/// The arguments with an `x-mcp-header`, also in nested objects.
fn check_mirrored(headers: &HeaderMap, schema: &Value, arguments: &Value) -> Result<(), String> {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let argument = &arguments[name];
        if property["properties"].is_object() {
            check_mirrored(headers, property, argument)?;
        }
        let Some(header) = property["x-mcp-header"].as_str() else {
            continue;
        };
        let value = match argument {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => Some(argument.to_string()),
            _ => None,
        };
        check(
            headers,
            &format!("{}{}", header::PARAM_PREFIX, header.to_ascii_lowercase()),
            value.as_deref(),
        )?;
    }
    Ok(())
}

fn check(headers: &HeaderMap, name: &str, expected: Option<&str>) -> Result<(), String> {
    let values: Vec<_> = headers.get_all(name).iter().collect();
    let found = match values[..] {
        [] => None,
        [value] => Some(decode(value.to_str().map_err(|_| format!("{name} is not ASCII"))?)?),
        _ => return Err(format!("{name} is given twice")),
    };
    if found.as_deref() == expected {
        return Ok(());
    }
    Err(format!("{name} is {found:?}, the body says {expected:?}"))
}

fn decode(value: &str) -> Result<Cow<'_, str>, String> {
    header::decode_value(value).ok_or_else(|| "bad base64 or text in a header".to_owned())
}

#[cfg(test)]
mod tests {
    use pegboard_protocol::Version;
    use serde_json::json;

    use super::*;
    use crate::script::Tool;

    #[test]
    fn modern_headers_must_say_what_the_body_says() {
        let mut script = Script::new("s");
        script.tools.push(Tool::new("résumé").mirrors("region", "Region"));
        let message = json!({
            "id": 1,
            "method": method::TOOLS_CALL,
            "params": { "name": "résumé", "arguments": { "region": "eu" }, "_meta": { meta::PROTOCOL_VERSION: Version::LATEST_MODERN.as_str() } },
        });
        let right = [
            (header::PROTOCOL_VERSION, Version::LATEST_MODERN.as_str()),
            (header::METHOD, method::TOOLS_CALL),
            (header::NAME, "=?base64?csOpc3Vtw6k=?="),
            ("mcp-param-region", "eu"),
        ];
        let check = |pairs: &[(&'static str, &'static str)]| {
            let headers = pairs
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
                .collect();
            check_modern(&script, &headers, &message)
        };
        assert_eq!(check(&right), Ok(()));
        for left_out in 0..right.len() {
            let mut headers = right.to_vec();
            headers.remove(left_out);
            assert!(check(&headers).unwrap_err().contains(right[left_out].0));
            headers.push((right[left_out].0, "something else"));
            assert!(check(&headers).unwrap_err().contains(right[left_out].0));
        }
    }
}
