//! Whether the page to sign in belongs to the authorization server that gets its codes.
//!
//! A server may name an authorization server whose metadata has the page of another one. A person who knows that page agrees there, and the code
//! goes to the wrong token endpoint (a mix-up). The `iss` of a redirect tells it, where the other one sends it; these rules count where it does not.

use url::{Host, Url};

use super::metadata::ServerMetadata;
use pegboard_config::OAuthConfig;

/// Names of hosts that services of one owner have. Two of them in one domain are one service.
const SERVICES: [&str; 13] = [
    "account", "accounts", "api", "app", "auth", "id", "identity", "login", "mcp", "oauth", "signin", "sso", "www",
];

/// Whether codes of this page may be sent to the token endpoint of `server`.
pub(super) fn is_of(server: &ServerMetadata, page: &Url, settings: &OAuthConfig) -> bool {
    let is_configured = settings.issuer.is_some() || settings.authorization_url.is_some();
    // A redirect without the right `iss` is refused then.
    if is_configured || server.sends_iss || page.origin() == server.token_endpoint.origin() {
        return true;
    }
    let Ok(issuer) = Url::parse(&server.issuer) else {
        return false;
    };
    page.origin() == issuer.origin()
        || (page.scheme() == "https" && issuer.scheme() == "https" && have_one_owner(page, &issuer))
}

/// Whether the names of two hosts say that they have one owner.
fn have_one_owner(a: &Url, b: &Url) -> bool {
    let (Some(Host::Domain(a)), Some(Host::Domain(b))) = (a.host(), b.host()) else {
        return false;
    };
    let is_below = |host: &str, domain: &str| {
        domain.contains('.') && host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
    };
    if a == b || is_below(a, b) || is_below(b, a) {
        return true;
    }
    let (Some((service, domain)), Some((other, other_domain))) = (a.split_once('.'), b.split_once('.')) else {
        return false;
    };
    domain == other_domain && domain.contains('.') && SERVICES.contains(&service) && SERVICES.contains(&other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Issuer, page and token endpoint.
    fn is_taken(issuer: &str, page: &str, token: &str) -> bool {
        let server = ServerMetadata::at_endpoints(issuer, page, token);
        is_of(&server, &page.parse().unwrap(), &OAuthConfig::default())
    }

    #[test]
    fn the_pages_of_known_providers_are_theirs() {
        for (issuer, page, token) in [
            (
                "https://accounts.google.com",
                "https://accounts.google.com/o/oauth2/v2/auth",
                "https://oauth2.googleapis.com/token",
            ),
            (
                "https://login.microsoftonline.com/tenant/v2.0",
                "https://login.microsoftonline.com/tenant/oauth2/v2.0/authorize",
                "https://login.microsoftonline.com/tenant/oauth2/v2.0/token",
            ),
            (
                "https://github.com/login/oauth",
                "https://github.com/login/oauth/authorize",
                "https://github.com/login/oauth/access_token",
            ),
            (
                "https://vercel.com",
                "https://vercel.com/oauth/authorize",
                "https://api.vercel.com/login/oauth/token",
            ),
            (
                "https://api.figma.com",
                "https://www.figma.com/oauth/mcp",
                "https://api.figma.com/v1/oauth/token",
            ),
            (
                "https://cf.mcp.atlassian.com",
                "https://mcp.atlassian.com/v1/authorize",
                "https://cf.mcp.atlassian.com/v1/token",
            ),
            // Amazon Cognito: the page and the token endpoint have another domain than the issuer.
            (
                "https://cognito-idp.eu-west-1.amazonaws.com/pool",
                "https://mine.auth.eu-west-1.amazoncognito.com/oauth2/authorize",
                "https://mine.auth.eu-west-1.amazoncognito.com/oauth2/token",
            ),
        ] {
            assert!(is_taken(issuer, page, token), "{issuer} {page}");
        }
    }

    #[test]
    fn the_page_of_another_is_not() {
        for (issuer, page) in [
            ("https://evil.example", "https://accounts.google.com/o/oauth2/v2/auth"),
            ("https://evil.example", "https://login.example/authorize"),
            ("https://evil.auth0.com", "https://good.auth0.com/authorize"),
            ("https://evil.workers.dev", "https://good.workers.dev/authorize"),
            ("https://login.com", "https://www.com/authorize"),
            ("https://notgithub.com", "https://github.com/login/oauth/authorize"),
            ("https://1.2.3.4", "https://5.2.3.4/authorize"),
            ("http://127.0.0.1:1", "http://127.0.0.1:2/authorize"),
            ("http://api.example.com", "https://www.example.com/authorize"),
            ("urn:x", "https://www.example.com/authorize"),
        ] {
            assert!(!is_taken(issuer, page, &format!("{issuer}/token")), "{issuer} {page}");
        }
    }

    #[test]
    fn the_config_or_the_promise_of_iss_allows_any_page() {
        let mut server = ServerMetadata::at_endpoints(
            "https://as.example",
            "https://page.example/authorize",
            "https://as.example/token",
        );
        let page = server.authorization_endpoint.clone().unwrap();
        let mut settings = OAuthConfig::default();
        assert!(!is_of(&server, &page, &settings));
        settings.issuer = Some("https://as.example".to_owned());
        assert!(is_of(&server, &page, &settings));
        server.sends_iss = true;
        assert!(is_of(&server, &page, &OAuthConfig::default()));
    }
}
