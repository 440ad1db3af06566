//! One message per line on an upgraded connection: as on stdio, but any number of clients. It has less to parse than HTTP, and the
//! server's requests and notifications need no stream of their own.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CONNECTION, UPGRADE},
    request::Parts,
};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use pegboard::Principal;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader, BufWriter},
    sync::mpsc,
    time::timeout,
};

use super::{
    body_limit::BodyLimit,
    open_connections::OpenConnections,
    response::{HttpResponse, empty, problem},
};
use crate::{
    door::{Caller, PrincipalQuota, QuotaPermit},
    protocol::{Connection, EarlyEnd, Endpoint, MAX_MESSAGE, Outgoing, Wire},
};

/// The name of the protocol in `Upgrade`.
const PROTOCOL: &str = "mcp-lines";

/// How long a client may take to read anything of a message.
const WRITE_TIME: Duration = Duration::from_secs(30);

/// Serves connections with one message per line, for all endpoints of a gateway.
#[derive(Clone, Debug)]
pub(crate) struct LinesWire {
    places: Arc<PrincipalQuota>,
    pub(crate) connections: OpenConnections,
    messages: BodyLimit,
}

/// Returns `true` if a request asks for this protocol.
pub(crate) fn is_lines_upgrade(headers: &HeaderMap) -> bool {
    headers
        .get(UPGRADE)
        .is_some_and(|protocol| protocol.as_bytes().eq_ignore_ascii_case(PROTOCOL.as_bytes()))
}

impl LinesWire {
    /// Allows `max` open connections, whose messages share `messages` with the bodies of requests.
    pub(crate) fn new(max: usize, messages: BodyLimit) -> Self {
        Self {
            places: PrincipalQuota::new(max),
            connections: OpenConnections::default(),
            messages,
        }
    }

    /// Answers the request for an upgrade. `held` is dropped when the connection ends.
    pub(crate) fn upgrade(
        &self,
        parts: &mut Parts,
        endpoint: Arc<Endpoint>,
        caller: Caller,
        held: impl Send + 'static,
    ) -> HttpResponse {
        let Some(place) = self.places.try_acquire(caller.principal.as_ref()) else {
            let detail = "too many connections are open; close one or try later";
            return problem(StatusCode::SERVICE_UNAVAILABLE, detail);
        };
        let Some(upgrade) = parts.extensions.remove::<OnUpgrade>() else {
            return problem(StatusCode::UPGRADE_REQUIRED, "the connection cannot be upgraded");
        };
        let wire = self.clone();
        // Tracked before the upgrade is confirmed, so that shutdown waits for every connection.
        self.connections.tasks.spawn(async move {
            match upgrade.await {
                Ok(stream) => wire.serve(stream, &endpoint, caller, place).await,
                Err(error) => tracing::debug!(%error, "an upgrade failed"),
            }
            drop(held);
        });
        let mut response = empty(StatusCode::SWITCHING_PROTOCOLS);
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
        response
    }

    async fn serve(self, stream: Upgraded, endpoint: &Arc<Endpoint>, caller: Caller, place: QuotaPermit) {
        let (read, write) = tokio::io::split(TokioIo::new(stream));
        let (connection, queue) = Connection::open(endpoint, &caller, Wire::Pipe);
        let (revoked, principal) = (caller.revoked, caller.principal);
        let mut writing = std::pin::pin!(write_messages(BufWriter::new(write), queue));
        let reading = async {
            let mut lines = BufReader::new(read);
            while let Ok(Some(line)) = read_line(&mut lines).await {
                self.receive(&connection, principal.as_ref(), line).await;
            }
        };
        let draining = async {
            self.connections.closing.cancelled().await;
            let mut drained = std::pin::pin!(connection.drain(EarlyEnd::Stopping));
            tokio::select! {
                () = &mut drained => return,
                () = self.connections.halted.cancelled() => connection.halt(),
            }
            drained.await;
        };
        // The client is read meanwhile, because requests in flight may wait for its answers.
        let is_drained = tokio::select! {
            biased;
            () = reading => false,
            () = &mut writing => false,
            () = connection.drain_after(&revoked) => true,
            () = draining => true,
        };
        if is_drained {
            // Closing ends the queue, and so the writer.
            tokio::join!(connection.close(), writing);
        }
        drop(place);
    }

    async fn receive(&self, connection: &Connection, principal: Option<&Principal>, message: Bytes) {
        match self.messages.hold(principal, message.clone()) {
            Ok(message) => connection.receive(&message).await,
            Err(error) => connection.refuse_busy(&message, &error.to_string()).await,
        }
    }
}

/// The next line that is not blank, without its newline; `None` at the end. Fails if it is too long: no client that keeps to the limits of
/// the gateway sends such a line.
async fn read_line(lines: &mut (impl tokio::io::AsyncBufRead + Unpin)) -> io::Result<Option<Bytes>> {
    loop {
        let mut line = Vec::new();
        let limit = MAX_MESSAGE as u64 + 1;
        (&mut *lines).take(limit).read_until(b'\n', &mut line).await?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.pop_if(|last| *last == b'\n').is_none() && line.len() > MAX_MESSAGE {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the line is too long"));
        }
        if !line.trim_ascii().is_empty() {
            return Ok(Some(line.into()));
        }
    }
}

/// Writes messages until the queue ends, or the client does not read. Flushes when no further message waits.
async fn write_messages(mut output: impl AsyncWrite + Unpin, mut queue: mpsc::Receiver<Outgoing>) {
    while let Some(message) = queue.recv().await {
        let is_last = queue.is_empty();
        let writing = async {
            for part in message.on_one_line().parts() {
                output.write_all(part).await?;
            }
            output.write_all(b"\n").await?;
            if is_last {
                output.flush().await?;
            }
            io::Result::Ok(())
        };
        if !matches!(timeout(WRITE_TIME, writing).await, Ok(Ok(()))) {
            return;
        }
    }
}
