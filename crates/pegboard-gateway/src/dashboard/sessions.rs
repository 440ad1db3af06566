//! [`BrowserSessions`]: who has signed in to the dashboard.

use std::{
    fmt,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue};
use pegboard::Secret;
use pegboard_base::sync::Mutex;
use tokio::time::Instant;

use super::{
    cookie,
    session::{BrowserSession, NoSession},
    tables::{LINK_TIME, Tables},
};
use crate::door::Caller;

/// The sessions of the browsers in which people use the dashboard of a gateway. Clones share them.
///
/// A browser signs in with a token, or follows a one-time link that a command of the user has got at the local socket. From then on a cookie
/// identifies it: 256 random bits, of which only the digest is kept. It counts for the paths of the dashboard only, never for the API or MCP.
#[derive(Clone, Debug, Default)]
pub struct BrowserSessions(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    tables: Mutex<Tables>,
    /// Set once a router serves the pages.
    served: OnceLock<()>,
    /// Whether browsers reach the gateway over TLS.
    is_secure: AtomicBool,
    authenticate: OnceLock<Authenticate>,
}

/// Tells whose a token is.
struct Authenticate(Box<AuthenticateFn>);

type AuthenticateFn = dyn Fn(String) -> BoxFuture<'static, Result<Caller, String>> + Send + Sync;

impl fmt::Debug for Authenticate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authenticate(…)")
    }
}

impl BrowserSessions {
    /// Says that the pages are served: browsers may then open them without a token, and are asked for one there.
    pub fn serve(&self) {
        let _ = self.0.served.set(());
    }

    pub(crate) fn is_served(&self) -> bool {
        self.0.served.get().is_some()
    }

    /// Sets how a token is verified. Only the first call counts.
    pub(crate) fn authenticate_with(
        &self,
        authenticate: impl Fn(String) -> BoxFuture<'static, Result<Caller, String>> + Send + Sync + 'static,
    ) {
        let _ = self.0.authenticate.set(Authenticate(Box::new(authenticate)));
    }

    /// Whose a token is, as a request with it would be admitted. Fails with the reason.
    pub async fn authenticate(&self, token: &str) -> Result<Caller, String> {
        match self.0.authenticate.get() {
            Some(Authenticate(authenticate)) => authenticate(token.to_owned()).await,
            None => Err("the gateway is not running yet".to_owned()),
        }
    }

    /// Begins a session. Returns the value of its cookie.
    pub fn begin(&self, caller: &Caller) -> Result<(Secret, BrowserSession), NoSession> {
        self.0.tables.lock().begin(caller, Instant::now())
    }

    pub(crate) fn set_secure(&self, is_secure: bool) {
        self.0.is_secure.store(is_secure, Ordering::Relaxed);
    }

    fn is_secure(&self) -> bool {
        self.0.is_secure.load(Ordering::Relaxed)
    }

    /// The session of the browser that has sent these headers.
    pub fn find(&self, headers: &HeaderMap) -> Option<BrowserSession> {
        let cookie = cookie::find(headers, self.is_secure())?;
        self.0.tables.lock().find(cookie.expose(), Instant::now())
    }

    /// Ends the session of the browser that has sent these headers.
    pub fn end(&self, headers: &HeaderMap) {
        if let Some(cookie) = cookie::find(headers, self.is_secure()) {
            self.0.tables.lock().end(cookie.expose());
        }
    }

    /// The header that sets the cookie in a browser that has sent these headers, or without a value removes it.
    pub fn cookie(&self, headers: &HeaderMap, value: Option<&Secret>) -> Option<HeaderValue> {
        cookie::set(headers, self.is_secure(), value.map_or("", Secret::expose))
    }

    /// The code of a link that signs one browser in as this caller, and how long it can be followed.
    pub fn create_link(&self, caller: &Caller) -> Result<(Secret, Duration), NoSession> {
        let code = self.0.tables.lock().link(caller, Instant::now())?;
        Ok((code, LINK_TIME))
    }

    /// Uses a link up. Returns whom it is for; `None` if there is no such link any more.
    pub fn follow_link(&self, code: &str) -> Option<Caller> {
        self.0.tables.lock().follow(code, Instant::now())
    }

    /// Ends the sessions of callers whose tokens were revoked.
    pub(crate) fn end_revoked(&self) {
        self.0.tables.lock().expire(Instant::now());
    }
}
