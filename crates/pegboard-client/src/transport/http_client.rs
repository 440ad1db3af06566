//! The HTTP client of both HTTP wires. It sends credentials to one origin only and follows redirects only within it.

mod mcp_headers;
mod request_body;
mod request_error;
mod response;

pub(super) use mcp_headers::mcp_headers;
pub(super) use request_error::after_response;
pub(super) use response::{
    InSession, MediaType, next_chunk, no_room, read_body, reject_compressed, status_failure, unexpected_type,
};

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION},
};
use reqwest::{RequestBuilder, Response, redirect};
use tokio_util::task::TaskTracker;
use url::{Host, Url};

use super::{
    connect_error::with_causes,
    connection_credentials::ConnectionCredentials,
    delivery::{Delivery, Sent},
    dial_error::DialError,
    request_failure::{ConnectFault, FailureKind, WireFailure},
    request_headers,
    tls::{self, CertificateFiles},
    wire::FLUSH_TIMEOUT,
};
use crate::credential::{Issued, PROOF_HEADER};
use pegboard_config::{Endpoint, Limits};
use request_body::MessageBody;

/// How long opening a connection may take, including TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an idle connection is kept. Many servers close idle connections after 5 s, and if a request races with the close, it is unknown
/// whether the request ran.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3);
/// How often a request is resent, because of a redirect or because the server refused it unprocessed.
const MAX_RESENDS: usize = 3;
/// How long a server may take to accept a message that has no response: a notification, or our response to its request. Requests have the
/// deadlines of their callers.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs an exchange. One without a response (no `id`) is dropped if the server does not accept it in time, so that it does not occupy a
/// connection.
pub(super) async fn with_accept_timeout(id: Option<u64>, exchange: impl Future<Output = ()>) {
    match id {
        Some(_) => exchange.await,
        None => {
            if tokio::time::timeout(ACCEPT_TIMEOUT, exchange).await.is_err() {
                tracing::debug!("the server did not accept a message within {ACCEPT_TIMEOUT:?}; it was given up");
            }
        }
    }
}

/// Waits until pending notifications are sent, for at most [`FLUSH_TIMEOUT`].
pub(super) async fn flush(notifications: &TaskTracker) {
    notifications.close();
    let _ = tokio::time::timeout(FLUSH_TIMEOUT, notifications.wait()).await;
}

/// An HTTP client for one server.
#[derive(Debug)]
pub(super) struct HttpClient {
    client: reqwest::Client,
    /// The files that the client's TLS settings came from.
    certificate_files: Option<Arc<CertificateFiles>>,
    url: Url,
    headers: HeaderMap,
    /// `headers`, plus the content type and accepted types of a POST.
    post_headers: HeaderMap,
    /// Supplies headers at run time.
    credentials: Option<ConnectionCredentials>,
    limit: usize,
    session_gone: Vec<u16>,
}

impl HttpClient {
    pub(super) async fn new(
        endpoint: &Endpoint,
        limits: &Limits,
        credentials: Option<ConnectionCredentials>,
    ) -> Result<Self, DialError> {
        tls::prepare(endpoint.url.expose()).await;
        let (mut tls, certificate_files) = tls::reloading_config(&endpoint.tls)?;
        tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let mut builder = reqwest::Client::builder();
        if is_loopback(endpoint.url.expose()) {
            // A proxy on another machine cannot reach this machine's loopback address.
            builder = builder.no_proxy();
        }
        let client = builder
            .tls_backend_preconfigured(tls)
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .tcp_nodelay(true)
            .redirect(redirect::Policy::none())
            .user_agent(concat!("pegboard/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| DialError::Setting(with_causes(&error)))?;
        let mut url = endpoint.url.expose().clone();
        let mut headers = request_headers::build_configured(endpoint)?;
        if let Some(basic) = request_headers::take_userinfo(&mut url) {
            headers.entry(AUTHORIZATION).or_insert(basic);
        }
        let mut post_headers = headers.clone();
        post_headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        post_headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        Ok(Self {
            client,
            certificate_files,
            url,
            headers,
            post_headers,
            credentials,
            limit: limits.max_message,
            session_gone: endpoint.session_gone_status.clone(),
        })
    }

    pub(super) fn url(&self) -> &Url {
        &self.url
    }

    /// How to interpret an error status in response to a request that carried a session id.
    pub(super) fn in_session(&self) -> InSession<'_> {
        InSession::Yes(&self.session_gone)
    }

    /// The size limit of a message.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Posts a message. The failure says whether the message can have been sent.
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
                MessageBody::for_resend(body.clone())
            } else {
                // An earlier attempt was refused unprocessed, so the message counts as unsent again.
                delivery.undo();
                MessageBody::new(body.clone(), delivery.clone())
            };
            self.client
                .post(url)
                .headers(self.post_headers.clone())
                .headers(headers.clone())
                .body(reqwest::Body::wrap(message))
        };
        self.send(&Method::POST, url, Some(delivery), request)
            .await
            .map_err(|failure| {
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
        let request = |url, _| self.client.get(url).headers(headers.clone());
        self.send(&Method::GET, url, None, request).await
    }

    pub(super) async fn delete(&self, url: &Url, more: HeaderMap) -> Result<Response, WireFailure> {
        let mut headers = self.headers.clone();
        headers.extend(more);
        let request = |url, _| self.client.delete(url).headers(headers.clone());
        self.send(&Method::DELETE, url, None, request).await
    }

    /// Sends a request with the program's credential, and once more with another one if the server refuses that. The argument of `request` says
    /// whether it follows a redirect.
    async fn send(
        &self,
        method: &Method,
        url: &Url,
        delivery: Option<&Arc<Delivery>>,
        request: impl Fn(Url, bool) -> RequestBuilder,
    ) -> Result<Response, WireFailure> {
        if let Some(files) = &self.certificate_files
            && files.begin_check()
        {
            // Boxed: other requests do not carry its size.
            Box::pin(files.refresh()).await;
        }
        let Some(credentials) = &self.credentials else {
            return self
                .follow(url, |url, is_redirected| Ok(request(url, is_redirected)))
                .await;
        };
        let request = &request;
        let issued = credentials.get_or_renew().await?;
        let response = self
            .send_with(method, url, delivery, (credentials, &issued), request)
            .await?;
        if !credentials.is_refusal(response.status(), response.headers()) {
            return Ok(response);
        }
        // A refusal proves that the request did not run, so it counts as unsent and is safe to send again. A second one is the result.
        if let Some(delivery) = delivery {
            delivery.undo();
        }
        let Some(issued) = credentials.after_refusal(&issued, response.headers()).await? else {
            return Ok(response);
        };
        drop(response);
        self.send_with(method, url, delivery, (credentials, &issued), request)
            .await
    }

    /// Sends a request with this credential, and once more with another proof if the server refuses only the proof.
    async fn send_with(
        &self,
        method: &Method,
        url: &Url,
        delivery: Option<&Arc<Delivery>>,
        (credentials, issued): (&ConnectionCredentials, &Issued),
        request: impl Fn(Url, bool) -> RequestBuilder,
    ) -> Result<Response, WireFailure> {
        let request = |url: Url, is_redirected: bool| {
            // Replaces the config's headers of the same names.
            let with_headers = |url| request(url, is_redirected).headers(issued.headers().clone());
            match issued.proof() {
                None => Ok(with_headers(url)),
                Some(proof) => {
                    let proof = proof
                        .header(method, &url)
                        .map_err(|why| credentials.unusable_failure(why))?;
                    Ok(with_headers(url).header(PROOF_HEADER, proof))
                }
            }
        };
        let response = self.follow(url, request).await?;
        let learn = |response: &Response| {
            let proof = issued.proof();
            proof.is_some_and(|proof| proof.learn(response.url(), response.status(), response.headers()))
        };
        if !learn(&response) {
            return Ok(response);
        }
        drop(response);
        if let Some(delivery) = delivery {
            delivery.undo();
        }
        let response = self.follow(url, request).await?;
        learn(&response);
        Ok(response)
    }

    /// Sends a request, and resends it after a redirect within the origin or if the server refused it unprocessed. The argument of
    /// `request` says whether it follows a redirect: from then on a failure no longer proves that the request did not run.
    async fn follow(
        &self,
        url: &Url,
        request: impl Fn(Url, bool) -> Result<RequestBuilder, WireFailure>,
    ) -> Result<Response, WireFailure> {
        let mut url = url.clone();
        let mut is_redirected = false;
        for left in (0..=MAX_RESENDS).rev() {
            url = match request(url.clone(), is_redirected)?.send().await {
                Ok(response) => match redirect(&response)? {
                    None => return Ok(response),
                    Some(next) => {
                        is_redirected = true;
                        next
                    }
                },
                Err(error) if left > 0 && request_error::is_refused_unprocessed(&error) => url,
                Err(error) if is_redirected => return Err(after_response(error)),
                Err(error) => return Err(request_error::before_response(error)),
            };
        }
        Err(redirect_failure("the server redirects in a circle"))
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

/// The target of a redirect, if the response is one. Only 307 and 308 to the same origin are followed, because they keep method, body and
/// credentials. Other redirects are failures, and do not prove that the request did not run: a 303 is the usual response to a POST that did.
fn redirect(response: &Response) -> Result<Option<Url>, WireFailure> {
    let status = response.status().as_u16();
    let Some(to) = response.headers().get(LOCATION) else {
        return Ok(None);
    };
    match status {
        307 | 308 => {}
        301..=303 => {
            return Err(redirect_failure(&format!(
                "the server answered with a redirect (HTTP {status}) that would change the request"
            )));
        }
        _ => return Ok(None),
    }
    let here = response.url();
    let Some(mut to) = to.to_str().ok().and_then(|to| here.join(to).ok()) else {
        return Err(redirect_failure("the server redirects to what is no address"));
    };
    if to.origin() != here.origin() {
        return Err(redirect_failure("the server redirects to another origin"));
    }
    // Credentials come from the config only.
    let _ = request_headers::take_userinfo(&mut to);
    Ok(Some(to))
}

fn redirect_failure(text: &str) -> WireFailure {
    WireFailure::new(FailureKind::Connect(ConnectFault::Redirect), Sent::Maybe, text)
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
