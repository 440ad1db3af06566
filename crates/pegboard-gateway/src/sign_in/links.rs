//! [`SignInLinks`]: gives out one-time links to the sign-in pages, and keeps the visits of the browsers that follow them.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use arc_swap::ArcSwap;
use pegboard::{Principal, Secret, ServerName};
use pegboard_base::sync::Mutex;
use tokio::{sync::broadcast, time::Instant};

use super::{
    page_address::{NoSignInPage, PageAddress},
    tables::{SignInVisit, Tables, public_id},
};
use crate::door::Caller;

/// How many sign-ins a waiting call may miss before it looks for itself.
const FINISHED: usize = 64;

/// The links to the sign-in pages of a gateway. Clones share them.
///
/// A person's browser has no token, so it shows a link that was given to a client of that person: 256 random bits, good for ten minutes, for one
/// browser, one principal and one server or all of its servers. From then on a cookie identifies the visit.
#[derive(Clone, Debug)]
pub struct SignInLinks(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    tables: Mutex<Tables>,
    address: ArcSwap<PageAddress>,
    /// Which servers the pages sign in to; unset if nobody serves them.
    takes_sign_in: OnceLock<TakesSignIn>,
    finished: broadcast::Sender<Finished>,
}

/// Whether people can sign in to a server.
struct TakesSignIn(Box<dyn Fn(&ServerName) -> bool + Send + Sync>);

impl fmt::Debug for TakesSignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TakesSignIn(…)")
    }
}

/// A sign-in that was finished.
#[derive(Clone, Debug)]
struct Finished {
    principal: Option<Principal>,
    server: ServerName,
}

/// A link to a sign-in page.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SignInLink {
    /// Names the link without opening it.
    pub id: String,
    /// The URL for the person's browser. Whoever has it can sign in for the principal, so it is a secret.
    pub url: Secret,
    /// How long it can be followed.
    pub expires_in: Duration,
}

/// What a browser gets for a link.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OpenedLink {
    /// The server that the link is for; `None` means all servers of the principal.
    pub server: Option<ServerName>,
    /// The new cookie of the browser; `None` if it keeps the one that it has.
    pub cookie: Option<Secret>,
}

impl Default for SignInLinks {
    fn default() -> Self {
        Self(Arc::new(Inner {
            tables: Mutex::default(),
            address: ArcSwap::default(),
            takes_sign_in: OnceLock::new(),
            finished: broadcast::Sender::new(FINISHED),
        }))
    }
}

impl SignInLinks {
    /// Says that the sign-in pages are served, and for which servers: browsers may then open them without a token. Where no browser can connect,
    /// clients are told to run `pegboard login`. Only the first call counts.
    pub fn serve(&self, takes_sign_in: impl Fn(&ServerName) -> bool + Send + Sync + 'static) {
        let _ = self.0.takes_sign_in.set(TakesSignIn(Box::new(takes_sign_in)));
    }

    /// Whether the sign-in pages are served.
    pub(crate) fn is_served(&self) -> bool {
        self.0.takes_sign_in.get().is_some()
    }

    pub(crate) fn set_address(&self, address: PageAddress) {
        self.0.address.store(Arc::new(address));
    }

    /// A link for the person that a caller acts for: to the page of one server, or to the list of all that it may use. The same one is given out
    /// again until a browser has used it, unless it expires soon.
    pub fn create(&self, caller: &Caller, server: Option<&ServerName>) -> Result<SignInLink, NoSignInPage> {
        let page = self.page(server)?;
        let (code, expires_in) = self.0.tables.lock().link(caller, server, Instant::now())?;
        let principal = caller.principal().map(Principal::as_str);
        tracing::info!(
            principal,
            server = server.map(ServerName::as_str),
            "a sign-in link was given out"
        );
        let code = code.expose();
        Ok(SignInLink {
            id: public_id(code),
            url: Secret::from(format!("{page}?link={code}")),
            expires_in,
        })
    }

    /// The address of the page of a server, or of the list of all servers, without a link. Browsers need one to open it, unless the gateway
    /// has no tokens. Fails if there is no such page.
    pub fn page(&self, server: Option<&ServerName>) -> Result<String, NoSignInPage> {
        let TakesSignIn(takes_sign_in) = self.0.takes_sign_in.get().ok_or(NoSignInPage::NotServed)?;
        if !server.is_none_or(takes_sign_in) {
            return Err(NoSignInPage::NotPossible);
        }
        let base = self.0.address.load().base()?;
        Ok(match server {
            Some(server) => format!("{base}/signin/server/{server}"),
            None => format!("{base}/signin"),
        })
    }

    /// Whether clients are told how to sign in to a server: on its page, or with a command if no browser can connect to the gateway.
    pub(crate) fn signs_in_to(&self, server: &ServerName) -> bool {
        matches!(self.page(Some(server)), Ok(_) | Err(NoSignInPage::NoAddress))
    }

    /// The URL before the path of each page.
    pub(crate) fn base(&self) -> Result<String, NoSignInPage> {
        self.0.address.load().base()
    }

    /// The URL before the path of a page, for a browser that has named the gateway as `host`.
    pub fn base_for(&self, host: &str) -> Result<String, NoSignInPage> {
        self.0.address.load().base_for(host)
    }

    /// Opens a link in a browser that has sent this cookie. It can be opened until a browser has [used](Self::use_up) it. `Ok(None)` if there is
    /// no such link, or no more.
    pub fn open(&self, code: &str, cookie: Option<&str>) -> Result<Option<OpenedLink>, NoSignInPage> {
        let (now, mut tables) = (Instant::now(), self.0.tables.lock());
        let Some((caller, server)) = tables.find_link(code, now) else {
            return Ok(None);
        };
        let cookie = tables.begin(&caller, (server.clone(), Some(code)), cookie, now)?;
        Ok(Some(OpenedLink { server, cookie }))
    }

    /// Begins the visit of a caller that needs no link, because it was admitted. Returns the new cookie of its browser.
    pub fn admit(&self, caller: &Caller, cookie: Option<&str>) -> Result<Option<Secret>, NoSignInPage> {
        self.0.tables.lock().begin(caller, (None, None), cookie, Instant::now())
    }

    /// The visit with this cookie.
    pub fn visit(&self, cookie: &str) -> Option<SignInVisit> {
        self.0.tables.lock().visit(cookie, Instant::now())
    }

    /// Uses up the link that lets a visit sign in to a server. Returns `false` if it was used in another browser, or has expired.
    pub fn use_up(&self, cookie: &str, server: &ServerName) -> bool {
        self.0.tables.lock().use_up(cookie, server, Instant::now())
    }

    /// Ends the links and visits of callers whose tokens were revoked.
    pub(crate) fn end_revoked(&self) {
        self.0.tables.lock().expire(Instant::now());
    }

    /// Says that a person has signed in. Calls that wait for it go on.
    pub fn report_finished(&self, principal: Option<&Principal>, server: &ServerName) {
        // Nobody may be waiting.
        let _ = self.0.finished.send(Finished {
            principal: principal.cloned(),
            server: server.clone(),
        });
    }

    /// Watches for sign-ins of a principal: to one server, or to any.
    pub(crate) fn watch(&self, principal: Option<&Principal>, server: Option<&ServerName>) -> FinishedSignIns {
        FinishedSignIns {
            receiver: self.0.finished.subscribe(),
            principal: principal.cloned(),
            server: server.cloned(),
        }
    }
}

/// The sign-ins of a principal, from now on.
pub(crate) struct FinishedSignIns {
    receiver: broadcast::Receiver<Finished>,
    principal: Option<Principal>,
    /// The only server; `None` means all.
    server: Option<ServerName>,
}

impl FinishedSignIns {
    /// Waits for the next one and returns its server, or `None` if there were so many others that some may have been missed.
    pub(crate) async fn next(&mut self) -> Option<ServerName> {
        loop {
            match self.receiver.recv().await {
                Ok(done) if done.principal != self.principal => {}
                Ok(done) if self.server.as_ref().is_some_and(|wanted| *wanted != done.server) => {}
                Ok(done) => return Some(done.server),
                Err(broadcast::error::RecvError::Lagged(_)) => return None,
                Err(broadcast::error::RecvError::Closed) => return std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_sign_in_wakes_those_who_wait_for_that_principal_and_server() {
        let links = SignInLinks::default();
        let (ada, bob) = (Principal::new("ada"), Principal::new("bob"));
        let [wiki, mail] = ["wiki", "mail"].map(|name| ServerName::parse(name).unwrap());
        let mut to_wiki = links.watch(Some(&ada), Some(&wiki));
        let mut to_any = links.watch(Some(&ada), None);
        let mut of_nobody = links.watch(None, None);
        links.report_finished(Some(&bob), &wiki);
        for watch in [&mut to_wiki, &mut to_any, &mut of_nobody] {
            assert_eq!(watch.next().now_or_never(), None, "it is another principal's");
        }
        links.report_finished(None, &wiki);
        assert_eq!(to_wiki.next().now_or_never(), None);
        assert_eq!(of_nobody.next().now_or_never(), Some(Some(wiki.clone())));
        links.report_finished(Some(&ada), &mail);
        assert_eq!(to_wiki.next().now_or_never(), None, "it is another server");
        assert_eq!(to_any.next().now_or_never(), Some(Some(mail)));
        links.report_finished(Some(&ada), &wiki);
        assert_eq!(to_wiki.next().now_or_never(), Some(Some(wiki.clone())));
        assert_eq!(to_any.next().now_or_never(), Some(Some(wiki)));
    }
}
