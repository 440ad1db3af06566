//! [`DirectConnection`]: serves the requests that nearly all clients send without a general HTTP server.
//!
//! These are messages that are posted to MCP endpoints: HTTP/1.1 with a short body of known length. What their heads say is decided once for all
//! requests of a connection with the same head. The first request of another kind goes to the general server, and the rest of the connection with it.

mod client_io;
mod post_head;
mod response_head;

use std::{
    pin::pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::StatusCode;
use http_body::Body;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    activity::Activity,
    listeners::Arrival,
    routes::Route,
    site::{Admission, Site, stopping},
};
use crate::{
    door::TcpPeer,
    wire::{HttpResponse, ResponseBody, problem},
};
use client_io::{ClientIo, Gone};
use post_head::{Lengths, Parsed, PostHead};
use response_head::{Date, Framing};

/// Longer heads are left to the general server, because a connection remembers several.
const MAX_HEAD: usize = 8 * 1024;

/// Longer bodies are left to the general server, which limits what all of them take.
const MAX_BODY: usize = 64 * 1024;

/// In how many parts a head may come before it is left to the general server. Each part is parsed together with those before it.
const MAX_PARTS: usize = 8;

/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);

/// How long the rest of a request is read at the end of a connection. The system withdraws a response whose client still sends when its connection
/// is closed.
const LINGER_TIME: Duration = Duration::from_secs(1);

/// How many different heads a connection remembers. The head of a call names the tool, and agents use few tools in a row.
const MAX_KNOWN: usize = 4;

/// A connection whose requests are served here.
pub(super) struct DirectConnection<S> {
    io: ClientIo<S>,
    site: Arc<Site>,
    arrival: Arrival,
    peer: Option<TcpPeer>,
    activity: Arc<Activity>,
    closing: CancellationToken,
    known: Vec<KnownHead>,
    /// The place of the known head that the next new one takes.
    oldest: usize,
    date: Date,
}

/// A head, and what was decided about it.
struct KnownHead {
    head: PostHead,
    admission: Admission,
}

/// A request whose head was read.
struct Next {
    lengths: Lengths,
    head: NextHead,
}

enum NextHead {
    /// At this place among the known ones.
    Known(usize),
    New(Box<PostHead>),
}

/// What is left of a request that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Nothing,
    /// It was answered before this many bytes of it were taken.
    Unread(usize),
    /// It did not come in time.
    Late,
}

/// How serving a connection here has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DirectEnd {
    /// The connection is over.
    Closed,
    /// The next request is left to the general server.
    OtherRequest,
}

impl<S: AsyncRead + AsyncWrite + Unpin> DirectConnection<S> {
    pub(super) fn new(
        stream: S,
        (arrival, peer): (Arrival, Option<TcpPeer>),
        site: Arc<Site>,
        activity: Arc<Activity>,
        closing: CancellationToken,
    ) -> Self {
        Self {
            io: ClientIo::new(stream),
            site,
            arrival,
            peer,
            activity,
            closing,
            known: Vec::new(),
            oldest: 0,
            date: Date::default(),
        }
    }

    /// Serves requests until the connection ends or another kind of request comes. Must be polled again when `closing` is cancelled.
    pub(super) async fn serve(&mut self) -> DirectEnd {
        match self.serve_requests().await {
            Ok(DirectEnd::OtherRequest) => DirectEnd::OtherRequest,
            Ok(DirectEnd::Closed) | Err(Gone) => {
                self.io.shut_down().await;
                DirectEnd::Closed
            }
        }
    }

    /// The stream, and what was read from it of the request that is left to the general server.
    pub(super) fn into_rest(self) -> (S, Bytes) {
        self.io.into_rest()
    }

    async fn serve_requests(&mut self) -> Result<DirectEnd, Gone> {
        loop {
            if !self.io.has_read() {
                let closing = &self.closing;
                match self.io.read_unless(|| closing.is_cancelled()).await? {
                    true => {}
                    false => return Ok(DirectEnd::Closed),
                }
            }
            let Some(next) = self.next_head().await? else {
                return Ok(DirectEnd::OtherRequest);
            };
            let busy = self.activity.begin();
            let (response, rest) = self.answer(next).await?;
            let is_last = rest == Rest::Late || self.closing.is_cancelled();
            self.send(response, is_last).await?;
            drop(busy);
            if let Rest::Unread(length) = rest {
                let time = if is_last { LINGER_TIME } else { BODY_TIME };
                let closing = &self.closing;
                let discarding = self.io.discard(length, || !is_last && closing.is_cancelled());
                timeout(time, discarding).await.unwrap_or(Err(Gone))?;
            }
            if is_last {
                return Ok(DirectEnd::Closed);
            }
            if self.io.has_read() {
                // The next head has begun.
                self.activity.note_received();
            }
        }
    }

    /// Reads the rest of a head. `None` if the request is left to the general server.
    async fn next_head(&mut self) -> Result<Option<Next>, Gone> {
        for _ in 0..MAX_PARTS {
            if let Some(next) = self.find_known() {
                return Ok(Some(next));
            }
            match post_head::parse(self.io.read(), MAX_BODY) {
                Parsed::Post(head, lengths)
                    if lengths.head <= MAX_HEAD && matches!(Route::parse(head.parts.uri.path()), Route::Mcp(_)) =>
                {
                    let head = NextHead::New(head);
                    return Ok(Some(Next { lengths, head }));
                }
                Parsed::Partial if self.io.read().len() < MAX_HEAD => {
                    let closing = &self.closing;
                    if !self.io.read_unless(|| closing.is_cancelled()).await? {
                        return Err(Gone);
                    }
                }
                Parsed::Post(..) | Parsed::Partial | Parsed::Other => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The next request, if its head is known and still means the same.
    fn find_known(&self) -> Option<Next> {
        let read = self.io.read();
        self.known.iter().enumerate().find_map(|(place, known)| {
            let lengths = known.head.find(read, MAX_BODY)?;
            let head = NextHead::Known(place);
            self.site
                .still_admits(&known.admission)
                .then_some(Next { lengths, head })
        })
    }

    /// Decides about a head, and remembers it. Returns its place among the known ones, or why it is refused.
    async fn admit(&mut self, mut head: PostHead) -> Result<Result<usize, Box<HttpResponse>>, Gone> {
        if let Some(peer) = &self.peer {
            head.parts.extensions.insert(peer.clone());
        }
        // Boxed, because it is rare and every request would pay for the space.
        let deciding: BoxFuture<'_, _> = Box::pin(self.site.admit(&head.parts, self.arrival));
        let admission = match self.io.until_gone(deciding).await? {
            Ok(admission) => admission,
            Err(refused) => return Ok(Err(refused)),
        };
        let known = KnownHead { head, admission };
        if self.known.len() < MAX_KNOWN {
            self.known.push(known);
            return Ok(Ok(self.known.len() - 1));
        }
        let place = self.oldest;
        self.known[place] = known;
        self.oldest = (place + 1) % MAX_KNOWN;
        Ok(Ok(place))
    }

    /// Handles a request. What its head refuses is answered before its body comes.
    async fn answer(&mut self, next: Next) -> Result<(HttpResponse, Rest), Gone> {
        let Lengths { head, body } = next.lengths;
        let admitted = match next.head {
            NextHead::Known(place) => Ok(place),
            NextHead::New(head) => self.admit(*head).await?,
        };
        let is_whole = self.io.read_what_is_there(head + body).await?;
        let place = match admitted {
            Ok(place) => place,
            Err(refused) => return Ok((self.count_refused(*refused), Rest::Unread(head + body))),
        };
        if !is_whole {
            if let Some(refused) = self.site.refuse_message(&self.known[place].head.parts, body) {
                return Ok((self.count_refused(refused), Rest::Unread(head + body)));
            }
            if let Err(response) = Box::pin(self.read_body(head + body)).await? {
                return Ok((self.count_refused(response), Rest::Late));
            }
        }
        let body = self.io.take_body(head, body);
        let KnownHead { head, admission } = &self.known[place];
        let Route::Mcp(target) = Route::parse(head.parts.uri.path()) else {
            return Err(Gone);
        };
        let handled = pin!(self.site.handle_message(admission, target, &head.parts, body));
        Ok((self.io.until_gone(handled).await?, Rest::Nothing))
    }

    /// Reads until the whole body is there. Returns a response if it does not come.
    async fn read_body(&mut self, length: usize) -> Result<Result<(), HttpResponse>, Gone> {
        let halt = &self.site.halt;
        let reading = timeout(BODY_TIME, self.io.read_up_to(length, || halt.is_set()));
        match reading.await {
            Ok(Ok(true)) => Ok(Ok(())),
            Ok(Ok(false)) => Ok(Err(stopping())),
            Ok(Err(gone)) => Err(gone),
            Err(_) => {
                let detail = "the body took too long";
                Ok(Err(problem(StatusCode::REQUEST_TIMEOUT, detail)))
            }
        }
    }

    fn count_refused(&self, response: HttpResponse) -> HttpResponse {
        self.site.count_refused(response.status());
        response
    }

    /// Sends a response. What its body holds is kept until it was sent.
    async fn send(&mut self, response: HttpResponse, is_last: bool) -> Result<(), Gone> {
        let (parts, mut body) = response.into_parts();
        let framing = Framing::of(&body);
        response_head::write(self.io.unsent(), &parts, framing, self.date.now(), is_last);
        match framing {
            Framing::Length(_) => {
                while let Some(part) = next_part(&mut self.io, &mut body).await? {
                    self.io.push(part).await?;
                }
            }
            Framing::Chunks => {
                while let Some(part) = next_part(&mut self.io, &mut body).await? {
                    self.io.push_chunk(part).await?;
                }
                self.io.push_last_chunk();
            }
        }
        self.io.send_all().await
    }
}

/// The next part of a body; `None` at its end. What was made so far is sent before the next part is waited for.
async fn next_part<S>(io: &mut ClientIo<S>, body: &mut ResponseBody) -> Result<Option<Bytes>, Gone>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let frame = match std::future::poll_fn(|cx| Poll::Ready(poll_body(body, cx))).await {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                io.send_all().await?;
                let frame = pin!(std::future::poll_fn(|cx| poll_body(body, cx)));
                io.until_gone(frame).await?
            }
        };
        match frame {
            None => return Ok(None),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if data.is_empty() => {}
                Ok(data) => return Ok(Some(data)),
                Err(_) => {}
            },
            Some(Err(error)) => {
                tracing::debug!(%error, "the body of a response has failed");
                return Err(Gone);
            }
        }
    }
}

fn poll_body(
    body: &mut ResponseBody,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<http_body::Frame<Bytes>, axum::Error>>> {
    std::pin::Pin::new(body).poll_frame(cx)
}
