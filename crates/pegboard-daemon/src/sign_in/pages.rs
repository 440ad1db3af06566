//! The pages: what people read, and the forms that they send.

use axum::response::Response;
use http::StatusCode;
use pegboard::{Hint as _, Principal, ServerName, SignInError, SignInErrorKind, SignedOut};
use pegboard_gateway::{NoSignInPage, SignInVisit};

use super::{
    form::BrowserForm,
    html::{Referrer, escape, forward_page, page},
};

/// A server on the list.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) server: ServerName,
    pub(super) state: SignInState,
}

/// Whether a person has signed in to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignInState {
    SignedIn,
    /// The server refuses calls until somebody signs in.
    Needed,
    NotSignedIn,
    /// The tokens cannot be read.
    Unknown,
}

impl SignInState {
    fn text(self) -> &'static str {
        match self {
            Self::SignedIn => "signed in",
            Self::Needed => "sign-in needed",
            Self::NotSignedIn => "not signed in",
            Self::Unknown => "unknown",
        }
    }
}

/// The servers of a visit.
pub(super) fn list(base: &str, visit: &SignInVisit, rows: &[Row]) -> Response {
    let who = account(visit.caller().principal());
    let mut body = format!("<p>Servers that {who} can use here, and whether somebody has signed in to them.</p>\n");
    if rows.is_empty() {
        body.push_str("<p class=\"note\">There is no server that takes a sign-in.</p>");
    } else {
        body.push_str("<ul>\n");
        for Row { server, state } in rows {
            let (name, state) = (escape(server.as_str()), state.text());
            let page = server_page(base, server);
            body.push_str(&format!(
                "<li><a href=\"{page}\">{name}</a> <span>{state}</span></li>\n"
            ));
        }
        body.push_str("</ul>");
    }
    page(StatusCode::OK, "Sign-ins", &body, Referrer::Nobody)
}

/// The page of one server after a sign-out: says what became of the tokens.
pub(super) fn render_signed_out(base: &str, visit: &SignInVisit, server: &ServerName, ended: &SignedOut) -> Response {
    let name = escape(server.as_str());
    let text = match ended {
        SignedOut::Revoked => format!("You are signed out of <b>{name}</b>, and its tokens are revoked."),
        SignedOut::OnlyForgotten { reason, .. } => format!(
            "You are signed out of <b>{name}</b>: its tokens are removed here. They are not revoked, and stay valid until they expire: {}.",
            escape(reason.trim_end_matches('.'))
        ),
        _ => format!("Nobody was signed in to <b>{name}</b>."),
    };
    let note = format!("<p class=\"note done\">{text}</p>\n");
    server_with(base, visit, server, (SignInState::NotSignedIn, false), note)
}

/// The page of one server: asks whether to sign in, and says for whom. It also offers to register anew at the authorization server, if
/// `may_register`.
pub(super) fn server(
    base: &str,
    visit: &SignInVisit,
    server: &ServerName,
    state: SignInState,
    may_register: bool,
) -> Response {
    server_with(base, visit, server, (state, may_register), String::new())
}

/// The page of one server, with something said first.
fn server_with(
    base: &str,
    visit: &SignInVisit,
    server: &ServerName,
    (state, may_register): (SignInState, bool),
    mut body: String,
) -> Response {
    let who = account(visit.caller().principal());
    let (name, here) = (escape(server.as_str()), escape(host(base)));
    let is_signed_in = state == SignInState::SignedIn;
    if is_signed_in {
        body.push_str(&format!(
            "<p class=\"note done\">You are signed in to <b>{name}</b>. You can close this page: the agents of {who} can use the server now.</p>\n"
        ));
    } else {
        body.push_str(&format!(
            "<p>Pegboard at <b>{here}</b> asks for access to the server <b>{name}</b>, for {who}. The next page is that of the server's \
             own sign-in. What you allow there can be used by the agents of {who}, and by nobody else here.</p>\n\
             <p class=\"note\">Go on only if you asked for this yourself. If somebody else sent you the link, close this page: their agents \
             would use your account.</p>\n"
        ));
    }
    let token = escape(visit.form_token().expose());
    let (field, action) = (BrowserForm::TOKEN, BrowserForm::ACTION);
    let (label, sign_in, sign_out) = match is_signed_in {
        true => ("Sign in again", BrowserForm::SIGN_IN, true),
        false => ("Sign in", BrowserForm::SIGN_IN, false),
    };
    body.push_str(&format!(
        "<form method=\"post\" action=\"{}\">\n<input type=\"hidden\" name=\"{field}\" value=\"{token}\">\n\
         <button name=\"{action}\" value=\"{sign_in}\">{label}</button>\n",
        server_page(base, server)
    ));
    if may_register {
        let value = BrowserForm::SIGN_IN_ANEW;
        body.push_str(&format!(
            "<button name=\"{action}\" value=\"{value}\">Sign in with a new registration</button>\n"
        ));
    }
    if sign_out {
        let value = BrowserForm::SIGN_OUT;
        body.push_str(&format!(
            "<button name=\"{action}\" value=\"{value}\">Sign out</button>\n"
        ));
    }
    body.push_str("</form>");
    if may_register {
        body.push_str(
            "\n<p class=\"note\">A sign-in has begun and is not finished. If the page of the server's own sign-in did not know this program (the \
             client), sign in with a new registration.</p>",
        );
    }
    if visit.is_for_all() {
        body.push_str(&format!(
            "\n<p><a href=\"{}\">All servers</a></p>",
            escape(&format!("{base}/signin"))
        ));
    }
    let title = match is_signed_in {
        true => format!("Signed in to {server}"),
        false => format!("Sign in to {server}?"),
    };
    page(StatusCode::OK, &title, &body, Referrer::OwnPages)
}

/// Leads to the authorization server.
///
/// Not a redirect: browsers apply `form-action` to every redirect after a form, and the sign-in may lead over several hosts.
pub(super) fn leave(server: &ServerName, to: &url::Url) -> Response {
    let (url, host) = (escape(to.as_str()), escape(to.host_str().unwrap_or_default()));
    let body = format!("<p>The sign-in goes on at <a href=\"{url}\" rel=\"noreferrer\">{host}</a>.</p>");
    forward_page(&format!("Sign in to {server}"), to.as_str(), &body)
}

/// There is no visit: the browser needs a link.
pub(super) fn needs_link(base: &str) -> Response {
    let route = escape(&format!("{base}/api/v1/mcp/signin"));
    let body = format!(
        "<p>This page needs a sign-in link.</p>\n\
         <p class=\"note\">Ask the agent or program that uses this server for one: it gets a link when a call needs a sign-in. If it shows none, \
         <code>POST {route}</code> with its token returns one, and the operator can run <code>pegboard login NAME --principal WHO</code> on the \
         machine of the gateway instead. A link works for ten minutes, in one browser.</p>"
    );
    page(StatusCode::UNAUTHORIZED, "Open a sign-in link", &body, Referrer::Nobody)
}

/// The link is of no use any more, or never was.
pub(super) fn useless_link() -> Response {
    let body = "<p>The link was used already, has expired, or is not complete.</p>\n\
                <p class=\"note\">Nothing was changed. Repeat the call in your agent or program to get a new link: one works for ten minutes, in one \
                browser.</p>";
    page(StatusCode::GONE, "This link does not work", body, Referrer::Nobody)
}

/// The visit has no link for the server, or none any more.
pub(super) fn needs_another_link() -> Response {
    let body = "<p>This browser has no sign-in link for this page: the link was used in another browser, has expired, or is for another server.</p>\n\
                <p class=\"note\">Nothing was changed. Repeat the call in your agent or program to get a new link, and open it in this browser.</p>";
    page(
        StatusCode::UNAUTHORIZED,
        "Open a new sign-in link",
        body,
        Referrer::Nobody,
    )
}

/// The redirect answers no sign-in of this browser.
pub(super) fn useless_redirect(base: &str) -> Response {
    let body = format!(
        "<p>No sign-in of this browser waits for this answer: it was finished already, took longer than ten minutes, or began in another browser.</p>\n\
         <p class=\"note\">Nothing was changed. <a href=\"{}\">Start again</a>, or open a new sign-in link in the browser in which you sign in.</p>",
        escape(&format!("{base}/signin"))
    );
    page(
        StatusCode::BAD_REQUEST,
        "This sign-in is not open",
        &body,
        Referrer::Nobody,
    )
}

/// There is no such server for this visit.
pub(super) fn no_server(base: &str) -> Response {
    let body = format!(
        "<p>There is no server of this name, or nobody can sign in to it.</p>\n<p><a href=\"{}\">Your servers</a></p>",
        escape(&format!("{base}/signin"))
    );
    page(StatusCode::NOT_FOUND, "No such server", &body, Referrer::Nobody)
}

/// A form that no page of this visit has sent.
pub(super) fn foreign_form() -> Response {
    let body = "<p>The form did not come from a page of this visit.</p>\n<p class=\"note\">Nothing was changed. Open the sign-in link again.</p>";
    page(
        StatusCode::FORBIDDEN,
        "The form is not accepted",
        body,
        Referrer::Nobody,
    )
}

/// The pages cannot be used.
pub(super) fn render_unusable(why: NoSignInPage) -> Response {
    let status = match why {
        NoSignInPage::TooMany => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::CONFLICT,
    };
    let body = format!("<p class=\"note\">{}.</p>", escape(&capitalize(&why.to_string())));
    page(status, "No sign-in is possible here", &body, Referrer::Nobody)
}

/// A sign-in or sign-out has failed.
pub(super) fn render_failure(base: &str, server: &ServerName, error: &SignInError) -> Response {
    let (status, title) = match error.kind() {
        SignInErrorKind::Denied => (StatusCode::FORBIDDEN, "The sign-in was refused"),
        SignInErrorKind::Unreachable => (StatusCode::BAD_GATEWAY, "The sign-in did not work for now"),
        SignInErrorKind::UnknownServer | SignInErrorKind::NotPossible => {
            (StatusCode::CONFLICT, "Nobody can sign in to this server")
        }
        _ => (StatusCode::BAD_GATEWAY, "The sign-in failed"),
    };
    let mut body = format!(
        "<p>Server <b>{}</b>: {}.</p>\n",
        escape(server.as_str()),
        escape(error.to_string().trim_end_matches('.'))
    );
    if let Some(hint) = error.hint() {
        body.push_str(&format!(
            "<p class=\"note\">For the operator: {}.</p>\n",
            escape(hint.trim_end_matches('.'))
        ));
    }
    body.push_str(&format!(
        "<p><a href=\"{}\">Try again</a></p>",
        server_page(base, server)
    ));
    page(status, title, &body, Referrer::Nobody)
}

/// Too many sign-ins are open.
pub(super) fn too_many() -> Response {
    render_unusable(NoSignInPage::TooMany)
}

/// The address of a server's page, as HTML.
fn server_page(base: &str, server: &ServerName) -> String {
    escape(&server_url(base, server))
}

/// The address of a server's page.
pub(super) fn server_url(base: &str, server: &ServerName) -> String {
    format!("{base}/signin/server/{server}")
}

/// For whom a sign-in is, as HTML.
fn account(principal: Option<&Principal>) -> String {
    match principal {
        Some(principal) => format!("<b>{}</b>", escape(principal.as_str())),
        None => "the user of this machine".to_owned(),
    }
}

/// The host and port of a URL.
fn host(base: &str) -> &str {
    let rest = base.split_once("://").map_or(base, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}
