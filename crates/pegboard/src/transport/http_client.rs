//! What both HTTP wires share: a client bound to one origin, headers that stay there, and errors told apart.

mod fault;
mod message;

pub(super) use fault::{after_response, failure};

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, RETRY_AFTER},
};
use reqwest::{RequestBuilder, Response, redirect};
use tokio_util::task::TaskTracker;
use url::{Host, Url};

use super::{
    ConnectFault, Delivery, DialError, FailureKind, NoRoom, Sent, WireFailure,
    byte_budget::{self, Account, Growing},
    remote::{self, preview},
    tls,
};
use crate::config::{Endpoint, Limits};
use message::Message;

/// How long a connection may take, TLS included.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an unused connection is kept. Many servers close theirs after 5 s, and a request that meets the closing is lost: nobody
/// knows whether it was carried out.
const KEEP_IDLE: Duration = Duration::from_secs(3);
/// How often a request is sent again, because of redirects or because the server did not look at it.
const MAX_REPEATS: usize = 3;
/// How much of an error's body is read.
const ERROR_BODY: usize = 64 << 10;

/// How long a server may take to accept a message that has no response: a notification, or the response to a request of its own. Requests
/// have the limits of their callers.
const ACCEPT_WITHIN: Duration = Duration::from_secs(30);

/// Gives up a message that has no response (no `id`) if the server does not accept it in time, so that it does not hold a connection.
pub(super) async fn in_time(id: Option<u64>, exchange: impl Future<Output = ()>) {
    match id {
        Some(_) => exchange.await,
        None => {
            if tokio::time::timeout(ACCEPT_WITHIN, exchange).await.is_err() {
                tracing::debug!("the server did not accept a message within {ACCEPT_WITHIN:?}; it was given up");
            }
        }
    }
}

/// Waits until the notices that are on their way have arrived, but not for ever.
pub(super) async fn farewell(notices: &TaskTracker) {
    notices.close();
    // A server that takes none loses them.
    let _ = tokio::time::timeout(remote::FAREWELL, notices.wait()).await;
}

/// An HTTP client for one server.
#[derive(Debug)]
pub(super) struct HttpClient {
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    /// The same with what every message says about itself.
    post_headers: HeaderMap,
    limit: usize,
    session_gone: Vec<u16>,
}

impl HttpClient {
    pub(super) async fn new(endpoint: &Endpoint, limits: &Limits) -> Result<Self, DialError> {
        tls::prepare(endpoint.url.expose()).await;
        let mut tls = tls::client_config(&endpoint.tls)?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let mut builder = reqwest::Client::builder();
        if is_loopback(endpoint.url.expose()) {
            // What listens on this machine is not meant to be reached through another one.
            builder = builder.no_proxy();
        }
        let client = builder
            .tls_backend_preconfigured(tls)
            .connect_timeout(CONNECT)
            .pool_idle_timeout(KEEP_IDLE)
            .tcp_nodelay(true)
            .redirect(redirect::Policy::none())
            .user_agent(concat!("pegboard/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| DialError::Setting(remote::fault::causes(&error)))?;
        let mut url = endpoint.url.expose().clone();
        let mut headers = remote::headers(endpoint)?;
        if let Some(basic) = remote::userinfo(&mut url) {
            headers.entry(AUTHORIZATION).or_insert(basic);
        }
        let mut post_headers = headers.clone();
        post_headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        post_headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        Ok(Self {
            client,
            url,
            headers,
            post_headers,
            limit: limits.message_bytes,
            session_gone: endpoint.session_gone.clone(),
        })
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// How a refused request is read that named a session.
    pub(super) fn in_session(&self) -> InSession<'_> {
        InSession::Yes(&self.session_gone)
    }

    /// The largest message.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Sends a message. When that fails and nothing of it can have left us, the failure says so.
    pub(super) async fn post(
        &self,
        url: &Url,
        headers: HeaderMap,
        body: Vec<u8>,
        delivery: &Arc<Delivery>,
    ) -> Result<Response, WireFailure> {
        let body = Bytes::from(body);
        let request = |url, is_redirected: bool| {
            let message = if is_redirected {
                Message::begun(body.clone())
            } else {
                // A connection that turned it away has not carried it out.
                delivery.undo();
                Message::new(body.clone(), delivery.clone())
            };
            self.client
                .post(url)
                .headers(self.post_headers.clone())
                .headers(headers.clone())
                .body(reqwest::Body::wrap(message))
        };
        self.send(url, request).await.map_err(|failure| {
            delivery.abandon();
            match delivery.sent() {
                Sent::No => WireFailure {
                    sent: Sent::No,
                    ..failure
                },
                _ => failure,
            }
        })
    }

    pub(super) async fn get_stream(&self, url: &Url, more: HeaderMap) -> Result<Response, WireFailure> {
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.extend(more);
        self.send(url, |url, _| self.client.get(url).headers(headers.clone()))
            .await
    }

    pub(super) async fn delete(&self, url: &Url, more: HeaderMap) -> Result<Response, WireFailure> {
        let mut headers = self.headers.clone();
        headers.extend(more);
        self.send(url, |url, _| self.client.delete(url).headers(headers.clone()))
            .await
    }

    /// Sends a request, and again where a redirect leads or when the server has not looked at it. `request` learns whether it follows a
    /// redirect: from then on a failure no longer proves that the request did not run.
    async fn send(&self, url: &Url, request: impl Fn(Url, bool) -> RequestBuilder) -> Result<Response, WireFailure> {
        let mut url = url.clone();
        let mut is_redirected = false;
        for left in (0..=MAX_REPEATS).rev() {
            url = match request(url.clone(), is_redirected).send().await {
                Ok(response) => match redirect(&response)? {
                    None => return Ok(response),
                    Some(next) => {
                        is_redirected = true;
                        next
                    }
                },
                Err(error) if left > 0 && fault::is_turned_away(&error) => url,
                Err(error) if is_redirected => return Err(after_response(error)),
                Err(error) => return Err(failure(error)),
            };
        }
        Err(wrong_way("the server redirects in a circle"))
    }
}

pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Where a redirect leads, if the response is one. It is followed only where method, body and credentials stay as they are: 307 or 308 on
/// the same origin, with which the server itself asks for the same request again. A redirect that is not followed does not prove that the
/// request did not run: a 303 is the usual response to a POST that did.
fn redirect(response: &Response) -> Result<Option<Url>, WireFailure> {
    let status = response.status().as_u16();
    let Some(to) = response.headers().get(LOCATION) else {
        return Ok(None);
    };
    match status {
        307 | 308 => {}
        301..=303 => {
            return Err(wrong_way(&format!(
                "the server answered with a redirect (HTTP {status}) that would change the request"
            )));
        }
        _ => return Ok(None),
    }
    let here = response.url();
    let Some(mut to) = to.to_str().ok().and_then(|to| here.join(to).ok()) else {
        return Err(wrong_way("the server redirects to what is no address"));
    };
    if to.origin() != here.origin() {
        return Err(wrong_way("the server redirects to another origin"));
    }
    // Who we are is for the config to say.
    let _ = remote::userinfo(&mut to);
    Ok(Some(to))
}

fn wrong_way(text: &str) -> WireFailure {
    WireFailure::new(FailureKind::Connect(ConnectFault::Redirect), Sent::Maybe, text)
}

/// Refuses a compressed body: none is asked for, so that nothing is unpacked beyond the limit of its size.
pub(super) fn plain(response: &Response) -> Result<(), WireFailure> {
    let mut encodings = response.headers().get_all(CONTENT_ENCODING).iter();
    match encodings.find(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        None => Ok(()),
        Some(encoding) => {
            let encoding = preview(&String::from_utf8_lossy(encoding.as_bytes()));
            let text = format!("the answer is compressed ({encoding}), which was not asked for");
            Err(WireFailure::new(FailureKind::Protocol, Sent::Maybe, text))
        }
    }
}

/// The failure of an answer for which there is no room beside the messages of other servers.
pub(super) fn no_room(no_room: NoRoom) -> WireFailure {
    WireFailure::new(FailureKind::NoRoom, Sent::Maybe, no_room.to_string())
}

/// Reads a body to its end, but not past `limit`, and with a share of the board's budget if it is long.
pub(super) async fn body(mut response: Response, limit: usize, account: Account) -> Result<Bytes, WireFailure> {
    let too_large = || {
        WireFailure::new(
            FailureKind::TooLarge,
            Sent::Maybe,
            format!("the answer is larger than {limit} bytes"),
        )
    };
    if response.content_length().is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    // What the server says is within the limit, so it fits.
    let length = response
        .content_length()
        .and_then(|length| usize::try_from(length).ok());
    let most = length.unwrap_or(limit);
    let mut growing = Growing::new(account);
    growing.make_room(length.unwrap_or(0), most).await.map_err(no_room)?;
    let mut whole = BytesMut::new();
    while let Some(chunk) = next_chunk(&mut response, &growing, whole.len()).await? {
        if whole.is_empty() {
            if length == Some(chunk.len()) {
                return Ok(growing.complete(chunk));
            }
            whole.reserve(length.unwrap_or(chunk.len()));
        }
        if whole.len() + chunk.len() > limit {
            return Err(too_large());
        }
        whole.extend_from_slice(&chunk);
        growing.make_room(whole.len(), most).await.map_err(no_room)?;
    }
    Ok(growing.complete(whole.freeze()))
}

/// The next part of a body of which `held` bytes have come. Fails once the body has had its share for too long while others wait.
pub(super) async fn next_chunk(
    response: &mut Response,
    growing: &Growing,
    held: usize,
) -> Result<Option<Bytes>, WireFailure> {
    loop {
        match tokio::time::timeout(byte_budget::LOOK, response.chunk()).await {
            Ok(chunk) => return chunk.map_err(after_response),
            Err(_) => growing.check(held).map_err(no_room)?,
        }
    }
}

/// What an answer's body is.
pub(super) enum Media {
    Json,
    Events,
    None,
    Other(String),
}

impl Media {
    pub(super) fn of(response: &Response) -> Self {
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match essence.as_str() {
            "application/json" => Self::Json,
            "text/event-stream" => Self::Events,
            _ if matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT) => Self::None,
            "" => Self::Other("of no stated type".to_owned()),
            _ => Self::Other(preview(&essence)),
        }
    }
}

/// An answer of a kind that nobody asked for, with its first words.
pub(super) async fn wrong_kind(kind: Media, wanted: &str, response: Response) -> WireFailure {
    let kind = match kind {
        Media::Json => "JSON".to_owned(),
        Media::Events => "an event stream".to_owned(),
        Media::None => "empty".to_owned(),
        Media::Other(kind) => kind,
    };
    let shown = preview(&cut_body(response).await);
    let text = format!("the answer is {kind}, not {wanted}: {shown}");
    WireFailure::new(FailureKind::Protocol, Sent::Maybe, text)
}

/// What a status that is no success means. `in_session` says whether the request named a session.
pub(super) async fn refusal(response: Response, session: InSession<'_>) -> WireFailure {
    let status = response.status();
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.parse().ok())
        .map(Duration::from_secs);
    let body = cut_body(response).await;
    let mut text = format!("the server answered HTTP {status}");
    if !body.trim().is_empty() {
        text = format!("{text}: {}", preview(&body));
    }
    #[derive(serde::Deserialize)]
    struct ErrorBody {
        error: super::RpcError,
    }
    let sent = if proves_not_run(status) {
        Sent::Rejected
    } else {
        Sent::Maybe
    };
    if session.is_gone(status, &body) {
        return WireFailure::new(FailureKind::SessionGone, Sent::Rejected, text);
    }
    let kind = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => FailureKind::NeedsAuth,
        _ => match serde_json::from_str::<ErrorBody>(&body) {
            Ok(body) if status.is_client_error() => FailureKind::Rpc(body.error),
            _ => FailureKind::Status {
                code: status.as_u16(),
                retry_after,
            },
        },
    };
    WireFailure::new(kind, sent, text)
}

/// Whether a request named a session, and by which statuses besides 404 this server says that it forgot it.
#[derive(Debug, Clone, Copy)]
pub(super) enum InSession<'a> {
    No,
    Yes(&'a [u16]),
}

impl InSession<'_> {
    /// Servers that say it with another status must also say it in words: the same status has other meanings.
    fn is_gone(self, status: StatusCode, body: &str) -> bool {
        match self {
            Self::No => false,
            Self::Yes(_) if status == StatusCode::NOT_FOUND => true,
            Self::Yes(others) => others.contains(&status.as_u16()) && body.to_ascii_lowercase().contains("session"),
        }
    }
}

/// Whether a status can only come from a server that did not carry the request out.
fn proves_not_run(status: StatusCode) -> bool {
    matches!(status.as_u16(), 401 | 403..=406 | 411 | 413..=415 | 421 | 426 | 429 | 431)
}

/// As much of a body as comes without effort. It only explains an error, so its own errors do not matter.
async fn cut_body(mut response: Response) -> String {
    let mut whole = BytesMut::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            whole.extend_from_slice(&chunk);
            if whole.len() > ERROR_BODY {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(CONNECT, reading).await;
    String::from_utf8_lossy(&whole).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_reached_without_a_proxy() {
        let local = |url: &str| is_loopback(&Url::parse(url).unwrap());
        assert!(
            [
                "http://localhost/",
                "http://x.localhost:1/",
                "http://127.9.9.9/",
                "http://[::1]/"
            ]
            .map(local)
                == [true; 4]
        );
        assert!(["http://localhost.example/", "http://10.0.0.1/", "http://example.com/"].map(local) == [false; 3]);
    }
}
