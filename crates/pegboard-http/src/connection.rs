//! An open connection, and how requests are written on it.

use std::{
    fmt,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderValue, Request, header};
use http_body::{Body as _, Frame};
use hyper::{
    body::Incoming,
    client::conn::{TrySendError, http1, http2},
};
use pegboard_base::sync::OwnWakes;

use crate::{Body, Target};

/// How long closing a connection may take.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// An open connection.
#[derive(Debug)]
pub(crate) enum Connection {
    /// One request at a time.
    Http1 {
        sender: http1::SendRequest<Body>,
        driver: Driver,
        /// Set if it leads to a proxy, which reads the whole URL from each request.
        proxy: Option<ToProxy>,
    },
    /// Many requests at a time. Clones share the connection, which has a task of its own.
    Http2 {
        sender: http2::SendRequest<Body>,
        /// Held by each handle, so that their number is known.
        user: Arc<()>,
    },
}

/// Reads and writes a connection of HTTP/1.1. It is polled with the request that uses the connection, so that neither waits for another task.
pub(crate) struct Driver {
    /// `None` once the connection has ended.
    connection: Option<Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>>,
    /// Why it has ended, if it ended badly.
    failure: Option<hyper::Error>,
    own_wakes: OwnWakes,
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
            Self::Http1 { sender, driver, .. } => driver.connection.is_none() || sender.is_closed(),
            Self::Http2 { sender, .. } => sender.is_closed(),
        }
    }

    /// Whether the connection can take a request now.
    pub(crate) fn is_ready(&self) -> bool {
        match self {
            Self::Http1 { sender, .. } => sender.is_ready(),
            Self::Http2 { sender, .. } => sender.is_ready(),
        }
    }

    /// Waits until the connection can take a request. Returns `false` if it is closed.
    pub(crate) async fn ready(&mut self) -> bool {
        match self {
            Self::Http1 { sender, driver, .. } => {
                let ready = driver.run_with(|context| sender.poll_ready(context)).await;
                // Polling the connection is what finds out that the server has closed it.
                ready.is_ok() && driver.connection.is_some()
            }
            Self::Http2 { sender, .. } => sender.ready().await.is_ok(),
        }
    }

    /// Why the connection has ended, if no request was told. Over TLS 1.3 a server refuses the client's certificate after the handshake.
    pub(crate) fn take_failure(&mut self) -> Option<hyper::Error> {
        match self {
            Self::Http1 { driver, .. } => driver.failure.take(),
            Self::Http2 { .. } => None,
        }
    }

    /// Sends a request and waits for the head of its response. The error has the request again if nothing of it was sent.
    pub(crate) async fn send(
        &mut self,
        mut request: Request<Body>,
        target: &Target,
    ) -> Result<http::Response<Incoming>, TrySendError<Request<Body>>> {
        match self {
            Self::Http1 { sender, driver, proxy } => {
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
                // Handed over when it is polled first, because that wakes the connection.
                let mut sending = pin!(async { sender.try_send_request(request).await });
                driver.run_with(|context| sending.as_mut().poll(context)).await
            }
            Self::Http2 { sender, .. } => {
                request.uri_mut().clone_from(&target.absolute);
                sender.try_send_request(request).await
            }
        }
    }

    /// Polls the body of a response on this connection.
    pub(crate) fn poll_body(
        &mut self,
        body: &mut Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<bytes::Bytes>>>> {
        let mut poll = |context: &mut Context<'_>| Pin::new(&mut *body).poll_frame(context);
        match self {
            Self::Http1 { driver, .. } => driver.poll_with(context, poll),
            Self::Http2 { .. } => poll(context),
        }
    }
}

impl Driver {
    pub(crate) fn new(connection: impl Future<Output = hyper::Result<()>> + Send + 'static) -> Self {
        Self {
            connection: Some(Box::pin(connection)),
            failure: None,
            own_wakes: OwnWakes::new(),
        }
    }

    /// Waits for what the connection brings about.
    async fn run_with<T>(&mut self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        std::future::poll_fn(|context| self.poll_with(context, &mut poll)).await
    }

    /// Polls the connection, and what it brings about.
    fn poll_with<T>(
        &mut self,
        context: &mut Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let (connection, failure) = (&mut self.connection, &mut self.failure);
        self.own_wakes.poll(context, |context| {
            if let Some(running) = connection
                && let Poll::Ready(ended) = running.as_mut().poll(context)
            {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended badly");
                    *failure = Some(error);
                }
                *connection = None;
            }
            poll(context)
        })
    }
}

/// Closes the connection in the way of its protocol, such as with the last record of TLS.
impl Drop for Driver {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            // Nobody sends requests any more, so it ends by itself.
            runtime.spawn(tokio::time::timeout(CLOSE_TIME, connection));
        }
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("is_open", &self.connection.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncRead, Join, ReadBuf, join, sink};
    use url::Url;

    use super::*;

    /// The peer refuses what it learned in the handshake, before any request.
    struct Refused;

    impl AsyncRead for Refused {
        fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, "certificate required")))
        }
    }

    #[tokio::test]
    async fn why_a_connection_ended_before_its_first_request_is_told() {
        let stream: Join<Refused, _> = join(Refused, sink());
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        let driver = Driver::new(connection);
        let mut connection = Connection::Http1 {
            sender,
            driver,
            proxy: None,
        };
        let target = Target::new(Url::parse("http://localhost/mcp").unwrap()).unwrap();
        let request = Request::new(Body::from(bytes::Bytes::new()));
        let mut unsent = connection.send(request, &target).await.unwrap_err();
        assert!(unsent.take_message().is_some());
        let failure = connection.take_failure().unwrap();
        let cause = std::error::Error::source(&failure).unwrap();
        assert_eq!(cause.to_string(), "certificate required");
    }
}
