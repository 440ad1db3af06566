//! The frame of every page: HTML without scripts, and the headers that protect it.

use std::{fmt::Write as _, sync::LazyLock};

use axum::{
    body::Body,
    response::{IntoResponse as _, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{
    HeaderValue, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
        X_FRAME_OPTIONS,
    },
};
use pegboard_base::visible_text::is_hidden;
use sha2::{Digest as _, Sha256};

/// Nothing is loaded, nothing runs, only our style counts, nothing frames the page, and forms go to this server only.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = STANDARD.encode(Sha256::digest(STYLE));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    HeaderValue::try_from(policy).unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"))
});

const STYLE: &str = "
:root { color-scheme: light dark; --line: #8886; --soft: #8882; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem; max-width: 40rem; font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; line-height: 1.25; }
code, b { overflow-wrap: anywhere; }
ul { list-style: none; margin: 1rem 0; padding: 0; }
li { display: flex; flex-wrap: wrap; gap: .25rem 1rem; justify-content: space-between; padding: .75rem 0; border-top: 1px solid var(--line); }
.note { padding: .75rem 1rem; border-left: .25rem solid #c60; background: var(--soft); }
.done { border-left-color: #2a7; }
form { display: flex; flex-wrap: wrap; gap: .75rem; margin: 1rem 0; }
button { font: inherit; padding: .6rem 1.2rem; min-height: 2.75rem; border: 1px solid var(--line); border-radius: .4rem; cursor: pointer; }
footer { margin-top: 2rem; font-size: .875rem; opacity: .75; }
";

/// What a browser may tell other pages about the address of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Referrer {
    /// Nothing. A browser then also sends forms without their origin.
    Nobody,
    /// Everything, to pages of this server only.
    OwnPages,
}

/// A page. `body` is HTML; everything in it that is not ours has to be [escaped](escape).
pub(super) fn page(status: StatusCode, title: &str, body: &str, referrer: Referrer) -> Response {
    frame(status, title, "", body, referrer)
}

/// A page that leads to another address at once, by a link where the browser does not follow by itself.
pub(super) fn forward_page(title: &str, to: &str, body: &str) -> Response {
    let head = format!("<meta http-equiv=\"refresh\" content=\"0;url={}\">", escape(to));
    frame(StatusCode::OK, title, &head, body, Referrer::Nobody)
}

/// A redirect to a page of ours.
pub(super) fn redirect(to: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let Ok(to) = HeaderValue::try_from(to) {
        response.headers_mut().insert(LOCATION, to);
    }
    protect(&mut response, Referrer::Nobody);
    response
}

fn frame(status: StatusCode, title: &str, head: &str, body: &str, referrer: Referrer) -> Response {
    let title = escape(title);
    let text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"robots\" content=\"noindex\">\n{head}\
         <title>{title} · Pegboard</title>\n<style>{STYLE}</style>\n</head>\n\
         <body>\n<main>\n<h1>{title}</h1>\n{body}\n</main>\n<footer>Pegboard</footer>\n</body>\n</html>\n"
    );
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, html);
    protect(&mut response, referrer);
    response
}

fn protect(response: &mut Response, referrer: Referrer) {
    let referrer = match referrer {
        Referrer::Nobody => "no-referrer",
        Referrer::OwnPages => "same-origin",
    };
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    for (name, value) in [
        (REFERRER_POLICY, referrer),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
}

/// A text as HTML, in content and in quoted attributes. Characters that a person does not see are made visible.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            hidden if hidden.is_control() || is_hidden(hidden) => {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "\\u{{{:x}}}", u32::from(hidden));
            }
            shown => escaped.push(shown),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup_or_is_hidden() {
        assert_eq!(
            escape("<b onclick=\"x\">&'\u{202e}\n</b>"),
            "&lt;b onclick=&quot;x&quot;&gt;&amp;&#39;\\u{202e}\\u{a}&lt;/b&gt;"
        );
        assert_eq!(escape("Zoë · 日本"), "Zoë · 日本");
    }

    #[test]
    fn pages_load_and_run_nothing_and_are_not_kept() {
        let response = page(StatusCode::OK, "<t>", "", Referrer::OwnPages);
        let header = |name| response.headers()[name].to_str().unwrap();
        assert!(header(CONTENT_SECURITY_POLICY).starts_with("default-src 'none'"));
        assert!(
            !header(CONTENT_SECURITY_POLICY).contains("unsafe")
                && !header(CONTENT_SECURITY_POLICY).contains("script-src")
        );
        assert_eq!(header(CACHE_CONTROL), "no-store");
        assert_eq!(header(REFERRER_POLICY), "same-origin");
        assert_eq!(redirect("/x").headers()[REFERRER_POLICY], "no-referrer");
        assert_eq!(
            forward_page("t", "https://a.example/?x=1&y=2", "").headers()[REFERRER_POLICY],
            "no-referrer"
        );
    }
}
