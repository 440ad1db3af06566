//! [`Resource`]: the gateway as a protected resource: its metadata (RFC 9728), and what refused clients are told.

use http::HeaderValue;
use pegboard::config::ServeOAuth;
use serde_json::json;

use crate::door::token_fault::TokenFault;

/// The path of the metadata. That of a resource below the root follows it.
pub(crate) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// What a path of the gateway is for clients that need a token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resource<'a> {
    /// The URL under which clients reach the gateway, without a slash at its end.
    pub(crate) base: &'a str,
    /// The path that clients use; empty for the gateway as a whole.
    pub(crate) path: &'a str,
    pub(crate) settings: &'a ServeOAuth,
}

impl Resource<'_> {
    /// The metadata.
    pub(crate) fn metadata(&self) -> String {
        let mut metadata = json!({
            "resource": format!("{}{}", self.base, self.path),
            "authorization_servers": self.settings.issuers,
            "bearer_methods_supported": ["header"],
            "resource_name": "Pegboard",
        });
        let scopes = self.settings.advertised_scopes();
        if !scopes.is_empty() {
            metadata["scopes_supported"] = json!(scopes);
        }
        metadata.to_string()
    }

    /// The `WWW-Authenticate` header of a response to a client whose token has this fault, or that has none.
    pub(crate) fn challenge(&self, fault: Option<TokenFault>) -> Option<HeaderValue> {
        let mut text = r#"Bearer realm="pegboard""#.to_owned();
        if let Some(fault) = fault {
            let code = fault.code()?;
            text += &format!(r#", error="{code}", error_description="{fault}""#);
        }
        self.finish(text)
    }

    /// The same for a request that the rule of the token does not allow.
    pub(crate) fn scope_challenge(&self) -> Option<HeaderValue> {
        const CHALLENGE: &str = concat!(
            r#"Bearer realm="pegboard", error="insufficient_scope", "#,
            r#"error_description="the rule of this gateway for the access token does not allow the request""#
        );
        self.finish(CHALLENGE.to_owned())
    }

    fn finish(&self, mut text: String) -> Option<HeaderValue> {
        let scopes = self.settings.advertised_scopes().join(" ");
        let is_plain = |text: &str| {
            text.bytes()
                .all(|byte| (b' '..=b'~').contains(&byte) && !b"\"\\".contains(&byte))
        };
        if !scopes.is_empty() && is_plain(&scopes) {
            text += &format!(r#", scope="{scopes}""#);
        }
        let metadata = format!("{}{WELL_KNOWN}{}", self.base, self.path);
        if is_plain(&metadata) {
            text += &format!(r#", resource_metadata="{metadata}""#);
        }
        HeaderValue::try_from(text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_says_what_is_wrong_and_where_to_get_a_token() {
        let mut settings = ServeOAuth::new("https://login.example.com");
        let challenge = |settings: &ServeOAuth, path: &str, fault| {
            let resource = Resource {
                base: "https://mcp.example.com",
                path,
                settings,
            };
            let header = resource.challenge(fault)?;
            Some(header.to_str().unwrap().to_owned())
        };
        assert_eq!(
            challenge(&settings, "/mcp", None).unwrap(),
            r#"Bearer realm="pegboard", resource_metadata="https://mcp.example.com/.well-known/oauth-protected-resource/mcp""#
        );
        settings.required_scopes = vec!["mcp".to_owned(), "offline".to_owned()];
        assert_eq!(
            challenge(&settings, "", Some(TokenFault::Expired)).unwrap(),
            "Bearer realm=\"pegboard\", error=\"invalid_token\", error_description=\"the access token has expired\", scope=\"mcp offline\", \
             resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource\""
        );
        assert!(
            challenge(&settings, "/mcp", Some(TokenFault::Scope))
                .unwrap()
                .contains("insufficient_scope")
        );
        assert_eq!(challenge(&settings, "/mcp", Some(TokenFault::Unavailable)), None);
        let quoted = challenge(&settings, "/mcp/a\"b", None).unwrap();
        assert!(!quoted.contains("resource_metadata"), "{quoted}");
    }
}
