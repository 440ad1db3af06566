//! `/ui/sign-in`: a token for a session, and the link of `pegboard open`.

use std::sync::Arc;

use axum::{
    body::Body,
    extract::{Path, State},
    response::{IntoResponse as _, Response},
};
use http::{HeaderMap, Method, StatusCode, header::SET_COOKIE};
use maud::{Markup, html};
use pegboard_gateway::{Caller, Scope};

use crate::{
    form::Form,
    layout::{plain, problem, see_other},
    text::shown,
    ui::Ui,
    visitor::{Visitor, is_own_page},
};

/// `GET /ui/sign-in`.
pub(crate) async fn get(State(ui): State<Arc<Ui>>) -> Response {
    plain(StatusCode::OK, "Sign in", &form(&ui, None))
}

fn form(ui: &Ui, error: Option<&str>) -> Markup {
    let needs_token = ui.api.board().gateway_settings().serve.requires_token();
    html! {
        @if let Some(error) = error { p.notice.bad role="alert" { (shown(error)) } }
        form.call method="post" action="/ui/sign-in" {
            div.field {
                label for="token" { "Token" }
                input #token name="token" type="password" autocomplete="current-password" required autofocus spellcheck="false" aria-describedby="token-hint";
                span.soft #token-hint { "The browser keeps a session, not the token." }
            }
            button.primary type="submit" { "Sign in" }
        }
        @if needs_token {
            p.soft { "It is a token of " code { "[serve.tokens]" } ", as a client of the gateway has one. " code { "pegboard open" } " on the machine of the gateway opens this page without one." }
        } @else {
            p.soft { "Without a token you can look at everything and call tools. To change what runs, run " code { "pegboard open" } " on this machine, or paste the token of its user." }
            p { a href="/" { "Go on without a token" } }
        }
    }
}

/// `POST /ui/sign-in`.
pub(crate) async fn post(State(ui): State<Arc<Ui>>, headers: HeaderMap, body: Body) -> Response {
    if !is_own_page(&headers, &ui) {
        let words = "The form was not sent by a page of this dashboard.";
        return problem(StatusCode::FORBIDDEN, "Not taken", words, None);
    }
    let sent = match Form::read_any(body).await {
        Ok(sent) => sent,
        Err(refused) => return *refused,
    };
    let token = sent.get("token").unwrap_or_default().trim().to_owned();
    let refused = |status: StatusCode, why: &str| plain(status, "Sign in", &form(&ui, Some(why)));
    match ui.sessions.authenticate(&token).await {
        // A gateway without tokens takes every request of its user. A person who types a token wants its rights.
        Ok(caller) if caller.principal().is_none() && !caller.scopes().contains(Scope::Admin) => refused(
            StatusCode::UNAUTHORIZED,
            "This is not the token of the user that the gateway runs for.",
        ),
        Ok(caller) if !caller.scopes().contains(Scope::Read) => refused(
            StatusCode::FORBIDDEN,
            "The token lacks the scope `read`, which the pages need.",
        ),
        Ok(caller) => begin(&ui, &headers, &caller),
        Err(why) => refused(StatusCode::UNAUTHORIZED, &format!("The token is not taken: {why}.")),
    }
}

/// Begins a session and goes to the overview.
fn begin(ui: &Ui, headers: &HeaderMap, caller: &Caller) -> Response {
    // A browser has one session.
    ui.sessions.end(headers);
    match ui.sessions.begin(caller) {
        Ok((cookie, _)) => {
            tracing::info!(
                principal = caller.principal().map(tracing::field::display),
                "a browser has signed in to the dashboard"
            );
            let mut response = see_other("/");
            if let Some(cookie) = ui.sessions.cookie(headers, Some(&cookie)) {
                response.headers_mut().append(SET_COOKIE, cookie);
            }
            response
        }
        Err(error) => problem(
            StatusCode::SERVICE_UNAVAILABLE,
            "Not signed in",
            &error.to_string(),
            None,
        ),
    }
}

/// `GET /ui/open/{code}`: the link of `pegboard open`.
pub(crate) async fn open(
    State(ui): State<Arc<Ui>>,
    Path(code): Path<String>,
    request: axum::extract::Request,
) -> Response {
    // A look ahead, of a browser or of a chat that shows a preview, does not use the link up.
    let purpose = request
        .headers()
        .get("sec-purpose")
        .and_then(|purpose| purpose.to_str().ok());
    if request.method() == Method::HEAD || purpose.is_some_and(|purpose| purpose.contains("prefetch")) {
        return StatusCode::NO_CONTENT.into_response();
    }
    // The gateway gives the right to read to programs of its user.
    let caller = request.extensions().get::<Caller>();
    let is_user = caller.is_some_and(|caller| caller.scopes().contains(Scope::Read));
    if !is_user {
        let words = "The link works only for programs of the user that the gateway runs for, on the same machine.";
        return problem(
            StatusCode::FORBIDDEN,
            "Not for this browser",
            words,
            Some("run `pegboard open` again, or sign in with a token"),
        );
    }
    match ui.sessions.follow_link(&code) {
        Some(caller) => begin(&ui, request.headers(), &caller),
        None => {
            let words = "The link was used already, or is too old.";
            problem(
                StatusCode::GONE,
                "No such link",
                words,
                Some("run `pegboard open` again"),
            )
        }
    }
}

/// `POST /ui/sign-out`.
pub(crate) async fn sign_out(State(ui): State<Arc<Ui>>, visitor: Visitor, headers: HeaderMap, body: Body) -> Response {
    if let Err(refused) = Form::read(&visitor, body).await {
        return *refused;
    }
    ui.sessions.end(&headers);
    let mut response = see_other("/ui/sign-in");
    if let Some(cookie) = ui.sessions.cookie(&headers, None) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// Any other path below `/ui`.
pub(crate) async fn no_page() -> Response {
    problem(
        StatusCode::NOT_FOUND,
        "No such page",
        "There is nothing at this address.",
        None,
    )
}
