//! [`Gateway`]: serves endpoints, as a router within another server or on listeners of its own.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
    time::Duration,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use axum::Router;
use futures_util::future::BoxFuture;
use http::{Request, request::Parts};
use pegboard::{Principal, View, config::ServeOAuth, credential::CallerTokens};
use pegboard_base::sync::Mutex;
use serde_json::Value;
use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
};
use tokio_util::task::AbortOnDropHandle;
use url::Url;

use super::{
    listener::{self, ListenLimits},
    listeners::{Arrival, Listeners},
    monitor::Monitor,
    site::Site,
    tls::Tls,
    traffic::TrafficCounts,
};
use crate::{
    dashboard::BrowserSessions,
    door::{AuthError, Authenticator, Caller, Door, Owner, ResourceServer, SiteCheck, Token, Tokens},
    endpoints::BoardOptions,
    protocol::{Endpoint, Limits as EndpointLimits, Sealer, Service},
    replicas::Replicas,
    sign_in::{PageAddress, SignInLinks},
    wire::{AccessLog, BodyLimit, Endpoints, HttpResponse, HttpWire, Limits, LinesWire, SseWire, WebSocketWire},
};

/// Serves MCP over streamable HTTP in both eras, over HTTP+SSE and over WebSocket. Clones share everything.
///
/// Requests are admitted by `Host`, `Origin` and, if there are tokens, by token. Headers of clients never reach a server.
#[derive(Clone, Debug)]
pub struct Gateway {
    site: Arc<Site>,
    listen: ListenLimits,
    settings: Arc<Mutex<DoorSettings>>,
}

/// What the door is built from.
#[derive(Clone, Debug, Default)]
struct DoorSettings {
    bound: Vec<SocketAddr>,
    hosts: Vec<String>,
    origins: Vec<String>,
    tokens: Tokens,
    oauth: Option<Arc<ResourceServer>>,
    public_url: Option<String>,
    /// Where the tokens of callers are kept for servers that exchange them.
    caller_tokens: Option<CallerTokens>,
}

/// Configures a [`Gateway`].
#[must_use]
pub struct GatewayBuilder {
    endpoints: Arc<dyn Endpoints>,
    settings: DoorSettings,
    tokens: Vec<Token>,
    requires_token: bool,
    owner: Option<Owner>,
    oauth: Option<ServeOAuth>,
    authenticator: Option<Authenticator>,
    options: BoardOptions,
    wire: Limits,
    in_flight: usize,
    listen: ListenLimits,
    fallback: Option<Router>,
    tls: Option<Tls>,
    monitor: Monitor,
    access_log: Option<Arc<dyn AccessLog>>,
    sign_in_links: SignInLinks,
    browsers: BrowserSessions,
    replicas: Option<Replicas>,
}

/// Why a gateway cannot serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A listener accepts connections from other machines, and there are no tokens.
    #[error("the gateway has no tokens, so it cannot listen on {0}: add a token, or listen on 127.0.0.1")]
    NeedsToken(SocketAddr),
    /// The address of a listener is not known.
    #[error("cannot tell the address of a listener")]
    Address(#[source] io::Error),
}

impl Gateway {
    /// Configures a gateway for one service, at the paths of a board: `/mcp` and `/sse`.
    pub fn for_service(service: Arc<dyn Service>) -> io::Result<GatewayBuilder> {
        let sealer = Sealer::random()?;
        let endpoint = Endpoint::new("/mcp", service, Arc::new(sealer), EndpointLimits::default());
        Ok(GatewayBuilder::new(Arc::new(endpoint)))
    }

    /// Ends what a principal that the program [admitted](GatewayBuilder::authenticate) has open: calls, sessions, event streams, WebSockets and its
    /// view. For one who has signed out, or whose rights have changed. The next request is admitted as the program says then.
    pub fn end(&self, principal: &Principal) {
        let ended = self
            .site
            .authenticator
            .as_ref()
            .and_then(|authenticator| authenticator.end(principal));
        self.site.end_sessions_of(ended.as_slice());
    }

    /// A router for another server. It serves `/mcp`, `/sse`, `/livez`, for a board without a [view](GatewayBuilder::view) of the program also the paths
    /// of single servers and views of the config, and answers 404 on every other path. As one route it is
    /// `.route("/mcp", axum::routing::any_service(gateway.router()))`, which leaves other paths to the program.
    ///
    /// Everyone who reaches it is admitted, unless there are [tokens](GatewayBuilder::token) or the program
    /// [authenticates](GatewayBuilder::authenticate): unlike `pegboard serve`, it does not look whose process a client is. That server must limit
    /// connections and slow clients. Its names beyond loopback must be configured as [hosts](GatewayBuilder::hosts). Before it waits for its
    /// connections to end, call [`Gateway::stop`].
    pub fn router(&self) -> Router {
        Router::new().fallback_service(SiteService {
            site: self.site.clone(),
            expiry: Arc::default(),
        })
    }

    /// Ends what another server's graceful shutdown would wait for: event streams and subscriptions on which clients only listen, and WebSockets and
    /// streams of HTTP+SSE once their requests are answered. Call it when that server begins to stop; [`Gateway::serve`] does this itself.
    pub fn stop(&self) {
        self.site.begin_to_stop();
    }

    /// Serves until `shutdown` completes; then answers the requests in flight and returns.
    ///
    /// Fails if a listener can be reached from other machines and clients need no token.
    pub async fn serve(
        &self,
        listeners: impl Into<Listeners>,
        shutdown: impl Future<Output = ()>,
    ) -> Result<(), ServeError> {
        let listeners = listeners.into();
        let addresses: Result<Vec<_>, _> = listeners.tcp.iter().map(TcpListener::local_addr).collect();
        let addresses = addresses.map_err(ServeError::Address)?;
        let mut refused = None;
        self.change(|settings| {
            let is_reachable = |address: &&SocketAddr| !address.ip().to_canonical().is_loopback();
            refused = addresses
                .iter()
                .find(is_reachable)
                .filter(|_| !settings.tokens.are_required());
            if refused.is_none() {
                settings.bound.extend(&addresses);
            }
            Vec::new()
        });
        if let Some(address) = refused {
            return Err(ServeError::NeedsToken(*address));
        }
        let served = listener::serve(listeners, &self.site, self.listen, shutdown);
        tokio::select! {
            biased;
            () = served => {}
            () = self.site.watch_expiry() => {}
            () = stay_registered(self.site.replicas.as_ref()) => {}
        }
        Ok(())
    }

    /// Replaces the tokens. Requests with a token that is gone are refused from now on, and what clients have open with it ends: requests,
    /// streams, WebSockets and sessions. So it is for a token with another name or view. A call in flight is cancelled, and its client is told
    /// whether it may have run.
    ///
    /// Returns `false`, and changes nothing, if requests need a token now and would need none then: a gateway does not become an open one
    /// while it serves.
    pub fn set_tokens(&self, tokens: Vec<Token>, required: bool) -> bool {
        let mut tokens = Tokens::new(tokens, required);
        let mut is_safe = true;
        self.change(|settings| {
            is_safe = tokens.are_required() || !settings.tokens.are_required();
            if is_safe {
                let revoked = tokens.inherit_from(&settings.tokens);
                settings.tokens = tokens;
                return revoked;
            }
            Vec::new()
        });
        is_safe
    }

    /// Replaces the settings for access tokens, and the URL under which clients reach the gateway. What clients have open stays open if the
    /// new rules give them the same rights, and ends otherwise. With `None`, no access token is accepted any more; requests still need a
    /// token if they did before.
    pub fn set_oauth(&self, oauth: Option<&ServeOAuth>, public_url: Option<&str>) {
        self.change(|settings| {
            settings.public_url = public_url.map(str::to_owned);
            settings.set_oauth(oauth)
        });
    }

    /// Replaces the configured names of this server, and the web origins that may use it.
    pub fn set_sites(&self, hosts: Vec<String>, origins: Vec<String>) {
        self.change(|settings| {
            (settings.hosts, settings.origins) = (hosts, origins);
            Vec::new()
        });
    }

    /// Replaces the certificate. Connections that are open keep the one that they were opened with.
    ///
    /// Returns `false`, and changes nothing, if the gateway was built without one: clients know whether it speaks HTTPS.
    pub fn set_tls(&self, tls: &Tls) -> bool {
        let speaks_tls = self.site.tls.load().is_some();
        if speaks_tls {
            self.site.tls.store(Some(tls.config()));
        }
        speaks_tls
    }

    /// The number of open legacy sessions.
    pub fn open_sessions(&self) -> usize {
        self.site.http.open_sessions()
    }

    /// How many connections are open, and how many there were.
    pub fn traffic(&self) -> TrafficCounts {
        let mut counts = self.site.traffic.counts();
        counts.open += self.site.websocket.connections.count();
        counts
    }

    /// Changes what the door is built from. `change` returns the callers whose tokens it has revoked.
    fn change(&self, change: impl FnOnce(&mut DoorSettings) -> Vec<Caller>) {
        let mut settings = self.settings.lock();
        let revoked = change(&mut settings);
        self.site.replace_door(settings.door(), &revoked);
        let speaks_tls = self.site.tls.load().is_some();
        self.site.sign_in_links.set_address(settings.page_address(speaks_tls));
        self.site.browsers.set_secure(settings.is_secure(speaks_tls));
    }
}

/// Says to the other replicas that this one is there, for ever.
async fn stay_registered(replicas: Option<&Replicas>) {
    if let Some(replicas) = replicas {
        replicas.keep_registered().await;
    }
    std::future::pending().await
}

impl DoorSettings {
    fn door(&self) -> Door {
        let url = self.public_url.as_deref().and_then(|url| Url::parse(url).ok());
        let public = url.and_then(|url| url.host_str().map(str::to_owned));
        let hosts: Vec<String> = self.hosts.iter().cloned().chain(public).collect();
        Door {
            site: SiteCheck::new(self.bound.iter().map(SocketAddr::ip).collect(), &hosts, &self.origins),
            tokens: self.tokens.clone(),
            oauth: self.oauth.clone(),
            public_url: self.public_url.as_deref().map(Arc::from),
        }
    }

    /// Whether browsers reach the gateway over TLS.
    fn is_secure(&self, speaks_tls: bool) -> bool {
        match &self.public_url {
            Some(url) => url.starts_with("https:"),
            None => speaks_tls,
        }
    }

    /// Where browsers reach the sign-in pages.
    fn page_address(&self, speaks_tls: bool) -> PageAddress {
        PageAddress::choose(self.public_url.as_deref(), &self.bound, speaks_tls)
    }

    /// Sets whose access tokens are accepted. Returns the callers that are revoked.
    fn set_oauth(&mut self, oauth: Option<&ServeOAuth>) -> Vec<Caller> {
        let public_url = self.public_url.as_deref();
        let before = self.oauth.take();
        let Some(oauth) = oauth else {
            return before.map_or_else(Vec::new, |before| before.end());
        };
        if let Some(same) = before.as_ref().filter(|before| before.is_of(oauth, public_url)) {
            self.oauth = Some(same.clone());
            return Vec::new();
        }
        let mut new = ResourceServer::new(oauth, public_url, self.caller_tokens.clone());
        let mut revoked = before.map_or_else(Vec::new, |before| new.inherit_from(&before));
        revoked.extend(self.tokens.require());
        self.oauth = Some(Arc::new(new));
        revoked
    }
}

impl GatewayBuilder {
    pub(crate) fn new(endpoints: Arc<dyn Endpoints>) -> Self {
        Self {
            endpoints,
            settings: DoorSettings::default(),
            tokens: Vec::new(),
            requires_token: false,
            owner: None,
            oauth: None,
            authenticator: None,
            options: BoardOptions::default(),
            wire: Limits {
                body: 4 * 1024 * 1024,
                sessions: 1024,
                session_idle: Duration::from_secs(30 * 60),
                linger: Duration::from_secs(60),
            },
            in_flight: 4096,
            listen: ListenLimits {
                connections: 12_000,
                drain: Duration::from_secs(5),
            },
            fallback: None,
            tls: None,
            monitor: Monitor::default(),
            access_log: None,
            sign_in_links: SignInLinks::default(),
            browsers: BrowserSessions::default(),
            replicas: None,
        }
    }

    /// Adds names that clients may use in `Host`, each with or without a port. Loopback names and the addresses of the listeners are
    /// always accepted.
    pub fn hosts(mut self, hosts: impl IntoIterator<Item = String>) -> Self {
        self.settings.hosts.extend(hosts);
        self
    }

    /// Adds web origins whose pages may use the gateway, such as `https://app.example.com`.
    pub fn origins(mut self, origins: impl IntoIterator<Item = String>) -> Self {
        self.settings.origins.extend(origins);
        self
    }

    /// Adds a token. As soon as there is one, every request needs one.
    pub fn token(mut self, token: Token) -> Self {
        self.tokens.push(token);
        self
    }

    /// Serves only one user of this machine while no tokens are configured, and changes nothing without that user's token.
    ///
    /// Without an owner, a gateway on a loopback address that has no tokens serves every user of the machine.
    pub fn owner(mut self, owner: Owner) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Demands a token even if none is known, so that a config with unusable tokens does not open the gateway.
    pub fn require_token(mut self) -> Self {
        self.requires_token = true;
        self
    }

    /// Accepts access tokens of an authorization server besides the gateway's own tokens. Every request needs a token then. The metadata of the
    /// protected resource (RFC 9728) is served without one.
    pub fn oauth(mut self, oauth: ServeOAuth) -> Self {
        self.oauth = Some(oauth);
        self
    }

    /// Tells who sends each request, in place of tokens: by a header, a cookie, a client certificate that a proxy names, or what a layer of the program
    /// has put into the extensions of the request (with [`Gateway::router`]). Callers may use tools, and not change what runs.
    ///
    /// The principal owns what lasts longer than a request: sessions, caches, idempotency keys, handles and connections to remote servers.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> std::io::Result<()> {
    /// use pegboard::{Config, Pegboard, Principal};
    /// use pegboard_gateway::{AuthError, Gateway};
    ///
    /// let gateway = Gateway::for_board(Pegboard::open(Config::new()))?
    ///     .authenticate(|head| {
    ///         Box::pin(async move {
    ///             let session = head.headers.get("x-session").ok_or(AuthError::Unauthenticated)?;
    ///             // Looked up in a database.
    ///             match session.as_bytes() {
    ///                 b"s3ss10n" => Ok(Principal::new("alice")),
    ///                 _ => Err(AuthError::Unauthenticated),
    ///             }
    ///         })
    ///     })
    ///     .build();
    /// # Ok(())
    /// # }
    /// ```
    pub fn authenticate<F>(mut self, authenticate: F) -> Self
    where
        F: for<'a> Fn(&'a Parts) -> BoxFuture<'a, Result<Principal, AuthError>> + Send + Sync + 'static,
    {
        self.authenticator = Some(Authenticator::new(authenticate));
        self
    }

    /// Sets what each caller sees of the board, with the hooks, tools, budgets and [credentials](View::credentials) of the program. The gateway sets
    /// the view's name, host and principal, and asks the client for approvals unless the view or the board has an approver. The function runs when a
    /// client opens a session, and for clients without sessions when their principal comes first and after ten minutes without a request.
    ///
    /// Clients then have `/mcp` only: no paths of single servers and no views of the config, which would show more. For a gateway of a
    /// [service](Gateway::for_service), which has no board, this has no meaning.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> std::io::Result<()> {
    /// use std::sync::Arc;
    /// use pegboard::{Config, Credential, Credentials, Pegboard, Selection, View, credential::credentials};
    /// use pegboard_gateway::Gateway;
    ///
    /// // Asked for the credential of each principal at each server.
    /// let vault: Arc<dyn Credentials> = Arc::new(credentials(|request| {
    ///     Box::pin(async move {
    ///         let token = format!("token of {:?} for {}", request.principal, request.server);
    ///         Ok(Credential::bearer(token))
    ///     })
    /// }));
    /// let gateway = Gateway::for_board(Pegboard::open(Config::new()))?
    ///     .view(move |caller| {
    ///         let view = View::new().credentials(vault.clone());
    ///         match caller.principal().is_some_and(|principal| principal.as_str() == "alice") {
    ///             true => view,
    ///             false => view.selection(Selection::new().tools("github", ["get_*", "list_*"])),
    ///         }
    ///     })
    ///     .build();
    /// # Ok(())
    /// # }
    /// ```
    pub fn view(self, view: impl Fn(&Caller) -> View + Send + Sync + 'static) -> Self {
        self.options.set_view(view);
        self
    }

    /// Sets how the gateway of a board introduces itself to clients, in place of Pegboard's name and version.
    pub fn server_info(self, name: impl Into<String>, version: impl Into<String>) -> Self {
        let info = [("name", name.into()), ("version", version.into())];
        let info = info
            .into_iter()
            .map(|(key, value)| (key.to_owned(), Value::String(value)));
        self.options.set_server_info(info.collect());
        self
    }

    pub(super) fn with_options(mut self, options: BoardOptions) -> Self {
        self.options = options;
        self
    }

    /// Sets the URL under which clients reach the gateway, if a proxy stands before it. Its host is accepted in `Host`.
    pub fn public_url(mut self, url: impl Into<String>) -> Self {
        let mut url = url.into();
        url.truncate(url.trim_end_matches('/').len());
        self.settings.public_url = Some(url);
        self
    }

    /// Keeps the access tokens of clients for the servers of a board that exchange them (RFC 8693), if there are any. The others are forgotten
    /// after they were verified.
    pub(super) fn caller_tokens(mut self, tokens: CallerTokens) -> Self {
        self.settings.caller_tokens = Some(tokens);
        self
    }

    /// Serves together with other processes, which find the sessions and questions of each other's clients.
    pub fn replicas(mut self, replicas: Replicas) -> Self {
        self.replicas = Some(replicas);
        self
    }

    /// Sets the limit on open connections; further ones wait. 12,000 by default.
    pub fn max_connections(mut self, max: usize) -> Self {
        self.listen.connections = max;
        self
    }

    /// Sets the limit on requests in flight; further ones are refused with 503. 4,096 by default.
    pub fn max_in_flight(mut self, max: usize) -> Self {
        self.in_flight = max;
        self
    }

    /// Sets the limit on the body of a request and on a WebSocket message. 4 MiB by default.
    pub fn max_body(mut self, max: usize) -> Self {
        self.wire.body = max;
        self
    }

    /// Sets the limit on open sessions, and the same one on HTTP+SSE streams and on WebSockets. 1,024 by default. Principals share sessions: one
    /// with fewer than another may open more, which ends one of the other's. Of streams and WebSockets, each principal may open half.
    pub fn max_sessions(mut self, max: usize) -> Self {
        self.wire.sessions = max;
        self
    }

    /// Sets how long a session without a request or a stream is kept. 30 minutes by default.
    pub fn session_idle(mut self, time: Duration) -> Self {
        self.wire.session_idle = time;
        self
    }

    /// Sets how long a call of a legacy client goes on after its event stream broke, and how long its response is kept for a client that comes
    /// back. 60 seconds by default. Later the client is told that the call may have run.
    pub fn resume_time(mut self, time: Duration) -> Self {
        self.wire.linger = time;
        self
    }

    /// Sets how long requests in flight may take to end at shutdown. 5 s by default.
    pub fn drain_time(mut self, time: Duration) -> Self {
        self.listen.drain = time;
        self
    }

    /// Speaks HTTPS with this certificate on every listener of [`Gateway::serve`].
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Serves all paths that are not the gateway's own. The same checks stand before it, and every request carries its [`Caller`] as an
    /// extension. Scopes are up to the router.
    pub fn fallback(mut self, router: Router) -> Self {
        self.fallback = Some(router);
        self
    }

    /// Tells each request of HTTP to `log` after its response. Without one, requests are not looked at for that.
    pub fn access_log(mut self, log: Arc<dyn AccessLog>) -> Self {
        self.access_log = Some(log);
        self
    }

    /// What the gateway will count.
    pub fn monitor(&self) -> Monitor {
        self.monitor.clone()
    }

    /// The links to the sign-in pages, for the router that serves them.
    pub fn sign_in_links(&self) -> SignInLinks {
        self.sign_in_links.clone()
    }

    /// The sessions of the browsers that use the dashboard, for the router that serves it.
    pub fn browser_sessions(&self) -> BrowserSessions {
        self.browsers.clone()
    }

    pub(super) fn with_sign_in_links(mut self, links: SignInLinks) -> Self {
        self.sign_in_links = links;
        self
    }

    /// Builds the gateway.
    pub fn build(self) -> Gateway {
        let mut settings = self.settings;
        let requires_token = self.requires_token || self.oauth.is_some() || self.authenticator.is_some();
        settings.tokens = Tokens::new(self.tokens, requires_token);
        settings.tokens.set_owner(self.owner);
        settings.set_oauth(self.oauth.as_ref());
        let bodies = BodyLimit::new(self.wire.body);
        let site = Site {
            door: ArcSwap::from_pointee(settings.door()),
            authenticator: self.authenticator,
            endpoints: self.endpoints,
            http: HttpWire::new(self.wire, bodies.clone(), self.replicas.clone()),
            sse: SseWire::new(self.wire.sessions, bodies.clone()),
            websocket: WebSocketWire::new(self.wire.sessions, self.wire.body, bodies.clone()),
            lines: LinesWire::new(self.wire.sessions, bodies),
            traffic: self.monitor.traffic.clone(),
            access_log: self.access_log,
            request_permits: Arc::new(Semaphore::new(self.in_flight)),
            max_in_flight: self.in_flight,
            max_connections: self.listen.connections,
            max_sessions: self.wire.sessions,
            fallback: self.fallback,
            tls: ArcSwapOption::new(self.tls.as_ref().map(Tls::config)),
            halt: self.monitor.halt.clone(),
            tokens_changed: watch::Sender::new(()),
            sign_in_links: self.sign_in_links,
            browsers: self.browsers,
            replicas: self.replicas,
        };
        let address = settings.page_address(self.tls.is_some());
        site.sign_in_links.set_address(address);
        site.browsers.set_secure(settings.is_secure(self.tls.is_some()));
        let site = Arc::new(site);
        let weak = Arc::downgrade(&site);
        site.browsers.authenticate_with(move |token| {
            let site = weak.upgrade();
            Box::pin(async move {
                let site = site.ok_or_else(|| "the gateway has stopped".to_owned())?;
                site.authenticate_typed(&token).await
            })
        });
        // A builder builds one gateway.
        let _ = self.monitor.site.set(Arc::downgrade(&site));
        Gateway {
            site,
            listen: self.listen,
            settings: Arc::new(Mutex::new(settings)),
        }
    }
}

impl std::fmt::Debug for GatewayBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayBuilder").finish_non_exhaustive()
    }
}

/// The gateway as a service for axum.
#[derive(Clone, Debug)]
struct SiteService {
    site: Arc<Site>,
    /// Watches the tokens, from the first request on: only then a runtime is sure to be there.
    expiry: Arc<OnceLock<AbortOnDropHandle<()>>>,
}

impl tower_service::Service<Request<axum::body::Body>> for SiteService {
    type Response = HttpResponse;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<HttpResponse, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<axum::body::Body>) -> Self::Future {
        self.expiry
            .get_or_init(|| AbortOnDropHandle::new(tokio::spawn(self.site.watch_expiry())));
        let site = self.site.clone();
        Box::pin(async move { Ok(site.handle(request, Arrival::Network).await) })
    }
}
