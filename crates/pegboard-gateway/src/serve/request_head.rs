//! What the head of a request says before it is routed.

use http::{
    Method,
    header::{ACCEPT, ORIGIN},
    request::Parts,
};

/// The limit on the head of a request, in bytes.
pub(super) const MAX_HEAD: usize = 64 * 1024;

/// Returns `true` if a person opens a page as a whole, by a link or a redirect. No script reads it, and no frame shows it.
pub(super) fn is_page_visit(request: &Parts) -> bool {
    let headers = &request.headers;
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|sent| sent == value);
    request.method == Method::GET
        && !headers.contains_key(ORIGIN)
        && is("sec-fetch-mode", "navigate")
        && is("sec-fetch-dest", "document")
}

/// Returns `true` if a request is for a page of the dashboard. `/` is one for browsers only.
pub(super) fn is_dashboard_request(request: &Parts) -> bool {
    let path = request.uri.path();
    let takes_html = || {
        let accepted = request
            .headers
            .get_all(ACCEPT)
            .iter()
            .filter_map(|value| value.to_str().ok());
        accepted.flat_map(|value| value.split(',')).any(|kind| {
            let kind = kind.split(';').next().unwrap_or_default();
            kind.trim().eq_ignore_ascii_case("text/html")
        })
    };
    path == "/ui" || path.starts_with("/ui/") || (path == "/" && takes_html())
}

/// Returns `true` if the head of a request is over the limit: request line, headers, and the blank line.
pub(super) fn is_too_long(request: &Parts) -> bool {
    const LINE: usize = " HTTP/1.1\r\n".len();
    let path = request.uri.path_and_query().map_or(1, |path| path.as_str().len());
    let headers = request.headers.iter();
    let headers: usize = headers
        .map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len())
        .sum();
    request.method.as_str().len() + " ".len() + path + LINE + headers + "\r\n".len() > MAX_HEAD
}
