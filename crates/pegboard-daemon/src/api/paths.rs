//! The parts of paths that name servers and tools.

use axum::{
    extract::{FromRequestParts, Path},
    response::{IntoResponse as _, Response},
};
use http::{StatusCode, request::Parts};
use pegboard::ServerName;
use serde::de::DeserializeOwned;

use super::problem::Problem;

/// The server that a path names. It may not exist.
pub(super) struct ServerPath(pub(super) ServerName);

/// The server and the tool that a path names.
pub(super) struct ToolPath {
    pub(super) server: String,
    pub(super) tool: String,
}

impl<S: Send + Sync> FromRequestParts<S> for ServerPath {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let name: String = segments(parts, state).await?;
        match ServerName::parse(&name) {
            Ok(name) => Ok(Self(name)),
            Err(error) if parts.method == http::Method::PUT => {
                Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()).into_response())
            }
            Err(_) => Err(Problem::no_server(&name).into_response()),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ToolPath {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let (server, tool) = segments(parts, state).await?;
        Ok(Self { server, tool })
    }
}

async fn segments<T: DeserializeOwned + Send, S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<T, Response> {
    let found = Path::<T>::from_request_parts(parts, state).await;
    let unreadable = |_| Problem::new(StatusCode::BAD_REQUEST, "the path is not UTF-8").into_response();
    found.map(|Path(found)| found).map_err(unreadable)
}
