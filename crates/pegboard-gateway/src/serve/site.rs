//! [`Site`]: what is served, whatever the listener. It admits requests, routes them and hands them to the wires.

use std::{
    fmt,
    net::SocketAddr,
    pin::{Pin, pin},
    sync::{Arc, OnceLock},
    task::Poll,
    time::{Duration, SystemTime},
};

use arc_swap::{ArcSwap, ArcSwapOption};
use axum::Router;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{
    HeaderValue, Method, Request, StatusCode, Uri,
    header::{HOST, WWW_AUTHENTICATE},
    request::Parts,
};
use http_body::Body;
use pegboard::Principal;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tower_service::Service as _;

use super::{
    cors, expiry,
    halt::Halt,
    listeners::{Arrival, LocalClient},
    protected_resource::{self, RequestedUrl},
    request_head::{is_page_visit, is_too_long},
    request_id,
    routes::{Route, authorize},
    traffic::{BUSY, PathLabel, TOO_LONG, Traffic, VIEW},
};
use crate::{
    dashboard::BrowserSessions,
    door::{
        self, AuthResult, Authenticator, Caller, Door, Origin, Rejection, RevocationWatch, Scope, TcpPeer, TokenFault,
    },
    protocol::{Endpoint, RequestInfo},
    replicas::{Envelope, ForwardedHead, NotOpened, PROOF, REFUSED, Replicas},
    sign_in::SignInLinks,
    wire::{
        AccessEntry, AccessLog, AnswersCall, CountedBody, Endpoints, HttpResponse, HttpWire, LinesWire, NoEndpoint,
        PathTarget, Peer, ResponseBody, SseWire, WebSocketWire, empty, is_lines_upgrade, is_upgrade, keep_entry,
        method_not_allowed, problem,
    },
};

/// How often a token is verified again because the rules have changed meanwhile.
const MAX_VERIFICATIONS: usize = 4;
/// The limit on the time between the end of the old rules and the new ones.
const DOOR_CHANGE: Duration = Duration::from_secs(1);

/// The address of a client, an extension of its requests if there is an access log.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientAddress(pub(super) SocketAddr);

/// An extension of requests that another replica has sent here.
#[derive(Clone, Copy, Debug)]
pub(super) struct FromReplica;

/// Why a request is waited for no longer.
enum Abort {
    /// Its token is good no longer.
    Token,
    /// The time of the shutdown is over.
    Halted,
}

/// What was decided about a request by its head.
pub(super) struct Admission {
    /// The rules that decided.
    door: Arc<Door>,
    caller: Caller,
    /// The configured origin whose pages may read the response.
    origin: Option<HeaderValue>,
    arrival: Arrival,
    /// Made when a request first waits.
    watch: OnceLock<RevocationWatch>,
}

impl Admission {
    fn revocation_watch(&self) -> &RevocationWatch {
        self.watch.get_or_init(|| self.caller.revoked.watch())
    }
}

/// What a gateway serves.
pub(super) struct Site {
    pub(super) door: ArcSwap<Door>,
    /// Tells who sends a request, in place of the door's tokens.
    pub(super) authenticator: Option<Authenticator>,
    pub(super) endpoints: Arc<dyn Endpoints>,
    pub(super) http: HttpWire,
    pub(super) sse: SseWire,
    pub(super) websocket: WebSocketWire,
    pub(super) lines: LinesWire,
    pub(super) traffic: Arc<Traffic>,
    /// `None` if requests are not logged.
    pub(super) access_log: Option<Arc<dyn AccessLog>>,
    /// The requests that may be handled at once. Streams on which a client only listens do not count.
    pub(super) request_permits: Arc<Semaphore>,
    pub(super) max_in_flight: usize,
    pub(super) max_connections: usize,
    pub(super) max_sessions: usize,
    /// Serves all other paths.
    pub(super) fallback: Option<Router>,
    /// What connections are encrypted with; `None` means that they are not.
    pub(super) tls: ArcSwapOption<rustls::ServerConfig>,
    pub(super) halt: Halt,
    /// Notified when the door has other tokens.
    pub(super) tokens_changed: watch::Sender<()>,
    pub(super) sign_in_links: SignInLinks,
    pub(super) browsers: BrowserSessions,
    /// The other processes of the gateway; `None` if it has none.
    pub(super) replicas: Option<Replicas>,
}

impl Site {
    /// Replaces the door. What clients whose tokens were `revoked` have open ends.
    pub(super) fn replace_door(&self, door: Door, revoked: &[Caller]) {
        self.door.store(Arc::new(door));
        self.end_sessions_of(revoked);
        self.tokens_changed.send_replace(());
    }

    /// Ends streams on which clients only listen, and lets connections of more than one request close once their requests are answered.
    pub(super) fn begin_to_stop(&self) {
        self.traffic.set_draining();
        self.endpoints.stop();
        self.http.end_listening();
        self.sse.drain();
        self.websocket.connections.drain();
        self.lines.connections.drain();
    }

    /// How many requests are being handled.
    pub(super) fn in_flight(&self) -> usize {
        self.max_in_flight
            .saturating_sub(self.request_permits.available_permits())
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
        self.end_sessions_of(&expired);
        next
    }

    /// Revokes tokens when they expire, until this is dropped.
    pub(super) fn watch_expiry(self: &Arc<Self>) -> impl Future<Output = ()> + use<> {
        expiry::watch(Arc::downgrade(self), self.tokens_changed.subscribe())
    }

    /// Ends what outlives the requests of these callers. The rest ends by itself when it is notified.
    pub(super) fn end_sessions_of(&self, revoked: &[Caller]) {
        if revoked.is_empty() {
            return;
        }
        self.sign_in_links.end_revoked();
        self.browsers.end_revoked();
        self.http.end_revoked();
        // A client whose token has expired may come back with a new one and answer what its calls have asked.
        for caller in revoked.iter().filter(|caller| caller.revoked.is_revoked()) {
            self.endpoints.end_calls_of(caller.principal.as_ref());
        }
    }

    /// Handles a request that another replica has sent, if it proves that.
    async fn handle_of_replica<B>(&self, replicas: &Replicas, request: Request<B>) -> HttpResponse
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let Some(sealed) = self.http.read_sealed(request.into_body()).await else {
            return problem(StatusCode::BAD_REQUEST, "the request did not come whole");
        };
        let (mut response, proof) = match replicas.open(&sealed) {
            Ok(Envelope { mut request, proof }) => {
                drop(sealed);
                request.extensions_mut().insert(FromReplica);
                let request = request.map(axum::body::Body::from);
                (Box::pin(self.handle(request, Arrival::Network)).await, proof)
            }
            Err(NotOpened::Refused(why, proof)) => (refuse_of_replica(why), proof),
            Err(NotOpened::Unknown) => return not_for_clients(),
        };
        response.headers_mut().insert(PROOF, proof);
        response
    }

    /// Handles a request, and counts it.
    pub(super) async fn handle<B>(&self, request: Request<B>, arrival: Arrival) -> HttpResponse
    where
        B: Body<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<axum::BoxError>,
    {
        if arrival == Arrival::Replica {
            return match &self.replicas {
                Some(replicas) if *request.method() == Method::POST => self.handle_of_replica(replicas, request).await,
                _ => not_for_clients(),
            };
        }
        let label = PathLabel::from_path(request.uri().path());
        let (parts, body) = request.into_parts();
        let mut info = request_id::read(&parts.headers);
        info.stays_here = arrival != Arrival::Network || parts.extensions.get::<FromReplica>().is_some();
        let address = parts.extensions.get::<ClientAddress>().map(|address| address.0);
        let mut access = self.begin_access(&mut info, &parts, (arrival, address));
        let body = CountedBody::new(body, access.as_ref().map(|access| access.received().clone()));
        let mut response = {
            let handled = pin!(async {
                match self.admit(&parts, arrival).await {
                    Ok(admission) => {
                        if let Some(access) = &mut access {
                            access.set_principal(admission.caller.principal());
                        }
                        self.handle_admitted(&admission, &info, parts, body).await
                    }
                    Err(response) => *response,
                }
            });
            info.tag.during(handled).await
        };
        self.traffic.count_response(label, response.status());
        request_id::write(&info.tag, &mut response);
        if let Some(access) = access {
            keep_entry(&mut response, access);
        }
        response
    }

    /// Begins the entry of a request in the access log, if there is one.
    pub(super) fn begin_access(
        &self,
        info: &mut RequestInfo,
        parts: &Parts,
        (arrival, address): (Arrival, Option<SocketAddr>),
    ) -> Option<Box<AccessEntry>> {
        let log = self.access_log.as_ref()?;
        let peer = match (arrival, address) {
            (Arrival::Local(process), _) => Some(Peer::Process(process)),
            (Arrival::LocalServer, _) => Some(Peer::Process(0)),
            (Arrival::Network | Arrival::Replica, address) => address.map(Peer::Address),
        };
        Some(AccessEntry::begin(log, info, parts, peer))
    }

    /// Handles a message that was posted to an endpoint, and counts it.
    pub(super) async fn handle_message(
        &self,
        admission: &Admission,
        info: &RequestInfo,
        target: PathTarget<'_>,
        parts: &Parts,
        body: Bytes,
    ) -> HttpResponse {
        let asked = self.requested_url(parts.headers.get(HOST), parts.uri.path());
        let handled = pin!(async {
            let caller = &admission.caller;
            match self
                .endpoint(target, caller)
                .and_then(|endpoint| Ok((endpoint, self.enter(&Method::POST)?)))
            {
                Ok((endpoint, permit)) => {
                    let handled = self.http.handle_message(info, &endpoint, caller, head_of(parts), body);
                    hold(permit, handled.await)
                }
                Err(refusal) => *refusal,
            }
        });
        let response = self.finish(admission, asked, false, handled).await;
        self.count_response(PathLabel::from_path(parts.uri.path()), response.status());
        response
    }

    /// Refuses a posted message by its head and the length of its body as [`Site::handle_message`] would, and counts it.
    pub(super) fn refuse_message(
        &self,
        admission: &Admission,
        target: PathTarget<'_>,
        head: &Parts,
        length: usize,
    ) -> Option<HttpResponse> {
        let refused = match self.endpoint(target, &admission.caller) {
            Ok(_) => self.http.refuse_post(&head.headers, length)?,
            Err(refused) => *refused,
        };
        Some(self.conclude_refusal(admission, head, refused))
    }

    /// Completes the response to a posted message that is not handled, and counts it.
    pub(super) fn conclude_refusal(
        &self,
        admission: &Admission,
        head: &Parts,
        mut response: HttpResponse,
    ) -> HttpResponse {
        let path = head.uri.path();
        self.complete(
            admission,
            self.requested_url(head.headers.get(HOST), path),
            &mut response,
        );
        self.count_response(PathLabel::from_path(path), response.status());
        response
    }

    /// Counts a response.
    pub(super) fn count_response(&self, path: PathLabel, status: StatusCode) {
        self.traffic.count_response(path, status);
    }

    /// Whose request it is.
    pub(super) fn principal_of(admission: &Admission) -> Option<&Principal> {
        admission.caller.principal()
    }

    /// Decides about a request by its head: whether its origin is allowed, and whose it is. Also responds to requests that need no caller.
    pub(super) async fn admit(&self, parts: &Parts, arrival: Arrival) -> Result<Admission, Box<HttpResponse>> {
        if arrival == Arrival::Replica {
            return Err(Box::new(not_for_clients()));
        }
        if is_too_long(parts) {
            self.traffic.count_rejection(TOO_LONG);
            let detail = "the head of the request is longer than 64 KiB";
            return Err(Box::new(problem(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, detail)));
        }
        // Before anything is checked, so that a change is noticed that comes meanwhile.
        let door = self.door.load_full();
        let origin = match door.site.check(&parts.uri, &parts.headers) {
            Ok(origin) => origin,
            // A link in another page, or the redirect of an authorization server.
            Err(Rejection::CrossSite)
                if (self.is_sign_in_page(&parts.uri) || self.is_dashboard(parts)) && is_page_visit(parts) =>
            {
                Origin::Local
            }
            Err(Rejection::NoHost | Rejection::Host) if door::is_probe(parts) => Origin::Local,
            Err(rejection) => return Err(Box::new(self.reject(rejection))),
        };
        let origin = match origin {
            Origin::Local => None,
            Origin::Configured(origin) => Some(origin),
        };
        let admitted = match cors::preflight(&parts.method, &parts.headers).filter(|_| origin.is_some()) {
            Some(response) => Err(Box::new(response)),
            None => self.admit_origin(parts, arrival).await,
        };
        match admitted {
            Ok((caller, arrival)) => Ok(Admission {
                door,
                caller,
                origin,
                arrival,
                watch: OnceLock::new(),
            }),
            Err(mut response) => {
                if let Some(origin) = origin {
                    cors::allow(origin, &mut response);
                }
                Err(response)
            }
        }
    }

    /// Decides about a request of an allowed origin: authenticates it, unless it only asks whether the process is alive. Returns where it
    /// comes from as well, because a token can prove more than the connection.
    async fn admit_origin(&self, parts: &Parts, arrival: Arrival) -> Result<(Caller, Arrival), Box<HttpResponse>> {
        let route = route_of(parts);
        if route == Route::Live {
            return Err(Box::new(answer_liveness(&parts.method)));
        }
        let asked = self.requested_url(parts.headers.get(HOST), parts.uri.path());
        if let Some(response) = protected_resource::metadata(&self.door.load(), asked, &parts.method) {
            return Err(Box::new(response));
        }
        let arrival = match arrival {
            // A sandbox keeps a server from the token. Without one it is a process of the user like others.
            Arrival::LocalServer if self.door.load().tokens.has_owner_token(&parts.headers) => Arrival::Local(0),
            arrival => arrival,
        };
        if self.is_dashboard(parts) {
            return Ok((self.admit_browser(arrival, parts).await, arrival));
        }
        let caller = match self.authenticate(arrival, parts).await {
            Ok(caller) => caller,
            Err(Rejection::NotOwner) if arrival == Arrival::LocalServer => {
                return Err(Box::new(self.reject_with_challenge(Rejection::NotOwner, asked)));
            }
            Err(_) if route == Route::Ready || self.is_sign_in_page(&parts.uri) => Caller::without_rights(),
            Err(rejection) => return Err(Box::new(self.reject_with_challenge(rejection, asked))),
        };
        if matches!(route, Route::Mcp(PathTarget::Approved(_))) {
            self.authorize_approved(arrival, &caller)?;
        }
        Ok((caller, arrival))
    }

    /// Whether requests with this very head are still admitted in the same way, so that they need not be looked at again.
    pub(super) fn still_admits(&self, admission: &Admission) -> bool {
        let door = self.door.load();
        Arc::ptr_eq(&door, &admission.door)
            // A program decides about each request.
            && self.authenticator.is_none()
            // An access token may have to be verified again at any time.
            && !admission.caller.has_access_token
            && !door.tokens.may_expire()
            && !admission.caller.revoked.has_ended()
    }

    /// Handles a request that was admitted.
    async fn handle_admitted<B>(&self, admission: &Admission, info: &RequestInfo, parts: Parts, body: B) -> HttpResponse
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        // Copies cost less than a borrow of the parts, which a WebSocket handshake needs.
        let (uri, host) = (parts.uri.clone(), parts.headers.get(HOST).cloned());
        let asked = self.requested_url(host.as_ref(), uri.path());
        let only_reads = matches!(parts.method, Method::GET | Method::HEAD);
        let handled = pin!(self.dispatch(admission, info, &uri, parts, body));
        self.finish(admission, asked, only_reads, handled).await
    }

    /// Waits for the response to a request that was admitted, or for what ends it before. The future is borrowed, because one that is passed on
    /// by value takes its room twice.
    async fn finish(
        &self,
        admission: &Admission,
        asked: RequestedUrl<'_>,
        only_reads: bool,
        mut handled: Pin<&mut impl Future<Output = HttpResponse>>,
    ) -> HttpResponse {
        let revoked = &admission.caller.revoked;
        let ended = match revoked.is_revoked() {
            // While the body came. Nothing of the request has been polled.
            true => Err(Abort::Token),
            false => {
                let ended = tokio::select! {
                    biased;
                    response = &mut handled => Ok(response),
                    ended = self.wait_for_abort(admission, only_reads) => Err(ended),
                };
                // It may have happened after the request was polled, and a call that was begun says itself how it ended.
                ended.or_else(|ended| handled.as_mut().now_or_never().ok_or(ended))
            }
        };
        let mut response = match ended {
            Ok(mut response) => {
                let answers_call = response.extensions_mut().remove::<AnswersCall>().is_some();
                response.body_mut().end_with(revoked, answers_call);
                response
            }
            // Nothing of these requests has run: their bodies have not come, or they call no tool.
            Err(Abort::Token) => self.reject_with_challenge(Rejection::Token, asked),
            Err(Abort::Halted) => stopping(),
        };
        self.complete(admission, asked, &mut response);
        response
    }

    /// Adds the headers that depend on the caller and on where the request comes from.
    fn complete(&self, admission: &Admission, asked: RequestedUrl<'_>, response: &mut HttpResponse) {
        if admission.caller.has_access_token
            && response.status() == StatusCode::FORBIDDEN
            && let Some(challenge) = protected_resource::insufficient_scope_challenge(&self.door.load(), asked)
        {
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        if let Some(origin) = &admission.origin {
            cors::allow(origin.clone(), response);
        }
    }

    /// The caller of a request.
    pub(super) async fn authenticate(&self, arrival: Arrival, parts: &Parts) -> Result<Caller, Rejection> {
        if let Some(authenticator) = &self.authenticator {
            return authenticator.authenticate(parts).await;
        }
        match arrival {
            // A process of the same user, and none of a server.
            Arrival::Local(_) => Ok(self.door.load().tokens.authenticate_local(&parts.headers)),
            Arrival::LocalServer | Arrival::Replica => Err(Rejection::NotOwner),
            Arrival::Network => self.authenticate_by_token(parts).await,
        }
    }

    /// Checks that a caller may use the endpoint whose calls need no approval any more. More than the user's id must open it: servers have that
    /// too.
    fn authorize_approved(&self, arrival: Arrival, caller: &Caller) -> Result<(), Box<HttpResponse>> {
        if arrival == Arrival::Network {
            let detail = "this path is served at the local socket only";
            return Err(Box::new(problem(StatusCode::NOT_FOUND, detail)));
        }
        if !caller.scopes.contains(Scope::Admin) {
            return Err(Box::new(self.reject(Rejection::NotOwner)));
        }
        Ok(())
    }

    /// Completes when a request is waited for no longer. A token that expires only ends requests that read.
    async fn wait_for_abort(&self, admission: &Admission, only_reads: bool) -> Abort {
        let mut expired = pin!(admission.caller.revoked.wait_ended());
        std::future::poll_fn(|cx| {
            let is_over = match only_reads {
                true => expired.as_mut().poll(cx).is_ready(),
                false => admission.revocation_watch().poll_revoked(cx).is_ready(),
            };
            match is_over {
                true => Poll::Ready(Abort::Token),
                // The connection polls all of this when the time of the shutdown is over.
                false if self.halt.is_set() => Poll::Ready(Abort::Halted),
                false => Poll::Pending,
            }
        })
        .await
    }

    /// The caller that a request's token names.
    pub(super) async fn authenticate_by_token(&self, parts: &Parts) -> Result<Caller, Rejection> {
        let path = parts.uri.path();
        // Apart, because a guard must not be held while a token is verified.
        let result = self.door.load().authenticate(&parts.headers, path);
        match result {
            AuthResult::Authenticated(caller) => Ok(caller),
            AuthResult::Rejected(rejection) => Err(rejection),
            AuthResult::NeedsOwnerProcess(owner, caller) => match parts.extensions.get::<TcpPeer>() {
                Some(peer) if Box::pin(owner.owns(peer)).await => Ok(caller),
                _ => Err(Rejection::NotOwner),
            },
            // Boxed, so that requests with known tokens do not carry its size.
            AuthResult::NeedsVerification(_) => Box::pin(self.verify_access_token(parts)).await,
        }
    }

    /// The caller of a request whose token has to be verified, by the rules that are in force when that is done.
    async fn verify_access_token(&self, parts: &Parts) -> Result<Caller, Rejection> {
        let path = parts.uri.path();
        for _ in 0..MAX_VERIFICATIONS {
            // Before the door is looked at, so that no change of it is missed.
            let mut changed = self.tokens_changed.subscribe();
            let result = self.door.load().authenticate(&parts.headers, path);
            let oauth = match result {
                AuthResult::Authenticated(caller) => return Ok(caller),
                AuthResult::Rejected(rejection) => return Err(rejection),
                AuthResult::NeedsOwnerProcess(..) => return Err(Rejection::NoToken),
                AuthResult::NeedsVerification(oauth) => oauth,
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

    fn requested_url<'a>(&self, host: Option<&'a HeaderValue>, path: &'a str) -> RequestedUrl<'a> {
        let scheme = if self.tls.load().is_some() { "https" } else { "http" };
        RequestedUrl { scheme, host, path }
    }

    /// Refuses a request for its token.
    fn reject_with_challenge(&self, rejection: Rejection, asked: RequestedUrl<'_>) -> HttpResponse {
        let mut response = self.reject(rejection);
        if let Some(challenge) = protected_resource::challenge(&self.door.load(), asked, rejection) {
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }

    /// Handles a request of a known caller.
    async fn dispatch<B>(
        &self,
        admission: &Admission,
        info: &RequestInfo,
        uri: &Uri,
        mut parts: Parts,
        body: B,
    ) -> HttpResponse
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let (caller, arrival) = (admission.caller.clone(), admission.arrival);
        match route(uri, &parts) {
            Route::Mcp(target) => {
                let endpoint = match self.endpoint(target, &caller) {
                    Ok(endpoint) => endpoint,
                    Err(refusal) => return *refusal,
                };
                if arrival.process().is_some() && is_lines_upgrade(&parts.headers) {
                    let open = self.traffic.count_connection(arrival.process());
                    return self.lines.upgrade(&mut parts, endpoint, caller, open);
                }
                if is_upgrade(&parts.headers) {
                    return self.websocket.upgrade(&mut parts, endpoint, caller).await;
                }
                let permit = match self.enter(&parts.method) {
                    Ok(permit) => permit,
                    Err(refusal) => return *refusal,
                };
                let handled = self.http.handle(info, &endpoint, &caller, head_of(&parts), body);
                hold(permit, handled.await)
            }
            Route::Sse(target) => match self.endpoint(target, &caller) {
                Ok(endpoint) => self.sse.open(&parts, uri, endpoint, caller),
                Err(refusal) => *refusal,
            },
            Route::Messages(target) => match self.endpoint(target, &caller) {
                Ok(endpoint) => match self.enter(&parts.method) {
                    Ok(permit) => hold(permit, self.sse.receive(&parts, &endpoint, &caller, body).await),
                    Err(refusal) => *refusal,
                },
                Err(refusal) => *refusal,
            },
            Route::Live | Route::Ready | Route::SignIn | Route::Other => {
                if arrival.process().is_some() {
                    parts.extensions.insert(LocalClient);
                }
                match self.enter(&parts.method) {
                    Ok(permit) => hold(permit, self.call_fallback(parts, body, caller).await),
                    Err(refusal) => *refusal,
                }
            }
        }
    }

    /// Counts a request as one in flight, until what is returned is dropped. Those that only read do not count.
    fn enter(&self, method: &Method) -> Result<Option<OwnedSemaphorePermit>, Box<HttpResponse>> {
        if *method != Method::POST {
            return Ok(None);
        }
        self.request_permits.clone().try_acquire_owned().map(Some).map_err(|_| {
            self.traffic.count_rejection(BUSY);
            let detail = "too many requests are in flight; try again later";
            Box::new(problem(StatusCode::SERVICE_UNAVAILABLE, detail))
        })
    }

    fn endpoint(&self, target: PathTarget<'_>, caller: &Caller) -> Result<Arc<Endpoint>, Box<HttpResponse>> {
        let Some(target) = authorize(target, caller) else {
            self.traffic.count_rejection(VIEW);
            let detail = "the token is for one view only: use /mcp";
            return Err(Box::new(problem(StatusCode::FORBIDDEN, detail)));
        };
        let found = self.endpoints.endpoint(target, caller);
        found.map_err(|none| Box::new(not_found(target, &none)))
    }

    fn reject(&self, rejection: Rejection) -> HttpResponse {
        self.traffic.count_rejection(rejection.label());
        let mut response = problem(rejection.status(), &rejection.to_string());
        if let Some(challenge) = rejection.challenge() {
            let challenge = HeaderValue::from_static(challenge);
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response
    }

    async fn call_fallback<B>(&self, mut parts: Parts, body: B, caller: Caller) -> HttpResponse
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let Some(fallback) = &self.fallback else {
            return problem(
                StatusCode::NOT_FOUND,
                "there is nothing at this path; MCP is served at /mcp",
            );
        };
        parts.extensions.insert(caller);
        let request = Request::from_parts(parts, axum::body::Body::new(body));
        match fallback.clone().call(request).await {
            Ok(response) => response.map(ResponseBody::other),
            Err(never) => match never {},
        }
    }
}

/// The response to a request of which nothing has run, and for which there is no time any more.
pub(super) fn stopping() -> HttpResponse {
    problem(StatusCode::SERVICE_UNAVAILABLE, "the server stops; try again later")
}

/// The response to what is no request of a replica.
fn not_for_clients() -> HttpResponse {
    let detail = "this address is for the replicas of the gateway, which share its state_key";
    problem(StatusCode::NOT_FOUND, detail)
}

/// The response to a request of a replica that is not taken.
fn refuse_of_replica(why: HeaderValue) -> HttpResponse {
    let mut response = empty(StatusCode::CONFLICT);
    response.headers_mut().insert(REFUSED, why);
    response
}

/// The head of a request as another replica would get it.
fn head_of(parts: &Parts) -> ForwardedHead<'_> {
    ForwardedHead {
        method: &parts.method,
        uri: &parts.uri,
        headers: &parts.headers,
    }
}

/// The response, which holds the place of its request among those in flight until it was sent.
fn hold(permit: Option<OwnedSemaphorePermit>, mut response: HttpResponse) -> HttpResponse {
    response.body_mut().held_mut().in_flight = permit;
    response
}

/// What the path of a request stands for.
fn route_of(parts: &Parts) -> Route<'_> {
    route(&parts.uri, parts)
}

fn route<'a>(uri: &'a Uri, parts: &Parts) -> Route<'a> {
    match Route::parse(uri.path()) {
        // Clients of WebSocket are often given an address without a path.
        Route::Other if uri.path() == "/" && is_upgrade(&parts.headers) => Route::Mcp(PathTarget::Board),
        route => route,
    }
}

fn answer_liveness(method: &Method) -> HttpResponse {
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
