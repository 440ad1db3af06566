//! A response: its head, and its body in chunks.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, StatusCode, response::Parts};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;

use crate::{Error, Target, connection::Connection, pool::Pool};

/// The limits on reading the rest of a finished response. Once it has ended, its connection can be used again.
const MAX_REST: usize = 16 << 10;
const REST_TIME: Duration = Duration::from_millis(100);

/// How long the rest of a request may take whose response has ended.
const SEND_TIME: Duration = Duration::from_secs(30);

/// A response whose head has arrived. Dropping it closes its HTTP/1.1 connection, or its stream of an HTTP/2 connection, unless it has ended.
#[derive(Debug)]
pub struct Response {
    head: Parts,
    body: Incoming,
    target: Arc<Target>,
    /// Until the body has ended.
    connection: Option<Held>,
}

/// The connection of a response, and where it is kept afterwards.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) connection: Connection,
    pub(crate) pool: Arc<Pool>,
}

impl Response {
    pub(crate) fn new(response: http::Response<Incoming>, target: Arc<Target>, held: Held) -> Self {
        let (head, body) = response.into_parts();
        let mut response = Self {
            head,
            body,
            target,
            connection: Some(held),
        };
        response.release_if_ended();
        response
    }

    /// Its status.
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// Its headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// Where its request went.
    pub fn target(&self) -> &Arc<Target> {
        &self.target
    }

    /// The length of what is left of its body, if the server has said it.
    pub fn content_length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// The next chunk of its body; `None` at the end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            let frame = std::future::poll_fn(|context| self.poll_frame(context)).await;
            match frame {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Some(Err(error)) => return Err(Error::Response(error)),
            }
        }
    }

    /// Ends the use of a response of which nothing more is wanted. If it ends soon, its connection is used again.
    pub fn finish(mut self) {
        let mut context = Context::from_waker(Waker::noop());
        let mut read = 0;
        while self.connection.is_some() {
            match self.poll_frame(&mut context) {
                Poll::Ready(Some(Ok(frame))) if read < MAX_REST => read += frame.data_ref().map_or(0, Bytes::len),
                Poll::Ready(_) => return,
                Poll::Pending => break,
            }
        }
        if self.connection.is_some()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            let rest = async move {
                while let Ok(Some(chunk)) = self.chunk().await
                    && read < MAX_REST
                {
                    read += chunk.len();
                }
            };
            runtime.spawn(tokio::time::timeout(REST_TIME, rest));
        }
    }

    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let frame = match &mut self.connection {
            Some(held) => held.connection.poll_body(&mut self.body, context),
            None => Pin::new(&mut self.body).poll_frame(context),
        };
        match &frame {
            Poll::Ready(Some(Err(_))) => self.connection = None,
            Poll::Ready(Some(Ok(_))) => self.release_if_ended(),
            Poll::Ready(None) => self.release(),
            Poll::Pending => {}
        }
        frame
    }

    fn release_if_ended(&mut self) {
        if self.body.is_end_stream() {
            self.release();
        }
    }

    fn release(&mut self) {
        let Some(Held { mut connection, pool }) = self.connection.take() else {
            return;
        };
        if connection.is_ready() || connection.is_closed() {
            pool.keep(connection);
        } else if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // The server responded before it had read the whole request, which is still sent.
            runtime.spawn(async move {
                if matches!(tokio::time::timeout(SEND_TIME, connection.ready()).await, Ok(true)) {
                    pool.keep(connection);
                }
            });
        }
    }
}
