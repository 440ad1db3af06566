//! [`Visitor`]: the browser that has sent a request, and its visit.

use http::{HeaderMap, header::SET_COOKIE, request::Parts};
use pegboard::{Principal, Secret};
use pegboard_gateway::{Caller, LocalClient, NoSignInPage, Scope, SignInLinks, SignInVisit};

use super::cookie;

/// A browser at one of the pages.
#[derive(Debug)]
pub(super) struct Visitor {
    /// The URL before the path of each page, as this browser names it.
    pub(super) base: String,
    /// The cookie that it has sent.
    pub(super) cookie: Option<Secret>,
    /// Who it is without a link: a gateway without tokens admits every browser of its machine.
    admitted: Option<Caller>,
    /// Who its token says that it is, if it has sent one.
    principal: Option<Principal>,
}

/// A visit, and the cookie that identifies it.
#[derive(Debug)]
pub(super) struct Visit {
    pub(super) known: SignInVisit,
    pub(super) cookie: Secret,
    /// Whether the browser does not have the cookie yet.
    pub(super) is_new: bool,
}

impl Visitor {
    /// The browser of a request. Fails if no browser can use the pages.
    pub(super) fn identify(parts: &Parts, links: &SignInLinks) -> Result<Self, NoSignInPage> {
        if parts.extensions.get::<LocalClient>().is_some() {
            return Err(NoSignInPage::NoAddress);
        }
        let base = links.base_for(host(&parts.headers))?;
        let caller = parts.extensions.get::<Caller>();
        Ok(Self {
            cookie: cookie::find(&parts.headers, &base),
            base,
            principal: caller.and_then(Caller::principal).cloned(),
            admitted: caller.filter(|caller| caller.scopes().contains(Scope::Call)).cloned(),
        })
    }

    /// The visit of the browser; a new one if it needs no link. `Ok(None)` if it has none and needs a link.
    pub(super) fn visit(&self, links: &SignInLinks) -> Result<Option<Visit>, NoSignInPage> {
        if let Some(visit) = self.known_visit(links) {
            return Ok(Some(visit));
        }
        let Some(caller) = &self.admitted else {
            return Ok(None);
        };
        let Some(cookie) = links.admit(caller, None)? else {
            return Ok(None);
        };
        let known = links.visit(cookie.expose());
        Ok(known.map(|known| Visit {
            known,
            cookie,
            is_new: true,
        }))
    }

    /// The visit that the cookie names. It is of no use to a request with the token of another principal.
    pub(super) fn known_visit(&self, links: &SignInLinks) -> Option<Visit> {
        let cookie = self.cookie.clone()?;
        let known = links.visit(cookie.expose())?;
        let is_own = |principal: &Principal| known.caller().principal() == Some(principal);
        if !self.principal.as_ref().is_none_or(is_own) {
            return None;
        }
        Some(Visit {
            known,
            cookie,
            is_new: false,
        })
    }

    /// Adds the header that sets the cookie.
    pub(super) fn set_cookie(&self, cookie: &Secret, headers: &mut HeaderMap) {
        if let Some(value) = cookie::set(&self.base, cookie) {
            headers.append(SET_COOKIE, value);
        }
    }
}

fn host(headers: &HeaderMap) -> &str {
    headers
        .get(http::header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default()
}
