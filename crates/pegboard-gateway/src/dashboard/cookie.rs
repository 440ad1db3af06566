//! The cookie that identifies the session of a browser.

use http::{
    HeaderMap, HeaderValue,
    header::{COOKIE, HOST},
};
use pegboard::Secret;

use super::tables::SESSION_TIME;

/// The name of the cookie. Over TLS a browser takes one of this name only from this very host. Without TLS it sends cookies to all ports of the
/// host, so the port is in the name: two gateways of a machine do not replace each other's.
fn name(headers: &HeaderMap, is_secure: bool) -> String {
    let host = headers
        .get(HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    let port = host.rsplit_once(':').map(|(_, port)| port);
    let is_port = |port: &&str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match (is_secure, port.filter(is_port)) {
        (true, _) => "__Host-pegboard-dashboard".to_owned(),
        (false, Some(port)) => format!("pegboard-dashboard-{port}"),
        (false, None) => "pegboard-dashboard".to_owned(),
    }
}

/// The value of the cookie in a request.
pub(super) fn find(headers: &HeaderMap, is_secure: bool) -> Option<Secret> {
    let lines = headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = lines
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .peekable();
    pairs.peek()?;
    let name = name(headers, is_secure);
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    Some(Secret::from(value))
}

/// The header that sets the cookie in a browser that has sent these headers, or with an empty value removes it.
pub(super) fn set(headers: &HeaderMap, is_secure: bool, value: &str) -> Option<HeaderValue> {
    let secure = if is_secure { "; Secure" } else { "" };
    let age = if value.is_empty() { 0 } else { SESSION_TIME.as_secs() };
    let name = name(headers, is_secure);
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{secure}");
    let mut header = HeaderValue::try_from(text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &'static str, cookie: &'static str) -> HeaderMap {
        HeaderMap::from_iter([
            (HOST, HeaderValue::from_static(host)),
            (COOKIE, HeaderValue::from_static(cookie)),
        ])
    }

    #[test]
    fn each_gateway_of_a_machine_has_its_own_cookie_and_over_tls_only_that_of_the_host_counts() {
        let cookie = "a=b; pegboard-dashboard-7337=mine;__Host-pegboard-dashboard=secure";
        let sent = |host, is_secure| find(&headers(host, cookie), is_secure).map(|value| value.expose().to_owned());
        assert_eq!(sent("127.0.0.1:7337", false).as_deref(), Some("mine"));
        assert_eq!(sent("[::1]:7337", false).as_deref(), Some("mine"));
        assert_eq!(sent("127.0.0.1:8000", false), None);
        assert_eq!(sent("127.0.0.1:7337", true).as_deref(), Some("secure"));
        assert_eq!(
            find(&HeaderMap::new(), true).map(|value| value.expose().to_owned()),
            None
        );
    }

    #[test]
    fn no_script_reads_the_cookie_and_no_other_site_sends_it() {
        let set = |host, is_secure, value| set(&headers(host, "x=y"), is_secure, value).unwrap();
        assert_eq!(
            set("localhost:1", false, "v"),
            "pegboard-dashboard-1=v; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200"
        );
        assert_eq!(
            set("gateway.example", true, "v"),
            "__Host-pegboard-dashboard=v; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200; Secure"
        );
        assert!(set("localhost", false, "").to_str().unwrap().ends_with("Max-Age=0"));
        assert!(!format!("{:?}", set("localhost", false, "v")).contains("=v"));
    }
}
