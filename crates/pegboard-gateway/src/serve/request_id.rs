//! The id of a request in its headers and in those of its response.

use http::{HeaderMap, HeaderName, HeaderValue};
use pegboard::telemetry::RequestTag;

use crate::{
    protocol::{RequestInfo, span_in_headers},
    wire::HttpResponse,
};

/// By which clients and proxies tell requests apart.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What the log knows of a request with these headers.
pub(super) fn read(headers: &HeaderMap) -> RequestInfo {
    let mut sent = headers.get_all(&REQUEST_ID).iter();
    let id = sent.next().filter(|_| sent.next().is_none());
    let tag = RequestTag::new(id.map(HeaderValue::as_bytes));
    RequestInfo {
        tag: tag.within(span_in_headers(headers).as_ref()),
        stays_here: false,
        notes: None,
    }
}

/// Adds the id of the request to its response.
pub(super) fn write(tag: &RequestTag, response: &mut HttpResponse) {
    if let Ok(id) = HeaderValue::from_str(&tag.to_string()) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
}
