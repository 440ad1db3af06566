//! The requests of browsers.

use std::sync::Arc;

use axum::{
    extract::{Path, Request, State},
    response::Response,
};
use http::request::Parts;
use pegboard::{Secret, ServerName, SignInError, SignInOptions};
use pegboard_gateway::NoSignInPage;
use tokio::time::Instant;

use super::{
    form::{Action, BrowserForm, is_own_origin},
    html::redirect,
    pages::{self, Row},
    pending::Pending,
    site::SignInSite,
    visitor::{Visit, Visitor},
};

/// The path to which authorization servers send browsers back.
const CALLBACK: &str = "/signin/callback";

/// `GET /signin`: all servers of the visitor.
pub(super) async fn list(State(site): State<Arc<SignInSite>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let (visitor, visit) = match site.arrive(&parts) {
        Ok(arrived) => arrived,
        Err(response) => return *response,
    };
    if !visit.known.is_for_any() {
        return pages::needs_another_link();
    }
    let Ok(_permit) = site.lists.acquire().await else {
        return pages::needs_another_link();
    };
    let principal = visit.known.caller().principal();
    let refusing = site.find_refusing(principal);
    let mut rows = Vec::new();
    for server in site.board().server_names() {
        if site.may_sign_in(&visit.known, &server) {
            let state = site.state(&server, principal, &refusing).await;
            rows.push(Row { server, state });
        }
    }
    with_cookie(&visitor, &visit, pages::list(&visitor.base, &visit.known, &rows))
}

/// `GET /signin/server/{name}`: asks the person whether to sign in.
pub(super) async fn server(
    State(site): State<Arc<SignInSite>>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let (visitor, visit) = match site.arrive(&parts) {
        Ok(arrived) => arrived,
        Err(response) => return *response,
    };
    let server = match site.server_of(&visitor, &visit, &name) {
        Ok(server) => server,
        Err(response) => return *response,
    };
    let principal = visit.known.caller().principal();
    let state = site.state(&server, principal, &site.find_refusing(principal)).await;
    let may_register = site.may_register_anew(&server, principal);
    let page = pages::server(&visitor.base, &visit.known, &server, state, may_register);
    with_cookie(&visitor, &visit, page)
}

/// `POST /signin/server/{name}`: the person agrees to sign in, or signs out.
pub(super) async fn submit(
    State(site): State<Arc<SignInSite>>,
    Path(name): Path<String>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let visitor = match Visitor::identify(&parts, &site.links) {
        Ok(visitor) => visitor,
        Err(why) => return pages::render_unusable(why),
    };
    let Some(visit) = visitor.known_visit(&site.links) else {
        return pages::needs_link(&visitor.base);
    };
    let form = match is_own_origin(&parts.headers, &visitor.base) {
        true => BrowserForm::read(body).await,
        false => None,
    };
    let Some(form) = form.filter(|form| visit.known.has_form_token(&form.token)) else {
        return pages::foreign_form();
    };
    let server = match site.server_of(&visitor, &visit, &name) {
        Ok(server) => server,
        Err(response) => return *response,
    };
    if !site.links.use_up(visit.cookie.expose(), &server) {
        return pages::useless_link();
    }
    let done = match form.action {
        Action::SignIn => site.begin(&visitor, &visit, &server, false).await,
        Action::RegisterAnew => site.begin(&visitor, &visit, &server, true).await,
        Action::SignOut => site.sign_out(&visitor, &visit, &server).await,
    };
    done.unwrap_or_else(|error| pages::render_failure(&visitor.base, &server, &error))
}

/// `GET /signin/callback`: the authorization server has sent the browser back.
pub(super) async fn callback(State(site): State<Arc<SignInSite>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    let visitor = match Visitor::identify(&parts, &site.links) {
        Ok(visitor) => visitor,
        Err(why) => return pages::render_unusable(why),
    };
    let redirected = format!("{}{CALLBACK}?{}", visitor.base, parts.uri.query().unwrap_or_default());
    let visit = visitor.known_visit(&site.links);
    let pending = visit.and_then(|visit| {
        site.pending
            .take(&visit.cookie, |sign_in| sign_in.is_answered_by(&redirected))
    });
    let Some(pending) = pending else {
        return pages::useless_redirect(&visitor.base);
    };
    let Pending {
        sign_in,
        principal,
        server,
        ..
    } = pending;
    // Goes on if the browser goes away: the code can be used once only, and calls wait for it.
    let (links, to) = (site.links.clone(), server.clone());
    let finishing = tokio::spawn(async move {
        sign_in.finish(&redirected).await?;
        links.report_finished(principal.as_ref(), &to);
        Ok(())
    });
    match finishing.await {
        Ok(Ok(())) => {
            // A redirect, so that the code does not stay in the address of the page.
            redirect(&pages::server_url(&visitor.base, &server))
        }
        Ok(Err(error)) => pages::render_failure(&visitor.base, &server, &error),
        Err(_) => pages::useless_redirect(&visitor.base),
    }
}

impl SignInSite {
    /// The browser of a request for a page, and its visit. Opens the link that it has come with, and takes it out of the address.
    fn arrive(&self, parts: &Parts) -> Result<(Visitor, Visit), Box<Response>> {
        let refused = |why: NoSignInPage| Box::new(pages::render_unusable(why));
        let visitor = Visitor::identify(parts, &self.links).map_err(refused)?;
        if let Some(code) = link_code(parts) {
            return Err(Box::new(self.follow(&visitor, &code, parts.uri.path())));
        }
        match visitor.visit(&self.links).map_err(refused)? {
            Some(visit) => Ok((visitor, visit)),
            None => Err(Box::new(pages::needs_link(&visitor.base))),
        }
    }

    /// The server that a path names, if the visit may sign in to it.
    fn server_of(&self, visitor: &Visitor, visit: &Visit, name: &str) -> Result<ServerName, Box<Response>> {
        let none = || Box::new(pages::no_server(&visitor.base));
        let server = ServerName::parse(name).map_err(|_| none())?;
        if !visit.known.is_for(&server) {
            return Err(Box::new(pages::needs_another_link()));
        }
        match self.may_sign_in(&visit.known, &server) {
            true => Ok(server),
            false => Err(none()),
        }
    }

    fn follow(&self, visitor: &Visitor, code: &Secret, path: &str) -> Response {
        let cookie = visitor.cookie.as_ref().map(Secret::expose);
        let opened = match self.links.open(code.expose(), cookie) {
            Ok(Some(opened)) => opened,
            Ok(None) => return self.go_on(visitor, path),
            Err(why) => return pages::render_unusable(why),
        };
        let to = match &opened.server {
            Some(server) => pages::server_url(&visitor.base, server),
            None => format!("{}/signin", visitor.base),
        };
        let mut response = redirect(&to);
        if let Some(cookie) = &opened.cookie {
            visitor.set_cookie(cookie, response.headers_mut());
        }
        response
    }

    /// Answers a link that is of no use. The browser that has used it goes on without it.
    fn go_on(&self, visitor: &Visitor, path: &str) -> Response {
        let visit = visitor.known_visit(&self.links);
        let server = path.strip_prefix("/signin/server/").map(ServerName::parse);
        match (visit, server) {
            (Some(visit), Some(Ok(server))) if visit.known.is_for(&server) => {
                redirect(&pages::server_url(&visitor.base, &server))
            }
            (Some(visit), None) if visit.known.is_for_all() => redirect(&format!("{}/signin", visitor.base)),
            _ => pages::useless_link(),
        }
    }

    /// Begins a sign-in, and leads the browser to the authorization server.
    async fn begin(
        &self,
        visitor: &Visitor,
        visit: &Visit,
        server: &ServerName,
        registers_anew: bool,
    ) -> Result<Response, SignInError> {
        let principal = visit.known.caller().principal().cloned();
        let mut options = SignInOptions::default().redirect_uri(format!("{}{CALLBACK}", visitor.base));
        // Only where the page offers it: nobody fills the authorization server with clients.
        if registers_anew && self.may_register_anew(server, principal.as_ref()) {
            options = options.new_client();
            self.pending.end(principal.as_ref(), server);
        }
        if let Some(principal) = &principal {
            options = options.principal(principal.clone());
        }
        let sign_in = self.board().sign_in(server.as_str(), options).await?;
        let page = pages::leave(server, sign_in.url());
        let is_kept = self.pending.add(Pending {
            cookie: visit.cookie.clone(),
            principal,
            server: server.clone(),
            sign_in,
            began: Instant::now(),
        });
        Ok(match is_kept {
            true => page,
            false => pages::too_many(),
        })
    }

    async fn sign_out(&self, visitor: &Visitor, visit: &Visit, server: &ServerName) -> Result<Response, SignInError> {
        let board = self.board();
        let ended = match visit.known.caller().principal() {
            Some(principal) => board.sign_out_as(server.as_str(), principal.clone()).await?,
            None => board.sign_out(server.as_str()).await?,
        };
        Ok(pages::render_signed_out(&visitor.base, &visit.known, server, &ended))
    }
}

/// A page with the cookie of its visit.
fn with_cookie(visitor: &Visitor, visit: &Visit, mut page: Response) -> Response {
    if visit.is_new {
        visitor.set_cookie(&visit.cookie, page.headers_mut());
    }
    page
}

/// The code of the link that a browser has followed.
fn link_code(parts: &Parts) -> Option<Secret> {
    let query = parts.uri.query()?;
    let mut fields = url::form_urlencoded::parse(query.as_bytes());
    let (_, code) = fields.find(|(name, _)| name == "link")?;
    Some(Secret::from(code.into_owned()))
}
