//! CORS, for pages of configured origins only. Pages of other sites are refused before a response is made.

use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
        ACCESS_CONTROL_REQUEST_METHOD, VARY,
    },
};

use crate::wire::{HttpResponse, empty};

/// The response to a preflight request; `None` if the request is none.
pub(super) fn preflight(method: &Method, headers: &HeaderMap) -> Option<HttpResponse> {
    if *method != Method::OPTIONS || !headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut response = empty(StatusCode::NO_CONTENT);
    let allowed = response.headers_mut();
    allowed.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST, DELETE"),
    );
    allowed.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    // The origin is trusted, and the names of `Mcp-Param-*` headers are not known.
    if let Some(wanted) = headers.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        allowed.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    Some(response)
}

/// Lets a page of this origin read the response.
pub(super) fn allow(origin: HeaderValue, response: &mut HttpResponse) {
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(
        ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("mcp-session-id, retry-after, www-authenticate, x-request-id"),
    );
    headers.append(VARY, HeaderValue::from_static("origin"));
}
