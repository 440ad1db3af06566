//! The cookie that identifies the visit of a browser.

use http::{HeaderMap, HeaderValue, header::COOKIE};
use pegboard::Secret;

/// How long a browser keeps it. The visit may end sooner.
const MAX_AGE: u32 = 30 * 60;

/// The name of the cookie. Over TLS a browser takes one of this name only from this very host.
fn name(base: &str) -> &'static str {
    match is_secure(base) {
        true => "__Host-pegboard-signin",
        false => "pegboard-signin",
    }
}

fn is_secure(base: &str) -> bool {
    base.starts_with("https:")
}

/// The value of the cookie in a request to a page under `base`.
pub(super) fn sent(headers: &HeaderMap, base: &str) -> Option<Secret> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name(base))?;
    Some(Secret::from(value))
}

/// The header that sets the cookie for the pages under `base`.
pub(super) fn set(base: &str, value: &Secret) -> Option<HeaderValue> {
    let secure = if is_secure(base) { "; Secure" } else { "" };
    let text = format!(
        "{}={}; Path=/; HttpOnly; SameSite=Lax; Max-Age={MAX_AGE}{secure}",
        name(base),
        value.expose()
    );
    let mut header = HeaderValue::try_from(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_tls_only_the_cookie_of_this_host_counts() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, HeaderValue::from_static("a=b; pegboard-signin=plain"));
        headers.append(COOKIE, HeaderValue::from_static("x=y;__Host-pegboard-signin=secure"));
        assert_eq!(sent(&headers, "https://gateway.example").unwrap().expose(), "secure");
        assert_eq!(sent(&headers, "http://localhost:1").unwrap().expose(), "plain");
        let set = |base| set(base, &Secret::from("v")).unwrap();
        assert_eq!(
            set("https://gateway.example"),
            "__Host-pegboard-signin=v; Path=/; HttpOnly; SameSite=Lax; Max-Age=1800; Secure"
        );
        assert_eq!(
            set("http://localhost:1"),
            "pegboard-signin=v; Path=/; HttpOnly; SameSite=Lax; Max-Age=1800"
        );
        assert!(!format!("{:?}", set("http://localhost:1")).contains("=v"));
    }
}
