//! The HTTP client of both HTTP wires. It sends credentials to one origin only and follows redirects only within it.

mod mcp_headers;
mod request_error;
mod response;

pub(super) use mcp_headers::mcp_headers;
pub(super) use request_error::before_response;
#[cfg(feature = "sse")]
pub(super) use request_error::request_failure;
pub(super) use response::{
    InSession, MediaType, next_chunk, no_room, read_body, reject_compressed, status_failure, unexpected_type,
};

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION},
};
use pegboard_http::{Body, Client, Gate, Response, Settings, Target};
use tokio_util::task::TaskTracker;
use url::Url;

use super::{
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
    client: Client,
    /// The files that the client's TLS settings came from.
    certificate_files: Option<Arc<CertificateFiles>>,
    endpoint: Arc<Target>,
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
        let (tls, certificate_files) = match tls::reloading_config(&endpoint.tls, endpoint.url.expose())? {
            None => (None, None),
            Some(mut settings) => {
                settings.config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
                (Some(settings.config), settings.files)
            }
        };
        let mut url = endpoint.url.expose().clone();
        let mut headers = request_headers::build_configured(endpoint)?;
        if let Some(basic) = request_headers::take_userinfo(&mut url) {
            headers.entry(AUTHORIZATION).or_insert(basic);
        }
        let target = Target::new(url).map_err(|error| DialError::Setting(error.to_string()))?;
        let settings = Settings {
            connect_timeout: CONNECT_TIMEOUT,
            idle_time: IDLE_TIMEOUT,
            ..Settings::new(tls)
        };
        let mut post_headers = headers.clone();
        post_headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        post_headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        Ok(Self {
            client: Client::new(&target, settings),
            certificate_files,
            endpoint: Arc::new(target),
            headers,
            post_headers,
            credentials,
            limit: limits.max_message,
            session_gone: endpoint.session_gone_status.clone(),
        })
    }

    /// The endpoint of the config.
    pub(super) fn endpoint(&self) -> &Arc<Target> {
        &self.endpoint
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
        target: &Arc<Target>,
        headers: HeaderMap,
        body: Vec<u8>,
        delivery: &Arc<Delivery>,
    ) -> Result<Response, WireFailure> {
        let mut all = self.post_headers.clone();
        all.extend(headers);
        let request = HttpRequest {
            method: Method::POST,
            headers: all,
            message: Some((body.into(), delivery)),
        };
        self.send(target, request).await.map_err(|failure| {
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

    pub(super) async fn get_stream(&self, target: &Arc<Target>, more: HeaderMap) -> Result<Response, WireFailure> {
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.extend(more);
        self.send(target, HttpRequest::without_body(Method::GET, headers)).await
    }

    pub(super) async fn delete(&self, target: &Arc<Target>, more: HeaderMap) -> Result<Response, WireFailure> {
        let mut headers = self.headers.clone();
        headers.extend(more);
        self.send(target, HttpRequest::without_body(Method::DELETE, headers))
            .await
    }

    /// Sends a request with the program's credential, if there is one, and once more with another one if the server refuses that.
    async fn send(&self, target: &Arc<Target>, request: HttpRequest<'_>) -> Result<Response, WireFailure> {
        if let Some(files) = &self.certificate_files
            && files.begin_check()
        {
            // Boxed: other requests do not carry its size.
            Box::pin(files.refresh()).await;
        }
        match &self.credentials {
            None => self.follow(target, request, None).await,
            // Boxed: requests without a credential do not carry its size.
            Some(credentials) => Box::pin(self.send_with_credential(target, request, credentials)).await,
        }
    }

    async fn send_with_credential(
        &self,
        target: &Arc<Target>,
        request: HttpRequest<'_>,
        credentials: &ConnectionCredentials,
    ) -> Result<Response, WireFailure> {
        let issued = credentials.get_or_renew().await?;
        let response = self.send_with(target, request.clone(), (credentials, &issued)).await?;
        if !credentials.is_refusal(response.status(), response.headers()) {
            return Ok(response);
        }
        // A refusal proves that the request did not run, so it counts as unsent and is safe to send again. A second one is the result.
        request.undo();
        let Some(issued) = credentials.after_refusal(&issued, response.headers()).await? else {
            return Ok(response);
        };
        response.finish();
        self.send_with(target, request, (credentials, &issued)).await
    }

    /// Sends a request with this credential, and once more with another proof if the server refuses only the proof.
    async fn send_with(
        &self,
        target: &Arc<Target>,
        mut request: HttpRequest<'_>,
        (credentials, issued): (&ConnectionCredentials, &Issued),
    ) -> Result<Response, WireFailure> {
        // Replaces the config's headers of the same names.
        request.headers.extend(issued.headers().clone());
        let Some(proof) = issued.proof() else {
            return self.follow(target, request, None).await;
        };
        let method = request.method.clone();
        let prove = |url: &Url| {
            let proof = proof.header(&method, url);
            proof.map_err(|why| credentials.unusable_failure(why))
        };
        let learn = |response: &Response| proof.learn(response.target().url(), response.status(), response.headers());
        let response = self.follow(target, request.clone(), Some(&prove)).await?;
        if !learn(&response) {
            return Ok(response);
        }
        response.finish();
        request.undo();
        let response = self.follow(target, request, Some(&prove)).await?;
        learn(&response);
        Ok(response)
    }

    /// Sends a request, and resends it after a redirect within the origin or if the server refused it unprocessed. After a redirect a failure no
    /// longer proves that the request did not run. `prove` makes a proof for each URL.
    async fn follow(
        &self,
        target: &Arc<Target>,
        mut request: HttpRequest<'_>,
        prove: Option<&Prove<'_>>,
    ) -> Result<Response, WireFailure> {
        let mut target = target.clone();
        let mut is_redirected = false;
        for left in (0..=MAX_RESENDS).rev() {
            if let Some(prove) = prove {
                request.headers.insert(PROOF_HEADER, prove(target.url())?);
            }
            let (method, headers) = (request.method.clone(), request.headers.clone());
            // Boxed, because the future that waits for this is moved when its task is spawned.
            let sending = Box::pin(self.client.send(method, &target, headers, request.body(is_redirected)));
            let sent = sending.await;
            target = match sent {
                Ok(response) => match redirect(&response)? {
                    None => return Ok(response),
                    Some(next) => {
                        response.finish();
                        is_redirected = true;
                        next
                    }
                },
                Err(error) if left > 0 && request_error::is_refused_unprocessed(&error) => target,
                Err(error) if is_redirected => return Err(request_error::after_response(&error)),
                Err(error) => return Err(before_response(&error, target.url())),
            };
        }
        Err(redirect_failure("the server redirects in a circle"))
    }
}

/// Makes the header with which a request to a URL proves the possession of a key.
type Prove<'a> = dyn Fn(&Url) -> Result<HeaderValue, WireFailure> + Sync + 'a;

/// A request that may have to be sent more than once.
#[derive(Clone)]
struct HttpRequest<'a> {
    method: Method,
    headers: HeaderMap,
    /// The message that it carries, and its delivery.
    message: Option<(Bytes, &'a Arc<Delivery>)>,
}

impl HttpRequest<'_> {
    fn without_body(method: Method, headers: HeaderMap) -> Self {
        Self {
            method,
            headers,
            message: None,
        }
    }

    /// The body, for another try. The message counts as sent once the connection takes it, unless an earlier request has sent it, which the
    /// server redirected.
    fn body(&self, is_redirected: bool) -> Body {
        match &self.message {
            None => Body::from(Bytes::new()),
            Some((bytes, _)) if is_redirected => Body::from(bytes.clone()),
            Some((bytes, delivery)) => {
                // An earlier attempt was refused unprocessed, so the message counts as unsent again.
                delivery.undo();
                Body::gated(bytes.clone(), Arc::<Delivery>::clone(delivery))
            }
        }
    }

    /// Makes the message count as unsent.
    fn undo(&self) {
        if let Some((_, delivery)) = &self.message {
            delivery.undo();
        }
    }
}

/// A message is sent unless it was abandoned before.
impl Gate for Delivery {
    fn open(&self) -> bool {
        self.begin()
    }
}

/// The target of a redirect, if the response is one. Only 307 and 308 to the same origin are followed, because they keep method, body and
/// credentials. Other redirects are failures, and do not prove that the request did not run: a 303 is the usual response to a POST that did.
fn redirect(response: &Response) -> Result<Option<Arc<Target>>, WireFailure> {
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
    let here = response.target().url();
    let Some(mut to) = to.to_str().ok().and_then(|to| here.join(to).ok()) else {
        return Err(redirect_failure("the server redirects to what is no address"));
    };
    if to.origin() != here.origin() {
        return Err(redirect_failure("the server redirects to another origin"));
    }
    // Credentials come from the config only.
    let _ = request_headers::take_userinfo(&mut to);
    let to = Target::new(to).map_err(|error| redirect_failure(&format!("the server redirects elsewhere: {error}")))?;
    Ok(Some(Arc::new(to)))
}

fn redirect_failure(text: &str) -> WireFailure {
    WireFailure::new(FailureKind::Connect(ConnectFault::Redirect), Sent::Maybe, text)
}
