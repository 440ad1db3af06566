//! Validates the MCP headers of a request against its body.

use std::{
    borrow::Cow,
    sync::{Arc, LazyLock},
};

use http::{HeaderMap, HeaderName};
use pegboard_protocol::{
    code, header, meta,
    method::{self, RequestMethod},
};

use crate::protocol::{Request, RpcError, Version, unsupported_version_error};

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static(header::SESSION_ID);
pub(super) const LAST_EVENT_ID: HeaderName = HeaderName::from_static(header::LAST_EVENT_ID);
const VERSION: HeaderName = HeaderName::from_static(header::PROTOCOL_VERSION);
const METHOD: HeaderName = HeaderName::from_static(header::METHOD);
const NAME: HeaderName = HeaderName::from_static(header::NAME);

/// Most requests have none of these.
static NONE: LazyLock<Arc<Vec<(String, String)>>> = LazyLock::new(Arc::default);

/// Returns `true` if a request is of the modern era: by a version header that no handshake negotiates, or by its body.
pub(super) fn is_modern(headers: &HeaderMap, request: &Request) -> bool {
    let named = headers.get(VERSION).and_then(|version| version.to_str().ok());
    match named {
        Some(named) if Version::parse(named).is_none_or(Version::is_modern) => true,
        // The header of a session decides: such a request is what the handshake agreed on.
        _ if headers.contains_key(SESSION_ID) => false,
        _ => &*request.method == method::SERVER_DISCOVER || request.params.meta(meta::PROTOCOL_VERSION).is_some(),
    }
}

/// Checks the version header of a legacy session: any version with a handshake is accepted, because only those that a server does not
/// support are to be refused, and the session knows what it negotiated. Clients of 2025-03-26 send none.
pub(super) fn check_version(headers: &HeaderMap) -> Result<(), RpcError> {
    let Some(named) = single(headers, &VERSION)? else {
        return Ok(());
    };
    if Version::parse(named).is_some_and(|version| !version.is_modern()) {
        return Ok(());
    }
    let named = named.escape_debug();
    let message = format!("the MCP-Protocol-Version header says `{named}`, which is no version of a session");
    Err(RpcError::new(code::INVALID_REQUEST, message))
}

/// Checks that the headers of a modern request match its body. Returns those that repeat arguments of a tool: which argument each repeats, only
/// the tool's schema says.
pub(super) fn check(headers: &HeaderMap, request: &Request) -> Result<Arc<Vec<(String, String)>>, RpcError> {
    let version = single(headers, &VERSION)?;
    let Some(in_body) = request.params.meta(meta::PROTOCOL_VERSION) else {
        // The endpoint refuses it.
        return match version {
            Some(named) if Version::parse(named).is_none() => Err(unsupported_version_error(named)),
            _ => Ok(NONE.clone()),
        };
    };
    let unquoted = in_body.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\""));
    agree(header::title::PROTOCOL_VERSION, version, unquoted.unwrap_or(&in_body))?;
    agree(
        header::title::METHOD,
        single(headers, &METHOD)?,
        request.method.as_bytes(),
    )?;
    check_name(headers, request)?;
    decode_param_headers(headers)
}

/// Checks that a request names what it is about as its header does.
fn check_name(headers: &HeaderMap, request: &Request) -> Result<(), RpcError> {
    let Some(key) = RequestMethod::find(&request.method).and_then(|known| known.subject) else {
        return Ok(());
    };
    let Some(in_body) = request.params.text(key) else {
        return Err(RpcError::invalid_params(format!("`{key}` is missing or not a string")));
    };
    match single(headers, &NAME)? {
        Some(name) => agree(
            header::title::NAME,
            Some(&decode(header::title::NAME, name)?),
            in_body.as_bytes(),
        ),
        None => agree(header::title::NAME, None, in_body.as_bytes()),
    }
}

/// The headers that repeat arguments, decoded.
fn decode_param_headers(headers: &HeaderMap) -> Result<Arc<Vec<(String, String)>>, RpcError> {
    let mut mirrored = Vec::new();
    for name in headers.keys() {
        if let Some(argument) = name.as_str().strip_prefix(header::PARAM_PREFIX)
            && let Some(value) = single(headers, name)?
        {
            mirrored.push((argument.to_owned(), decode(name.as_str(), value)?.into_owned()));
        }
    }
    Ok(match mirrored.is_empty() {
        true => NONE.clone(),
        false => mirrored.into(),
    })
}

fn agree(header: &str, value: Option<&str>, in_body: &[u8]) -> Result<(), RpcError> {
    match value {
        Some(value) if value.as_bytes() == in_body => Ok(()),
        Some(value) => {
            let (value, in_body) = (value.escape_debug(), in_body.escape_ascii());
            Err(mismatch(format!(
                "the {header} header says `{value}`, the body says `{in_body}`"
            )))
        }
        None => Err(mismatch(format!("the {header} header is missing"))),
    }
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, RpcError> {
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

fn decode<'v>(header: &str, value: &'v str) -> Result<Cow<'v, str>, RpcError> {
    header::decode_value(value).ok_or_else(|| mismatch(format!("the {header} header is not valid base64 of UTF-8")))
}

fn mismatch(message: impl Into<String>) -> RpcError {
    RpcError::new(code::HEADER_MISMATCH, message)
}

#[cfg(test)]
mod tests;
