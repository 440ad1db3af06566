//! [`DirectConnection`]: serves the requests that nearly all clients send without a general HTTP server.
//!
//! These are messages that are posted to MCP endpoints: HTTP/1.1 with a short body of known length. What their heads say is decided once for all
//! requests of a connection with the same head. The first request of another kind goes to the general server, and the rest of the connection with it.

mod client_io;
mod post_head;
mod response_head;

use std::{
    pin::pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{StatusCode, request::Parts};
use http_body::Body;
use pegboard::telemetry::RequestTag;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    activity::Activity,
    halt::Halt,
    listeners::{Arrival, ConnectedClient},
    request_id,
    routes::Route,
    site::{Admission, Site, stopping},
    traffic::PathLabel,
};
use crate::{
    protocol::RequestInfo,
    wire::{AccessEntry, HttpResponse, ResponseBody, keep_entry, problem},
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
    client: ConnectedClient,
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

/// A head that was admitted.
enum Admitted {
    /// At this place among the known ones.
    Known(usize),
    /// For this request only. The token in it may be one that must not be kept.
    Once(Box<KnownHead>),
}

/// What is left of a request that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Nothing,
    /// It was answered before this many bytes of it were taken.
    Unread(usize),
    /// The same, because they did not come in time.
    Late(usize),
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
        client: ConnectedClient,
        site: Arc<Site>,
        activity: Arc<Activity>,
        closing: CancellationToken,
    ) -> Self {
        Self {
            io: ClientIo::new(stream),
            site,
            client,
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
            let mut info = self.info_of(&next);
            let access = self.begin_access(&mut info, &next);
            let (response, rest) = self.answer(next, &info, access).await?;
            let is_last = matches!(rest, Rest::Late(_)) || self.closing.is_cancelled();
            self.send(response, &info.tag, is_last).await?;
            if let Rest::Unread(length) | Rest::Late(length) = rest {
                self.discard(length, is_last).await?;
            }
            // What came meanwhile belonged to the request.
            drop(busy);
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

    /// Decides about a head, and remembers it if the decision holds for other requests.
    async fn admit(
        &mut self,
        mut head: PostHead,
        tag: &RequestTag,
    ) -> Result<Result<Admitted, Box<HttpResponse>>, Gone> {
        if let Some(peer) = &self.client.peer {
            head.parts.extensions.insert(peer.clone());
        }
        // Boxed, because it is rare and every request would pay for the space.
        let (site, arrival) = (&self.site, self.client.arrival);
        let deciding: BoxFuture<'_, _> = Box::pin(async {
            let admitting = pin!(site.admit(&head.parts, arrival));
            tag.during(admitting).await
        });
        let admission = match self.io.until_gone(deciding).await? {
            Ok(admission) => admission,
            Err(refused) => return Ok(Err(refused)),
        };
        let holds = self.site.still_admits(&admission);
        let known = KnownHead { head, admission };
        if !holds {
            return Ok(Ok(Admitted::Once(Box::new(known))));
        }
        if self.known.len() < MAX_KNOWN {
            self.known.push(known);
            return Ok(Ok(Admitted::Known(self.known.len() - 1)));
        }
        let is_stale = |known: &KnownHead| !self.site.still_admits(&known.admission);
        let place = self.known.iter().position(is_stale).unwrap_or(self.oldest);
        self.known[place] = known;
        if place == self.oldest {
            self.oldest = (place + 1) % MAX_KNOWN;
        }
        Ok(Ok(Admitted::Known(place)))
    }

    /// The head of a request.
    fn head_of<'a>(&'a self, next: &'a Next) -> &'a Parts {
        match &next.head {
            NextHead::Known(place) => &self.known[*place].head.parts,
            NextHead::New(head) => &head.parts,
        }
    }

    /// What the log knows of a request.
    fn info_of(&self, next: &Next) -> RequestInfo {
        let mut info = request_id::read(&self.head_of(next).headers);
        info.stays_here = self.client.arrival != Arrival::Network;
        info
    }

    /// Begins the entry of a request in the access log, if there is one.
    fn begin_access(&self, info: &mut RequestInfo, next: &Next) -> Option<Box<AccessEntry>> {
        let from = (self.client.arrival, self.client.address);
        self.site.begin_access(info, self.head_of(next), from)
    }

    /// Handles a request, and keeps its entry in the access log with the response.
    async fn answer(
        &mut self,
        next: Next,
        info: &RequestInfo,
        mut access: Option<Box<AccessEntry>>,
    ) -> Result<(HttpResponse, Rest), Gone> {
        let (mut response, rest) = self.respond(next, info, access.as_deref_mut()).await?;
        if let Some(access) = access {
            keep_entry(&mut response, access);
        }
        Ok((response, rest))
    }

    /// Handles a request. What its head refuses is answered before its body comes.
    async fn respond(
        &mut self,
        next: Next,
        info: &RequestInfo,
        mut access: Option<&mut AccessEntry>,
    ) -> Result<(HttpResponse, Rest), Gone> {
        let Lengths { head, body } = next.lengths;
        let admitted = match next.head {
            NextHead::Known(place) => Ok(Admitted::Known(place)),
            NextHead::New(head) => {
                let path = PathLabel::from_path(head.parts.uri.path());
                self.admit(*head, &info.tag).await?.map_err(|refused| (path, refused))
            }
        };
        let is_whole = self.io.read_what_is_there(head + body).await?;
        let admitted = match admitted {
            Ok(admitted) => admitted,
            Err((path, refused)) => {
                self.site.count_response(path, refused.status());
                return Ok((*refused, Rest::Unread(head + body)));
            }
        };
        let KnownHead { head: known, admission } = match &admitted {
            Admitted::Known(place) => &self.known[*place],
            Admitted::Once(known) => known,
        };
        if let Some(access) = access.as_deref_mut() {
            access.set_principal(Site::principal_of(admission));
        }
        let Route::Mcp(target) = Route::parse(known.parts.uri.path()) else {
            return Err(Gone);
        };
        if !is_whole {
            if let Some(refused) = self.site.refuse_message(admission, target, &known.parts, body) {
                return Ok((refused, Rest::Unread(head + body)));
            }
            let reading = Box::pin(read_body(&mut self.io, &self.site.halt, head + body));
            if let Err(late) = reading.await {
                let response = late.response();
                let refused = self.site.conclude_refusal(admission, &known.parts, response);
                return match late {
                    Late::Gone => Err(Gone),
                    Late::Time | Late::Halted => Ok((refused, Rest::Late(head + body))),
                };
            }
        }
        let body = self.io.take_body(head, body);
        if let Some(access) = access {
            access.received().store(body.len() as u64, Ordering::Relaxed);
        }
        let handled = pin!(self.site.handle_message(admission, info, target, &known.parts, body));
        Ok((self.io.until_gone(handled).await?, Rest::Nothing))
    }

    /// Reads what is left of a request that was answered, so that the next one is found, or that the response is not lost.
    async fn discard(&mut self, mut length: usize, is_last: bool) -> Result<(), Gone> {
        let closing = &self.closing;
        if !is_last {
            let discarding = self.io.discard(&mut length, || closing.is_cancelled());
            if timeout(BODY_TIME, discarding).await.unwrap_or(Err(Gone))? {
                return Ok(());
            }
        }
        let discarding = self.io.discard(&mut length, || false);
        timeout(LINGER_TIME, discarding).await.unwrap_or(Err(Gone))?;
        Ok(())
    }

    /// Sends a response. What its body holds is kept until it was sent.
    async fn send(&mut self, response: HttpResponse, tag: &RequestTag, is_last: bool) -> Result<(), Gone> {
        let (parts, mut body) = response.into_parts();
        let framing = Framing::of(&body);
        response_head::write(self.io.unsent(), &parts, framing, self.date.now(), tag, is_last);
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

/// Why a body has not come.
#[derive(Clone, Copy, Debug)]
enum Late {
    /// The client has closed the connection.
    Gone,
    /// It took too long.
    Time,
    /// The time of the shutdown is over.
    Halted,
}

impl Late {
    fn response(self) -> HttpResponse {
        match self {
            Self::Gone => problem(StatusCode::BAD_REQUEST, "the body did not come"),
            Self::Time => problem(StatusCode::REQUEST_TIMEOUT, "the body took too long"),
            Self::Halted => stopping(),
        }
    }
}

/// Reads until the whole body is there.
async fn read_body<S>(io: &mut ClientIo<S>, halt: &Halt, length: usize) -> Result<(), Late>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    match timeout(BODY_TIME, io.read_up_to(length, || halt.is_set())).await {
        Ok(Ok(true)) => Ok(()),
        Ok(Ok(false)) => Err(Late::Halted),
        Ok(Err(Gone)) => Err(Late::Gone),
        Err(_) => Err(Late::Time),
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
