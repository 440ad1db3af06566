//! The cookie that identifies the visit of a browser.

use http::{HeaderMap, HeaderValue, header::COOKIE};
use pegboard::Secret;

/// How long a browser keeps it. The visit may end sooner.
const MAX_AGE: u32 = 30 * 60;

/// The name of the cookie. Over TLS a browser takes one of this name only from this very host. Without TLS it sends cookies to all ports of the
/// host, so the port is in the name: two gateways of a machine do not replace each other's.
fn name(base: &str) -> String {
    let port = url::Url::parse(base).ok().and_then(|base| base.port());
    match (is_secure(base), port) {
        (true, _) => "__Host-pegboard-signin".to_owned(),
        (false, Some(port)) => format!("pegboard-signin-{port}"),
        (false, None) => "pegboard-signin".to_owned(),
    }
}

/// The path that the cookie is for. Without TLS it is that of the pages, so that few requests to other ports carry it.
fn path(base: &str) -> String {
    let prefix =
        url::Url::parse(base).map_or_else(|_| String::new(), |base| base.path().trim_end_matches('/').to_owned());
    match is_secure(base) {
        // A name with `__Host-` demands it.
        true => "/".to_owned(),
        false => format!("{prefix}/signin"),
    }
}

fn is_secure(base: &str) -> bool {
    base.starts_with("https:")
}

/// The value of the cookie in a request to a page under `base`.
pub(super) fn find(headers: &HeaderMap, base: &str) -> Option<Secret> {
    let name = name(base);
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    Some(Secret::from(value))
}

/// The header that sets the cookie for the pages under `base`.
pub(super) fn set(base: &str, value: &Secret) -> Option<HeaderValue> {
    let secure = if is_secure(base) { "; Secure" } else { "" };
    let text = format!(
        "{}={}; Path={}; HttpOnly; SameSite=Lax; Max-Age={MAX_AGE}{secure}",
        name(base),
        value.expose(),
        path(base)
    );
    let mut header = HeaderValue::try_from(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_tls_each_gateway_of_a_machine_has_its_own_cookie_and_only_the_pages_get_it() {
        let mut headers = HeaderMap::new();
        headers.append(
            COOKIE,
            HeaderValue::from_static("pegboard-signin-7337=mine; pegboard-signin=old"),
        );
        let sent = |base| find(&headers, base).map(|value| value.expose().to_owned());
        assert_eq!(sent("http://127.0.0.1:7337").as_deref(), Some("mine"));
        assert_eq!(sent("http://127.0.0.1:8000"), None);
        assert_eq!(sent("https://127.0.0.1:7337"), None);
        let set = |base| set(base, &Secret::from("v")).unwrap();
        assert_eq!(
            set("http://localhost:1/tools"),
            "pegboard-signin-1=v; Path=/tools/signin; HttpOnly; SameSite=Lax; Max-Age=1800"
        );
    }

    #[test]
    fn over_tls_only_the_cookie_of_this_host_counts() {
        let mut headers = HeaderMap::new();
        headers.append(
            COOKIE,
            HeaderValue::from_static("a=b; pegboard-signin-2=other; pegboard-signin-1=plain"),
        );
        headers.append(COOKIE, HeaderValue::from_static("x=y;__Host-pegboard-signin=secure"));
        assert_eq!(find(&headers, "https://gateway.example").unwrap().expose(), "secure");
        assert_eq!(find(&headers, "http://localhost:1").unwrap().expose(), "plain");
        let set = |base| set(base, &Secret::from("v")).unwrap();
        assert_eq!(
            set("https://gateway.example"),
            "__Host-pegboard-signin=v; Path=/; HttpOnly; SameSite=Lax; Max-Age=1800; Secure"
        );
        assert_eq!(
            set("http://localhost:1"),
            "pegboard-signin-1=v; Path=/signin; HttpOnly; SameSite=Lax; Max-Age=1800"
        );
        assert!(!format!("{:?}", set("http://localhost:1")).contains("=v"));
    }
}
