//! An open connection, and how requests are written on it.

use std::sync::Arc;

use http::{HeaderValue, Request, header};
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1, http2},
};

use crate::{Body, Target};

/// An open connection.
#[derive(Debug)]
pub(crate) enum Connection {
    /// One request at a time.
    Http1 {
        sender: http1::SendRequest<Body>,
        /// Set if it leads to a proxy, which reads the whole URL from each request.
        proxy: Option<ToProxy>,
    },
    /// Many requests at a time. Clones share the connection.
    Http2 {
        sender: http2::SendRequest<Body>,
        /// Held by each handle, so that their number is known.
        user: Arc<()>,
    },
}

/// What a proxy wants in each request.
#[derive(Debug)]
pub(crate) struct ToProxy {
    pub(crate) authorization: Option<HeaderValue>,
}

impl Connection {
    /// Another handle to the connection, if requests can share it.
    pub(crate) fn share(&self) -> Option<Self> {
        match self {
            Self::Http1 { .. } => None,
            Self::Http2 { sender, user } => Some(Self::Http2 {
                sender: sender.clone(),
                user: user.clone(),
            }),
        }
    }

    /// Whether this is the only handle.
    pub(crate) fn is_unused(&self) -> bool {
        match self {
            Self::Http1 { .. } => true,
            Self::Http2 { user, .. } => Arc::strong_count(user) == 1,
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Http1 { sender, .. } => sender.is_closed(),
            Self::Http2 { sender, .. } => sender.is_closed(),
        }
    }

    /// Waits until the connection can take a request. Returns `false` if it is closed.
    pub(crate) async fn ready(&mut self) -> bool {
        match self {
            Self::Http1 { sender, .. } => sender.ready().await.is_ok(),
            Self::Http2 { sender, .. } => sender.ready().await.is_ok(),
        }
    }

    /// Sends a request and waits for the head of its response. The error has the request again if nothing of it was sent.
    pub(crate) async fn send(
        &mut self,
        mut request: Request<Body>,
        target: &Target,
    ) -> Result<http::Response<Incoming>, TrySendError<Request<Body>>> {
        match self {
            Self::Http1 { sender, proxy } => {
                let uri = match proxy {
                    None => &target.path,
                    Some(_) => &target.absolute,
                };
                request.uri_mut().clone_from(uri);
                let headers = request.headers_mut();
                headers.entry(header::HOST).or_insert_with(|| target.host.clone());
                if let Some(authorization) = proxy.as_ref().and_then(|proxy| proxy.authorization.as_ref()) {
                    headers.insert(header::PROXY_AUTHORIZATION, authorization.clone());
                }
                sender.try_send_request(request).await
            }
            Self::Http2 { sender, .. } => {
                request.uri_mut().clone_from(&target.absolute);
                sender.try_send_request(request).await
            }
        }
    }
}
