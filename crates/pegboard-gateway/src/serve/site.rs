//! [`Site`]: what is served, whatever the listener. It admits requests, routes them and hands them to the wires.

use std::{
    fmt,
    pin::pin,
    sync::Arc,
    task::Poll,
    time::{Duration, SystemTime},
};

use arc_swap::{ArcSwap, ArcSwapOption};
use axum::Router;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{
    HeaderValue, Method, Request, StatusCode, Uri,
    header::{HOST, ORIGIN, WWW_AUTHENTICATE},
    request::Parts,
};
use http_body::Body;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tower_service::Service as _;

use super::{
    cors, expiry,
    listeners::{Arrival, LocalClient},
    protected_resource::{self, Asked},
    routes::{Route, allowed},
    traffic::{BUSY, PathLabel, TOO_LONG, Traffic, VIEW},
};
use crate::{
    door::{self, Caller, Door, Origin, Peer, Rejection, Revocation, Scope, TokenFault, Verdict},
    protocol::Endpoint,
    sign_in::SignInLinks,
    wire::{
        AnswersCall, Endpoints, HttpResponse, HttpWire, LinesWire, NoEndpoint, PathTarget, ResponseBody, SseWire,
        WebSocketWire, empty, is_lines_upgrade, is_upgrade, method_not_allowed, problem,
    },
};

/// The limit on the head of a request, in bytes.
pub(super) const MAX_HEAD: usize = 64 * 1024;
/// How often a token is verified again because the rules have changed meanwhile.
const MAX_VERIFICATIONS: usize = 4;
/// The limit on the time between the end of the old rules and the new ones.
const DOOR_CHANGE: Duration = Duration::from_secs(1);

/// Why a request is waited for no longer.
enum WaitEnd {
    /// Its token is good no longer.
    Token,
    /// The time of the shutdown is over.
    Halted,
}

/// What a gateway serves.
pub(super) struct Site {
    pub(super) door: ArcSwap<Door>,
    pub(super) endpoints: Arc<dyn Endpoints>,
    pub(super) http: HttpWire,
    pub(super) sse: SseWire,
    pub(super) websocket: WebSocketWire,
    pub(super) lines: LinesWire,
    pub(super) traffic: Arc<Traffic>,
    /// The requests that may be handled at once. Streams on which a client only listens do not count.
    pub(super) places: Arc<Semaphore>,
    pub(super) max_in_flight: usize,
    /// Serves all other paths.
    pub(super) others: Option<Router>,
    /// What connections are encrypted with; `None` means that they are not.
    pub(super) tls: ArcSwapOption<rustls::ServerConfig>,
    /// Cancelled when requests in flight get no more time at shutdown.
    pub(super) halt: CancellationToken,
    /// Notified when the door has other tokens.
    pub(super) tokens_changed: watch::Sender<()>,
    pub(super) sign_in_links: SignInLinks,
}

impl Site {
    /// Replaces the door. What clients whose tokens were `revoked` have open ends.
    pub(super) fn replace_door(&self, door: Door, revoked: &[Caller]) {
        self.door.store(Arc::new(door));
        self.end_what_is_open(revoked);
        self.tokens_changed.send_replace(());
    }

    /// How many requests are being handled.
    pub(super) fn in_flight(&self) -> usize {
        self.max_in_flight.saturating_sub(self.places.available_permits())
    }

    /// Revokes the tokens that have expired. Returns how long it is until the next one expires.
    pub(super) fn end_expired(&self) -> Option<Duration> {
        let (door, now) = (self.door.load(), SystemTime::now());
        let (mut expired, mut next) = door.tokens.expire(now);
        if let Some(oauth) = &door.oauth {
            let (more, sooner) = oauth.expire(now);
            expired.extend(more);
            next = next.into_iter().chain(sooner).min();
        }
        self.end_what_is_open(&expired);
        next
    }

    /// Revokes tokens when they expire, until this is dropped.
    pub(super) fn watch_expiry(self: &Arc<Self>) -> impl Future<Output = ()> + use<> {
        expiry::watch(Arc::downgrade(self), self.tokens_changed.subscribe())
    }

    /// Ends what outlives the requests of these callers. The rest ends by itself when it is notified.
    fn end_what_is_open(&self, revoked: &[Caller]) {
        if revoked.is_empty() {
            return;
        }
        self.sign_in_links.end_revoked();
        self.http.end_revoked();
        // A client whose token has expired may come back with a new one and answer what its calls have asked.
        for caller in revoked.iter().filter(|caller| caller.revoked.is_withdrawn()) {
            self.endpoints.end_calls_of(caller.principal.as_ref());
        }
    }

    /// Handles a request, and counts it.
    pub(super) async fn handle<B>(&self, request: Request<B>, arrival: Arrival) -> HttpResponse
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let path = PathLabel::new(request.uri().path());
        let response = self.checked(request, arrival).await;
        self.traffic.answered(path, response.status());
        response
    }

    /// Handles a request, if its site is admitted.
    async fn checked<B>(&self, request: Request<B>, arrival: Arrival) -> HttpResponse
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        if is_too_long(&request) {
            self.traffic.refused(TOO_LONG);
            return problem(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "the head of the request is longer than 64 KiB",
            );
        }
        let origin = match self.door.load().site.check(request.uri(), request.headers()) {
            Ok(origin) => origin,
            // A link in another page, or the redirect of an authorization server.
            Err(Rejection::CrossSite) if self.is_sign_in_page(request.uri()) && is_page_visit(&request) => {
                Origin::Local
            }
            Err(Rejection::NoHost | Rejection::Host) if door::is_probe(&request) => Origin::Local,
            Err(rejection) => return self.reject(rejection),
        };
        match origin {
            Origin::Local => self.admitted_site(request, arrival).await,
            Origin::Configured(origin) => {
                let mut response = match cors::preflight(request.method(), request.headers()) {
                    Some(response) => response,
                    None => self.admitted_site(request, arrival).await,
                };
                cors::allow(origin, &mut response);
                response
            }
        }
    }

    /// Handles a request of an admitted site: checks its token, unless it only asks whether the process is alive.
    async fn admitted_site<B>(&self, request: Request<B>, arrival: Arrival) -> HttpResponse
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let (parts, body) = request.into_parts();
        // A copy of the path costs less than a borrow of the parts, which a WebSocket handshake needs.
        let uri = parts.uri.clone();
        let route = match Route::parse(uri.path()) {
            // Clients of WebSocket are often given an address without a path.
            Route::Other if uri.path() == "/" && is_upgrade(&parts.headers) => Route::Mcp(PathTarget::Board),
            route => route,
        };
        if route == Route::Live {
            return live(&parts.method);
        }
        let host = parts.headers.get(HOST).cloned();
        let asked = self.asked(host.as_ref(), uri.path());
        if let Some(response) = protected_resource::metadata(&self.door.load(), asked, &parts.method) {
            return response;
        }
        let arrival = match arrival {
            // A sandbox keeps a server from the token. Without one it is a process of the user like others.
            Arrival::LocalServer if self.door.load().tokens.is_owner(&parts.headers) => Arrival::Local,
            Arrival::LocalServer => return self.refuse(Rejection::NotOwner, asked),
            arrival => arrival,
        };
        let caller = match arrival {
            // A process of the same user, and none of a server.
            Arrival::Local => self.door.load().tokens.local(&parts.headers),
            Arrival::Network | Arrival::LocalServer => match self.admit(&parts).await {
                Ok(caller) => caller,
                Err(_) if route == Route::Ready || self.is_sign_in_page(&uri) => Caller::without_rights(),
                Err(rejection) => return self.refuse(rejection, asked),
            },
        };
        if matches!(route, Route::Mcp(PathTarget::Approved(_))) {
            if arrival == Arrival::Network {
                return problem(StatusCode::NOT_FOUND, "this path is served at the local socket only");
            }
            // Its calls need no approval any more, so more than the user's id must open it: servers have that too.
            if !caller.scopes.contains(Scope::Admin) {
                return self.reject(Rejection::NotOwner);
            }
        }
        let revoked = caller.revoked.clone();
        let has_access_token = caller.has_access_token;
        let only_reads = matches!(parts.method, Method::GET | Method::HEAD);
        let mut handled = pin!(self.admitted((route, arrival), &uri, parts, body, caller));
        let ended = tokio::select! {
            biased;
            response = &mut handled => Ok(response),
            ended = self.ended(&revoked, only_reads) => Err(ended),
        };
        let ended = match ended {
            Ok(response) => Ok(response),
            // It may have happened after the request was polled, and a call that was begun says itself how it ended.
            Err(ended) => handled.as_mut().now_or_never().ok_or(ended),
        };
        match ended {
            Ok(mut response) => {
                let answers_call = response.extensions_mut().remove::<AnswersCall>().is_some();
                response.body_mut().end_with(&revoked, answers_call);
                if has_access_token
                    && response.status() == StatusCode::FORBIDDEN
                    && let Some(challenge) = protected_resource::insufficient(&self.door.load(), asked)
                {
                    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
                }
                response
            }
            // Nothing of these requests has run: their bodies have not come, or they call no tool.
            Err(WaitEnd::Token) => self.refuse(Rejection::Token, asked),
            Err(WaitEnd::Halted) => problem(StatusCode::SERVICE_UNAVAILABLE, "the server stops; try again later"),
        }
    }

    /// Completes when a request is waited for no longer. A token that expires only ends requests that read.
    async fn ended(&self, revoked: &Revocation, only_reads: bool) -> WaitEnd {
        let token = async {
            revoked.cancelled().await;
            if !only_reads {
                revoked.withdrawn().await;
            }
        };
        tokio::select! {
            biased;
            () = token => WaitEnd::Token,
            // The connection polls all of this when the time of the shutdown is over.
            () = std::future::poll_fn(|_| if self.halt.is_cancelled() { Poll::Ready(()) } else { Poll::Pending }) => WaitEnd::Halted,
        }
    }

    /// The caller that a request's token names.
    async fn admit(&self, parts: &Parts) -> Result<Caller, Rejection> {
        let path = parts.uri.path();
        // The verdict first: a guard must not be held while a token is verified.
        let verdict = self.door.load().check(&parts.headers, path);
        match verdict {
            Verdict::Admitted(caller) => Ok(caller),
            Verdict::Rejected(rejection) => Err(rejection),
            Verdict::OfOwner(owner, caller) => match parts.extensions.get::<Peer>() {
                Some(peer) if Box::pin(owner.is_at(peer)).await => Ok(caller),
                _ => Err(Rejection::NotOwner),
            },
            // Boxed, so that requests with known tokens do not carry its size.
            Verdict::Unverified(_) => Box::pin(self.verified(parts)).await,
        }
    }

    /// The caller of a request whose token has to be verified, by the rules that are in force when that is done.
    async fn verified(&self, parts: &Parts) -> Result<Caller, Rejection> {
        let path = parts.uri.path();
        for _ in 0..MAX_VERIFICATIONS {
            // Before the door is looked at, so that no change of it is missed.
            let mut changed = self.tokens_changed.subscribe();
            let verdict = self.door.load().check(&parts.headers, path);
            let oauth = match verdict {
                Verdict::Admitted(caller) => return Ok(caller),
                Verdict::Rejected(rejection) => return Err(rejection),
                Verdict::OfOwner(..) => return Err(Rejection::NoToken),
                Verdict::Unverified(oauth) => oauth,
            };
            match door::verify(&oauth, &parts.headers, path).await {
                Ok(caller) => {
                    // It may expire before the next look at the clock.
                    self.tokens_changed.send_replace(());
                    return Ok(caller);
                }
                Err(Rejection::AccessToken(TokenFault::Superseded)) => {}
                Err(rejection) => {
                    // It was good before, and its authorization server has withdrawn it.
                    if oauth.has_revoked() {
                        self.end_expired();
                    }
                    return Err(rejection);
                }
            }
            // The new door is put in place right after the old rules have ended.
            let _ = tokio::time::timeout(DOOR_CHANGE, changed.changed()).await;
        }
        Err(Rejection::AccessToken(TokenFault::Superseded))
    }

    /// Whether this is the path of a sign-in page that is served.
    fn is_sign_in_page(&self, uri: &Uri) -> bool {
        self.sign_in_links.is_served() && Route::parse(uri.path()) == Route::SignIn
    }

    fn asked<'a>(&self, host: Option<&'a HeaderValue>, path: &'a str) -> Asked<'a> {
        let scheme = if self.tls.load().is_some() { "https" } else { "http" };
        Asked { scheme, host, path }
    }

    /// Refuses a request for its token.
    fn refuse(&self, rejection: Rejection, asked: Asked<'_>) -> HttpResponse {
        let mut response = self.reject(rejection);
        if let Some(challenge) = protected_resource::challenge(&self.door.load(), asked, rejection) {
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }

    /// Handles a request of an admitted caller.
    async fn admitted<B>(
        &self,
        (route, arrival): (Route<'_>, Arrival),
        uri: &Uri,
        mut parts: Parts,
        body: B,
        caller: Caller,
    ) -> HttpResponse
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        match route {
            Route::Mcp(target) => {
                let endpoint = match self.endpoint(target, &caller) {
                    Ok(endpoint) => endpoint,
                    Err(refusal) => return *refusal,
                };
                if arrival == Arrival::Local && is_lines_upgrade(&parts.headers) {
                    let open = self.traffic.opened();
                    return self.lines.upgrade(&mut parts, endpoint, caller, open);
                }
                if is_upgrade(&parts.headers) {
                    return self.websocket.upgrade(&mut parts, endpoint, caller).await;
                }
                let handled = self
                    .http
                    .handle(&parts.method, &endpoint, &caller, &parts.headers, body);
                self.limited(&parts.method, handled).await
            }
            Route::Sse(target) => match self.endpoint(target, &caller) {
                Ok(endpoint) => self.sse.open(&parts, uri, endpoint, caller),
                Err(refusal) => *refusal,
            },
            Route::Messages(target) => match self.endpoint(target, &caller) {
                Ok(endpoint) => {
                    let handled = self.sse.receive(&parts, &endpoint, &caller, body);
                    self.limited(&parts.method, handled).await
                }
                Err(refusal) => *refusal,
            },
            Route::Live | Route::Ready | Route::SignIn | Route::Other => {
                if arrival == Arrival::Local {
                    parts.extensions.insert(LocalClient);
                }
                let method = parts.method.clone();
                self.limited(&method, self.other(parts, body, caller)).await
            }
        }
    }

    /// Runs a request that counts as one in flight.
    async fn limited(&self, method: &Method, handled: impl Future<Output = HttpResponse>) -> HttpResponse {
        if *method != Method::POST {
            return handled.await;
        }
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            self.traffic.refused(BUSY);
            return problem(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many requests are in flight; try again later",
            );
        };
        let mut response = handled.await;
        response.body_mut().held().in_flight = Some(place);
        response
    }

    fn endpoint(&self, target: PathTarget<'_>, caller: &Caller) -> Result<Arc<Endpoint>, Box<HttpResponse>> {
        let Some(target) = allowed(target, caller) else {
            self.traffic.refused(VIEW);
            let detail = "the token is for one view only: use /mcp";
            return Err(Box::new(problem(StatusCode::FORBIDDEN, detail)));
        };
        let found = self.endpoints.endpoint(target, caller);
        found.map_err(|none| Box::new(not_found(target, &none)))
    }

    fn reject(&self, rejection: Rejection) -> HttpResponse {
        self.traffic.refused(rejection.label());
        let mut response = problem(rejection.status(), &rejection.to_string());
        if let Some(challenge) = rejection.challenge() {
            let challenge = HeaderValue::from_static(challenge);
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }

    async fn other<B>(&self, mut parts: Parts, body: B, caller: Caller) -> HttpResponse
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let Some(others) = &self.others else {
            return problem(
                StatusCode::NOT_FOUND,
                "there is nothing at this path; MCP is served at /mcp",
            );
        };
        parts.extensions.insert(caller);
        let request = Request::from_parts(parts, axum::body::Body::new(body));
        match others.clone().call(request).await {
            Ok(response) => response.map(ResponseBody::other),
            Err(never) => match never {},
        }
    }
}

/// Returns `true` if a person opens a page as a whole, by a link or a redirect. No script reads it, and no frame shows it.
fn is_page_visit<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|sent| sent == value);
    *request.method() == Method::GET
        && !headers.contains_key(ORIGIN)
        && is("sec-fetch-mode", "navigate")
        && is("sec-fetch-dest", "document")
}

/// Returns `true` if the head of a request is over the limit: request line, headers, and the blank line.
fn is_too_long<B>(request: &Request<B>) -> bool {
    const LINE: usize = " HTTP/1.1\r\n".len();
    let path = request.uri().path_and_query().map_or(1, |path| path.as_str().len());
    let headers = request.headers().iter();
    let headers: usize = headers
        .map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len())
        .sum();
    request.method().as_str().len() + " ".len() + path + LINE + headers + "\r\n".len() > MAX_HEAD
}

fn live(method: &Method) -> HttpResponse {
    if matches!(*method, Method::GET | Method::HEAD) {
        empty(StatusCode::OK)
    } else {
        method_not_allowed("GET", "use GET")
    }
}

fn not_found(target: PathTarget<'_>, none: &NoEndpoint) -> HttpResponse {
    let known = match &*none.known {
        [] => String::new(),
        known => format!("; there are {}", known.join(", ")),
    };
    problem(StatusCode::NOT_FOUND, &format!("there is no {target}{known}"))
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").finish_non_exhaustive()
    }
}
