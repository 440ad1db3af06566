//! What a caller must be allowed to do for a route.

use axum::response::{IntoResponse, Response};
use http::{StatusCode, header::CONTENT_TYPE};
use pegboard_gateway::{Caller, Scope};
use serde_json::json;

/// Why a caller may not use a route.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub(crate) enum Forbidden {
    #[error("the token lacks the scope `read`")]
    NoScope,
    #[error("the token is for one view only, and this is of the whole board")]
    OneView,
}

/// Fails unless the caller may read what is of the whole board: it needs the scope `read`, and no view.
pub(crate) fn may_read_all(caller: Option<&Caller>) -> Result<(), Forbidden> {
    may_read(caller)?;
    match caller.and_then(Caller::view) {
        Some(_) => Err(Forbidden::OneView),
        None => Ok(()),
    }
}

/// Fails unless the caller has the scope `read`.
pub(crate) fn may_read(caller: Option<&Caller>) -> Result<(), Forbidden> {
    match caller {
        Some(caller) if caller.scopes().contains(Scope::Read) => Ok(()),
        _ => Err(Forbidden::NoScope),
    }
}

impl IntoResponse for Forbidden {
    fn into_response(self) -> Response {
        let detail = self.to_string();
        let body = json!({"type": "about:blank", "title": "Forbidden", "status": 403, "detail": detail});
        let media_type = [(CONTENT_TYPE, "application/problem+json")];
        (StatusCode::FORBIDDEN, media_type, body.to_string()).into_response()
    }
}
