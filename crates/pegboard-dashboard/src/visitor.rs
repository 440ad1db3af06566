//! [`Visitor`]: who looks at a page, and what that person may do.

use std::sync::Arc;

use axum::{
    extract::FromRequestParts,
    response::{IntoResponse as _, Response},
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
    header::{ACCEPT, AUTHORIZATION, HOST, LOCATION, ORIGIN, SET_COOKIE},
    request::Parts,
};
use pegboard_gateway::{BrowserSession, Caller, Scope};
use url::Url;

use crate::{layout, ui::Ui, who::Who};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// A person that the gateway has admitted, with the rights that the same token has at the API.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(crate) caller: Caller,
    session: Option<BrowserSession>,
    /// The cookie of a session that has just begun.
    cookie: Option<HeaderValue>,
    /// Whether the request has a token of its own, which no page of another site can send.
    has_token: bool,
    /// Whether no page of another origin has sent the request.
    pub(crate) comes_from_own_page: bool,
}

impl Visitor {
    /// Whether a request that changes something comes from a page of ours: of this origin, and with the token of the form.
    pub(crate) fn sent(&self, form_token: Option<&str>) -> bool {
        if self.has_token {
            return true;
        }
        let has_token = |session: &BrowserSession| form_token.is_some_and(|sent| session.has_form_token(sent));
        self.comes_from_own_page && self.session.as_ref().is_some_and(has_token)
    }

    pub(crate) fn may(&self, scope: Scope) -> bool {
        self.caller.scopes().contains(scope)
    }

    /// Whether the visitor sees the whole board, and not one view of it.
    pub(crate) fn sees_all(&self) -> bool {
        self.caller.view().is_none()
    }

    /// The visitor as the frame of a page shows it.
    pub(crate) fn who(&self) -> Who<'_> {
        let scopes = self.caller.scopes();
        let rights: Vec<&str> = Scope::ALL
            .into_iter()
            .filter(|scope| scopes.contains(*scope))
            .map(Scope::as_str)
            .collect();
        let view = self
            .caller
            .view()
            .map(|view| format!(", view {view}"))
            .unwrap_or_default();
        let is_owner = self.caller.principal().is_none() && scopes.contains(Scope::Admin);
        let name = match self.caller.principal() {
            Some(principal) => principal.to_string(),
            None if is_owner => "owner".to_owned(),
            None => "read only".to_owned(),
        };
        Who {
            name,
            rights: format!("scopes: {}{view}", rights.join(", ")),
            scopes,
            is_signed_in: self.caller.principal().is_some() || is_owner,
            form_token: self
                .session
                .as_ref()
                .map_or("", |session| session.form_token().expose()),
        }
    }

    /// Adds the cookie of a new session to a response.
    pub(crate) fn remember(&self, mut response: Response) -> Response {
        if let Some(cookie) = &self.cookie {
            response.headers_mut().append(SET_COOKIE, cookie.clone());
        }
        response
    }
}

/// Whether a request comes from a page of this very origin. The gateway lets pages of other ports of the machine through, which are none of ours.
/// Behind a proxy that names another host, the origin is that of `public_url`.
pub(crate) fn is_own_page(headers: &HeaderMap, ui: &Ui) -> bool {
    let settings = ui.api.board().gateway_settings();
    let public = settings
        .serve
        .public_url
        .as_deref()
        .and_then(|url| Url::parse(url).ok());
    comes_from(headers, public.map(|url| url.origin().ascii_serialization()).as_deref())
}

fn comes_from(headers: &HeaderMap, public: Option<&str>) -> bool {
    let is_same_site = headers.get(SEC_FETCH_SITE).is_none_or(|site| site == "same-origin");
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    let is_own_origin = headers.get(ORIGIN).is_none_or(|origin| {
        let origin = origin.to_str().unwrap_or_default();
        let authority = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        authority.is_some() && authority == host || public == Some(origin)
    });
    is_same_site && is_own_origin
}

impl FromRequestParts<Arc<Ui>> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, ui: &Arc<Ui>) -> Result<Self, Response> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let Some(caller) = caller.filter(|caller| caller.scopes().contains(Scope::Read)) else {
            return Err(ask_to_sign_in(parts));
        };
        let known = ui
            .sessions
            .find(&parts.headers)
            .filter(|session| *session.caller() == caller);
        // With a header that is no token, the visitor was admitted by a session, or as the user of this machine.
        let has_rights = caller.principal().is_some() || caller.scopes().contains(Scope::Admin);
        let has_token = parts.headers.contains_key(AUTHORIZATION) && known.is_none() && has_rights;
        let mut visitor = Self {
            caller,
            session: known,
            cookie: None,
            has_token,
            comes_from_own_page: is_own_page(&parts.headers, ui),
        };
        // A browser of the user of this machine needs no sign-in, and its forms need a session. Programs and streams need none.
        let wants_session = parts.method == Method::GET && takes_html(&parts.headers) && is_navigation(&parts.headers);
        if visitor.session.is_none() && !has_token && wants_session {
            match ui.sessions.begin(&visitor.caller) {
                Ok((cookie, session)) => {
                    visitor.cookie = ui.sessions.cookie(&parts.headers, Some(&cookie));
                    visitor.session = Some(session);
                }
                Err(error) => tracing::warn!(%error, "a browser gets no session, so its forms are refused"),
            }
        }
        Ok(visitor)
    }
}

/// Whether a browser loads a page into a tab, as far as it says what it does: pages of other ports of the machine can ask for pages too.
fn is_navigation(headers: &HeaderMap) -> bool {
    let is = |name: HeaderName, words: &[&str]| {
        headers
            .get(name)
            .is_none_or(|sent| words.iter().any(|word| sent == word))
    };
    is(SEC_FETCH_DEST, &["document"]) && is(SEC_FETCH_MODE, &["navigate"])
}

/// Whether a request asks for a page.
pub(crate) fn takes_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted
        .into_iter()
        .any(|value| value.to_ascii_lowercase().contains("text/html"))
}

/// The response to a visitor without rights: people are led to the form, programs are told.
fn ask_to_sign_in(parts: &Parts) -> Response {
    let is_live = parts.uri.path().starts_with("/ui/live/");
    if parts.method == Method::GET && !is_live && parts.uri.path() != "/ui/sign-in" {
        let mut response = StatusCode::SEE_OTHER.into_response();
        response
            .headers_mut()
            .insert(LOCATION, HeaderValue::from_static("/ui/sign-in"));
        return response;
    }
    let words = "Sign in first: your session has ended, or its token lacks the scope `read`.";
    layout::problem(StatusCode::UNAUTHORIZED, "Not signed in", words, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_comes_from_this_origin_and_not_from_another_port_of_the_machine() {
        let check = |pairs: &[(&'static str, &'static str)]| {
            let pairs = pairs
                .iter()
                .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
            comes_from(&HeaderMap::from_iter(pairs), Some("https://pegboard.example.com"))
        };
        let host = ("host", "127.0.0.1:7337");
        assert!(check(&[host]));
        assert!(check(&[
            host,
            ("origin", "http://127.0.0.1:7337"),
            ("sec-fetch-site", "same-origin")
        ]));
        assert!(
            check(&[host, ("origin", "https://pegboard.example.com")]),
            "behind a proxy"
        );
        for (name, value) in [
            ("origin", "https://other.example.com"),
            ("origin", "http://127.0.0.1:3000"),
            ("origin", "http://localhost:7337"),
            ("origin", "null"),
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "none"),
        ] {
            assert!(!check(&[host, (name, value)]), "{name}: {value}");
        }
    }
}
