//! What both HTTP wires share: a client bound to one origin, headers that stay there, and errors told apart.

use std::{io, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::{Bytes, BytesMut};
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER},
};
use reqwest::{RequestBuilder, Response, redirect};
use url::Url;

use super::{ConnectFault, DialError, FailureKind, Sent, WireFailure, tls};
use crate::config::{Auth, Endpoint, Limits};

/// How long a connection may take, TLS included.
const CONNECT: Duration = Duration::from_secs(10);
/// How long an unused connection is kept. Many servers close theirs after 5 s, and a request that meets the closing is lost: nobody
/// knows whether it was carried out.
const KEEP_IDLE: Duration = Duration::from_secs(3);
/// How many redirects are followed, all on the same origin.
const MAX_REDIRECTS: usize = 3;
/// How much of an error's body is read.
const ERROR_BODY: usize = 64 << 10;

/// An HTTP client for one server.
#[derive(Debug)]
pub(super) struct Web {
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    limit: usize,
}

impl Web {
    pub(super) fn new(endpoint: &Endpoint, limits: &Limits) -> Result<Self, DialError> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::client_config(&endpoint.tls)?)
            .connect_timeout(CONNECT)
            .pool_idle_timeout(KEEP_IDLE)
            .tcp_nodelay(true)
            .redirect(redirect::Policy::custom(follow))
            .user_agent(concat!("pegboard/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| DialError::Setting(causes(&error)))?;
        let mut url = endpoint.url.expose().clone();
        let mut headers = headers(endpoint)?;
        if let Some(basic) = userinfo(&mut url) {
            headers.entry(AUTHORIZATION).or_insert(basic);
        }
        Ok(Self {
            client,
            url,
            headers,
            limit: limits.message_bytes,
        })
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// The largest message.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn post(&self, url: &Url, body: Vec<u8>) -> RequestBuilder {
        self.client
            .post(url.clone())
            .headers(self.headers.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(body)
    }

    pub(super) fn get_stream(&self, url: &Url) -> RequestBuilder {
        self.client
            .get(url.clone())
            .headers(self.headers.clone())
            .header(ACCEPT, "text/event-stream")
    }

    pub(super) fn delete(&self, url: &Url) -> RequestBuilder {
        self.client.delete(url.clone()).headers(self.headers.clone())
    }
}

/// Follows a redirect only where method, body and credentials stay as they are: 307 or 308 on the same origin.
fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let keeps_method = matches!(
        attempt.status(),
        StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
    );
    let same_origin = attempt
        .previous()
        .first()
        .is_some_and(|first| first.origin() == attempt.url().origin());
    if !keeps_method {
        let status = attempt.status().as_u16();
        attempt.error(format!(
            "the server answered with a redirect (HTTP {status}) that would change the request"
        ))
    } else if !same_origin {
        attempt.error("the server redirects to another origin")
    } else if attempt.previous().len() > MAX_REDIRECTS {
        attempt.error("the server redirects in a circle")
    } else {
        attempt.follow()
    }
}

/// The headers that every request carries, credentials among them.
pub(super) fn headers(endpoint: &Endpoint) -> Result<HeaderMap, DialError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &endpoint.headers {
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| DialError::Setting(format!("`{name}` cannot be the name of a header")))?;
        headers.insert(key, hidden(value.expose(), name)?);
    }
    match &endpoint.auth {
        Auth::None => {}
        Auth::Bearer(token) => {
            headers.insert(
                AUTHORIZATION,
                hidden(&format!("Bearer {}", token.expose()), "auth.bearer")?,
            );
        }
        Auth::Basic { user, password } => {
            headers.insert(AUTHORIZATION, basic(user, password.expose()));
        }
    }
    Ok(headers)
}

fn hidden(value: &str, field: &str) -> Result<HeaderValue, DialError> {
    let mut value = HeaderValue::from_str(value).map_err(|_| {
        DialError::Setting(format!(
            "the value of `{field}` has characters that a header cannot carry"
        ))
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn basic(user: &str, password: &str) -> HeaderValue {
    let text = format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")));
    let mut value = HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""));
    value.set_sensitive(true);
    value
}

/// Moves user and password of a URL into a header, where no log looks for them.
fn userinfo(url: &mut Url) -> Option<HeaderValue> {
    if url.username().is_empty() && url.password().is_none() {
        return None;
    }
    let value = basic(url.username(), url.password().unwrap_or_default());
    // A URL with a host takes both, so these cannot fail.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    Some(value)
}

/// What a failed request means.
pub(super) fn failure(error: reqwest::Error) -> WireFailure {
    let error = error.without_url();
    let text = causes(&error);
    if error.is_redirect() {
        return WireFailure::new(FailureKind::Connect(ConnectFault::Redirect), Sent::Rejected, text);
    }
    if !error.is_connect() {
        return WireFailure::new(FailureKind::Cut, Sent::Maybe, text);
    }
    let fault = if error.is_timeout() {
        ConnectFault::Timeout
    } else if error.is_dns() {
        ConnectFault::Dns
    } else {
        connect_fault(&error)
    };
    WireFailure::new(FailureKind::Connect(fault), Sent::No, text)
}

/// Looks through the causes of a failed connection for the one that tells what it was.
pub(super) fn connect_fault(error: &(dyn std::error::Error + 'static)) -> ConnectFault {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<rustls::Error>() {
            return ConnectFault::Tls;
        }
        if let Some(io) = error.downcast_ref::<io::Error>() {
            match io.kind() {
                io::ErrorKind::ConnectionRefused => return ConnectFault::Refused,
                io::ErrorKind::TimedOut => return ConnectFault::Timeout,
                _ => {}
            }
            if io.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
                return ConnectFault::Tls;
            }
        }
        cause = error.source();
    }
    ConnectFault::Other
}

/// An error with its causes, in one line.
pub(super) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}

/// Reads a body to its end, but not past `limit`.
pub(super) async fn body(mut response: Response, limit: usize) -> Result<Bytes, WireFailure> {
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
    let mut whole = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(failure)? {
        if whole.is_empty() && response.content_length() == Some(chunk.len() as u64) {
            return Ok(chunk);
        }
        if whole.len() + chunk.len() > limit {
            return Err(too_large());
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.freeze())
}

/// What a status that is no success means. `in_session` says whether the request named a session.
pub(super) async fn refusal(response: Response, in_session: bool) -> WireFailure {
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
    let sent = if status.is_server_error() {
        Sent::Maybe
    } else {
        Sent::Rejected
    };
    let kind = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => FailureKind::NeedsAuth,
        StatusCode::NOT_FOUND if in_session => FailureKind::SessionGone,
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

/// The first 200 characters of a text, on one line.
pub(super) fn preview(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = line.chars().filter(|c| !c.is_control()).take(200).collect();
    if shown.len() < line.len() {
        shown.push('…');
    }
    shown
}
