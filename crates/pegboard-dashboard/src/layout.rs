//! The frame of every page, and the parts that pages share.

use axum::{
    body::Body,
    response::{IntoResponse as _, Response},
};
use http::{
    HeaderValue, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use maud::{DOCTYPE, Markup, html};
use pegboard::State;
use pegboard_gateway::Scope;

use crate::{
    assets,
    text::{line, shown},
    who::Who,
};

/// Nothing is loaded from elsewhere, only our scripts and styles count, nothing frames the page, and forms go to this server only.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// The pages in the navigation.
const PAGES: &[(&str, &str, &str)] = &[
    ("Overview", "/", "o"),
    ("Servers", "/ui/servers", "s"),
    ("Tools", "/ui/tools", "t"),
    ("Calls", "/ui/calls", "c"),
    ("Agents", "/ui/agents", "a"),
    ("Policy", "/ui/policy", "p"),
    ("Config", "/ui/config", "f"),
];

/// A page, before its frame.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    pub(crate) title: &'a str,
    /// The path in the navigation that it belongs to.
    pub(crate) section: &'static str,
    /// The address of its live updates.
    pub(crate) live: Option<String>,
    pub(crate) body: Markup,
}

/// A response with a page in its frame.
pub(crate) fn page(who: &Who<'_>, page: &Page<'_>) -> Response {
    let content = html! {
        header.top {
            a.brand href="/" { img src=(assets::url("icon.svg")) alt="" width="22" height="22"; span { "Pegboard" } }
            nav aria-label="Pages" {
                ul {
                    @for (name, path, key) in PAGES {
                        li { a href=(path) aria-current=[(*path == page.section).then_some("page")] title={ "Keys: g " (key) } { (name) } }
                    }
                }
            }
            div.who {
                span.name title=(who.rights) { (line(&who.name)) }
                @if who.is_signed_in {
                    form method="post" action="/ui/sign-out" { (who.token_field()) button.quiet type="submit" { "Sign out" } }
                } @else {
                    a.quiet href="/ui/sign-in" { "Sign in" }
                }
            }
        }
        main #main tabindex="-1" {
            p #connection .banner role="status" hidden { "The connection is lost. The page shows what was last known and goes on by itself." }
            (page.body)
        }
    };
    response(StatusCode::OK, document(page.title, page.live.as_deref(), &content))
}

/// A page without navigation: for people who are not signed in, and for what went wrong.
pub(crate) fn plain(status: StatusCode, title: &str, body: &Markup) -> Response {
    let content = html! {
        main.plain #main {
            p.brand { img src=(assets::url("icon.svg")) alt="" width="28" height="28"; span { "Pegboard" } }
            h1 { (title) }
            (body)
        }
    };
    response(status, document(title, None, &content))
}

/// A page that says what went wrong, and what to do.
pub(crate) fn problem(status: StatusCode, title: &str, words: &str, hint: Option<&str>) -> Response {
    let body = html! {
        p.notice.bad role="alert" { (shown(words)) }
        @if let Some(hint) = hint { p.hint { (shown(hint)) } }
        p { a href="/" { "Back to the overview" } " · " a href="/ui/sign-in" { "Sign in" } }
    };
    plain(status, title, &body)
}

fn document(title: &str, live: Option<&str>, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="robots" content="noindex";
                meta name="color-scheme" content="light dark";
                title { (line(title)) " · Pegboard" }
                link rel="icon" href=(assets::url("icon.svg"));
                link rel="stylesheet" href=(assets::url("dashboard.css"));
                script type="module" src=(assets::url("dashboard.js")) {}
            }
            body data-live=[live] {
                a.skip href="#main" { "Skip to the content" }
                (content)
            }
        }
    }
}

fn response(status: StatusCode, document: Markup) -> Response {
    let mut response = Response::new(Body::from(document.into_string()));
    *response.status_mut() = status;
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, html);
    response
}

/// Adds the headers that protect every response of the dashboard.
pub(crate) async fn protect(mut response: Response) -> Response {
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        // Nothing to other origins. With `no-referrer`, browsers would send our own forms without their origin too.
        (REFERRER_POLICY, "same-origin"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    let headers = response.headers_mut();
    headers
        .entry(CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// A redirect to a page of ours, after a form.
pub(crate) fn see_other(path: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let Ok(path) = HeaderValue::try_from(path) {
        response.headers_mut().insert(http::header::LOCATION, path);
    }
    response
}

/// The state of a server: its word, with a sign of its own and a colour.
pub(crate) fn state(state: State) -> Markup {
    let (class, word) = match state {
        State::Ready => ("good", "ready"),
        State::Idle => ("rest", "idle"),
        State::Disabled => ("rest", "disabled"),
        State::Closed => ("rest", "closed"),
        State::Connecting => ("wait", "connecting"),
        State::NeedsAuth => ("wait", "needs sign-in"),
        State::PendingTrust => ("wait", "needs approval"),
        State::Down => ("bad", "down"),
        State::CrashLooping => ("bad", "crash looping"),
        State::Misconfigured => ("bad", "misconfigured"),
        _ => ("rest", state.as_str()),
    };
    badge(class, word)
}

/// A word with a sign and a colour: `good`, `wait`, `bad` or `rest`.
pub(crate) fn badge(class: &str, word: &str) -> Markup {
    html! { span class={ "badge " (class) } { (word) } }
}

/// How a call ended.
pub(crate) fn outcome(kind: &str, is_error: bool) -> Markup {
    let class = match (is_error, kind) {
        (false, _) => "good",
        (true, "cancelled" | "limit_exceeded" | "not_permitted" | "needs_auth") => "wait",
        (true, _) => "bad",
    };
    badge(class, &kind.replace('_', " "))
}

/// A button that sends a form with nothing else. `scope` is what it needs; without it there is no button.
pub(crate) fn button(who: &Who<'_>, scope: Scope, action: &str, label: &str, id: &str) -> Markup {
    html! {
        @if who.may(scope) {
            form method="post" action=(action) { (who.token_field()) button id=(id) type="submit" { (label) } }
        }
    }
}

/// Where a list stands, with links to its other pages.
pub(crate) fn pager(path: &str, query: &[(&str, &str)], page: usize, size: usize, total: usize) -> Markup {
    let pages = total.div_ceil(size).max(1);
    let url = |page: usize| {
        let mut pairs = url::form_urlencoded::Serializer::new(String::new());
        for (name, value) in query.iter().filter(|(_, value)| !value.is_empty()) {
            pairs.append_pair(name, value);
        }
        pairs.append_pair("page", &page.to_string());
        format!("{path}?{}", pairs.finish())
    };
    let from = if total == 0 { 0 } else { (page - 1) * size + 1 };
    html! {
        nav.pager aria-label="Pages of the list" {
            span { (crate::text::count_of(from)) "–" (crate::text::count_of((page * size).min(total))) " of " (crate::text::count_of(total)) }
            @if page > 1 { a href=(url(page - 1)) rel="prev" { "Previous" } }
            @if page < pages { a href=(url(page + 1)) rel="next" { "Next" } }
        }
    }
}

/// What is shown in place of an empty list.
pub(crate) fn empty(words: &str) -> Markup {
    html! { p.empty { (words) } }
}
