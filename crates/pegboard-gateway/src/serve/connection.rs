//! One connection: HTTP/1.1 over a stream that notes what it is doing, and that may be encrypted. Most requests are served directly, others by hyper.

use std::{
    convert::Infallible,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use pegboard_base::sync::OwnWakes;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::OwnedSemaphorePermit,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    activity::{Activity, Busy, IDLE_TIME},
    direct::{DirectConnection, DirectEnd},
    listeners::{Arrival, ClientStream, ConnectedClient},
    request_head::MAX_HEAD,
    rewound_stream::RewoundStream,
    site::{ClientAddress, Site},
    tls,
    watched_stream::WatchedStream,
};
use crate::wire::ResponseBody;

/// What is read ahead. A head of [`MAX_HEAD`] fits; hyper refuses one that is longer than this by a part that depends on the network.
const BUFFER: usize = MAX_HEAD;

/// The limit on the headers of a request.
const MAX_HEADERS: usize = 100;

/// Serves a connection until the client closes it, it expires, or its last request after `closing` was answered.
pub(super) async fn serve<S: ClientStream>(
    stream: S,
    arrival: Arrival,
    site: Arc<Site>,
    closing: CancellationToken,
    permit: OwnedSemaphorePermit,
) {
    let open = site.traffic.count_connection(arrival.process());
    let first = closing.run_until_cancelled(timeout(IDLE_TIME, stream.has_input()));
    if matches!(first.await, Some(Ok(true))) {
        let peer = stream
            .peer()
            .filter(|_| site.door.load().tokens.machine_owner().is_some());
        let client = ConnectedClient {
            arrival,
            peer,
            address: site.access_log.as_ref().and_then(|_| stream.address()),
        };
        // Boxed, so that a connection without a request has no room for a parser and buffers.
        match site.tls.load_full().filter(|_| arrival == Arrival::Network) {
            None => Box::pin(serve_requests(stream, client, site, closing)).await,
            Some(tls) => {
                let accepted = Box::pin(tls::accept(stream.into_tcp(), tls));
                if let Some(Some(stream)) = closing.run_until_cancelled(accepted).await {
                    Box::pin(serve_requests(stream, client, site, closing)).await;
                }
            }
        }
    }
    drop((open, permit));
}

async fn serve_requests<S>(stream: S, client: ConnectedClient, site: Arc<Site>, closing: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let activity = Activity::new();
    let stream = WatchedStream::new(stream, activity.clone(), site.clone());
    let mut direct = DirectConnection::new(stream, client.clone(), site.clone(), activity.clone(), closing.clone());
    let ended = {
        let mut serving = pin!(direct.serve());
        until_expired(&activity, &site, &closing, |cx, _| serving.as_mut().poll(cx)).await
    };
    let served = match ended {
        Some(DirectEnd::OtherRequest) => {
            let stream = RewoundStream::new(direct.into_rest());
            Box::pin(serve_any_requests(stream, client, &activity, &site, closing)).await
        }
        // A client that did not read was counted where that was found.
        Some(DirectEnd::Closed) => return,
        None => Ok(()),
    };
    match served {
        Err(error) => tracing::debug!(%error, "connection ended badly"),
        Ok(()) if activity.is_stalled() => {
            tracing::warn!("a client does not read its results: its connection is closed, the results are dropped");
            site.traffic.count_undelivered();
        }
        Ok(()) => {}
    }
}

/// Serves requests of any kind.
async fn serve_any_requests<S>(
    stream: S,
    client: ConnectedClient,
    activity: &Arc<Activity>,
    site: &Arc<Site>,
    closing: CancellationToken,
) -> hyper::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(|mut request: Request<Incoming>| {
        let (site, busy) = (site.clone(), activity.begin());
        if let Some(peer) = &client.peer {
            request.extensions_mut().insert(peer.clone());
        }
        if let Some(address) = client.address {
            request.extensions_mut().insert(ClientAddress(address));
        }
        let arrival = client.arrival;
        async move {
            let response = site.handle(request, arrival).await;
            Ok::<_, Infallible>(response.map(|body| SentBody { body, busy }))
        }
    });
    let mut builder = http1::Builder::new();
    builder
        .max_buf_size(BUFFER)
        .max_headers(MAX_HEADERS)
        .half_close(false)
        .pipeline_flush(false);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let own_wakes = OwnWakes::new();
    let outcome = until_expired(activity, site, &closing, |cx, begins_to_close| {
        own_wakes.poll(cx, |cx| {
            if begins_to_close {
                serving.as_mut().graceful_shutdown();
            }
            serving.as_mut().poll(cx)
        })
    });
    outcome.await.unwrap_or(Ok(()))
}

/// Polls a connection until it is over; `None` if it has expired. The connection is polled again when it has to close, with `true` the first time,
/// and when its requests in flight get no more time.
async fn until_expired<T>(
    activity: &Activity,
    site: &Site,
    closing: &CancellationToken,
    mut poll: impl FnMut(&mut Context<'_>, bool) -> Poll<T>,
) -> Option<T> {
    let mut expiry = pin!(sleep_until(Instant::now() + IDLE_TIME));
    let mut stop = pin!(closing.cancelled());
    let mut halt = pin!(site.halt.wait());
    let (mut is_closing, mut is_halted) = (false, false);
    let mut poll = |cx: &mut Context<'_>| {
        if let Poll::Ready(outcome) = poll(cx, false) {
            return Poll::Ready(Some(outcome));
        }
        if !is_closing && stop.as_mut().poll(cx).is_ready() {
            is_closing = true;
            if let Poll::Ready(outcome) = poll(cx, true) {
                return Poll::Ready(Some(outcome));
            }
        }
        // Polled only while it closes, so that a connection waits for one notification at a time.
        if is_closing && !is_halted && halt.as_mut().poll(cx).is_ready() {
            is_halted = true;
            // The requests in flight are answered by this poll.
            if let Poll::Ready(outcome) = poll(cx, false) {
                return Poll::Ready(Some(outcome));
            }
        }
        activity.poll_expired(expiry.as_mut(), cx).map(|()| None)
    };
    std::future::poll_fn(&mut poll).await
}

/// A body that keeps its connection busy until it was sent.
struct SentBody {
    body: ResponseBody,
    #[expect(dead_code, reason = "held until the body is dropped")]
    busy: Busy,
}

impl Body for SentBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
