//! The gateway as a protected resource of OAuth: its metadata, and the headers that lead clients to it.

use http::{HeaderValue, Method, StatusCode, header::CACHE_CONTROL};

use super::routes::Route;
use crate::{
    door::{Door, Rejection, Resource, WELL_KNOWN},
    wire::{HttpResponse, json_bytes, method_not_allowed, problem},
};

/// The response to a request for the metadata; `None` for another path, and if no access tokens are accepted.
///
/// It is public. It says nothing about which servers and views there are: every name has metadata.
pub(super) fn metadata(door: &Door, asked: RequestedUrl<'_>, method: &Method) -> Option<HttpResponse> {
    let path = asked.path.strip_prefix(WELL_KNOWN)?;
    let oauth = door.oauth.as_ref()?;
    let path = path.strip_suffix('/').unwrap_or(path);
    if !path.is_empty() && !matches!(Route::parse(path), Route::Mcp(_) | Route::Sse(_)) {
        let detail = "there is no such resource";
        return Some(problem(StatusCode::NOT_FOUND, detail));
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        return Some(method_not_allowed("GET", "use GET"));
    }
    let resource = Resource {
        base: &asked.base(door)?,
        path,
        settings: oauth.settings(),
    };
    let mut response = json_bytes(resource.metadata().into());
    let age = HeaderValue::from_static("public, max-age=300");
    response.headers_mut().insert(CACHE_CONTROL, age);
    Some(response)
}

/// The `WWW-Authenticate` header of a refused request; `None` if it is not refused for its token, or no access tokens are accepted.
pub(super) fn challenge(door: &Door, asked: RequestedUrl<'_>, rejection: Rejection) -> Option<HeaderValue> {
    if !matches!(
        rejection,
        Rejection::NoToken | Rejection::Token | Rejection::AccessToken(_)
    ) {
        return None;
    }
    asked.resource(door, |resource| resource.challenge(rejection.fault()))
}

/// The `WWW-Authenticate` header of a request that needs more rights than its access token gives.
pub(super) fn insufficient_scope_challenge(door: &Door, asked: RequestedUrl<'_>) -> Option<HeaderValue> {
    asked.resource(door, |resource| resource.scope_challenge())
}

/// How a client has named what it wants.
#[derive(Clone, Copy)]
pub(super) struct RequestedUrl<'a> {
    /// What clients write before the name of this server, if no proxy stands before it.
    pub(super) scheme: &'static str,
    /// The `Host` header, which was checked before.
    pub(super) host: Option<&'a HeaderValue>,
    pub(super) path: &'a str,
}

impl RequestedUrl<'_> {
    /// Makes something of the resource that was asked for; `None` if no access tokens are accepted.
    fn resource<T>(self, door: &Door, make: impl FnOnce(Resource<'_>) -> Option<T>) -> Option<T> {
        let oauth = door.oauth.as_ref()?;
        // Other paths belong to the gateway as a whole.
        let path = match Route::parse(self.path) {
            Route::Mcp(_) | Route::Sse(_) => self.path.strip_suffix('/').unwrap_or(self.path),
            _ => "",
        };
        make(Resource {
            base: &self.base(door)?,
            path,
            settings: oauth.settings(),
        })
    }

    /// The URL under which the client reaches the gateway.
    fn base(self, door: &Door) -> Option<String> {
        if let Some(url) = &door.public_url {
            return Some(url.to_string());
        }
        let host = self.host?.to_str().ok()?;
        Some(format!("{}://{host}", self.scheme))
    }
}
