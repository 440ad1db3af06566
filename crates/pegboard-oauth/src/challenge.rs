//! Reads `WWW-Authenticate`: what a server says when it refuses a token.

use pegboard_client::credential::{AuthChallenge, INSUFFICIENT_SCOPE};

/// The scope that asks for a refresh token.
pub(super) const OFFLINE_ACCESS: &str = "offline_access";
/// The most scopes that a challenge, a metadata document or a token response names.
const MAX_SCOPES: usize = 256;
/// The algorithm of all proofs of possession.
pub(super) const DPOP_ALG: &str = "ES256";
/// The errors that are about a proof (RFC 9449).
pub(super) const PROOF_ERRORS: [&str; 2] = ["use_dpop_nonce", "invalid_dpop_proof"];

/// The challenge for a token (RFC 6750, RFC 9449, RFC 9728).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// The URL of the protected-resource metadata.
    pub(super) resource_metadata: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) error: Option<String>,
    /// Whether the server takes tokens that are bound to a key (RFC 9449), with proofs in an algorithm that this program has.
    pub(super) offers_dpop: bool,
}

impl Challenge {
    /// Reads the values of all `WWW-Authenticate` headers, joined by commas. A challenge of a scheme without tokens counts only if it names metadata
    /// and none with tokens does.
    pub(super) fn parse(header: &str) -> Self {
        let challenges = AuthChallenge::parse_all(header);
        let for_token = || challenges.iter().filter(|challenge| is_for_token(challenge));
        // Of several challenges for tokens, the one that says the most.
        let chosen = for_token()
            .find(|challenge| names_metadata(challenge))
            .or_else(|| for_token().find(|challenge| !challenge.params.is_empty()))
            .or_else(|| challenges.iter().find(|challenge| names_metadata(challenge)));
        let param = |name| chosen.and_then(|challenge| challenge.param(name));
        Self {
            resource_metadata: param("resource_metadata").map(str::to_owned),
            scopes: param("scope").map(scopes).unwrap_or_default(),
            error: param("error").map(str::to_owned),
            offers_dpop: challenges.iter().any(offers_dpop),
        }
    }

    /// Whether the token is good, but not for this request.
    pub(super) fn wants_more_scopes(&self) -> bool {
        self.error.as_deref() == Some(INSUFFICIENT_SCOPE)
    }
}

/// Whether a header asks for a token of an authorization server.
pub fn asks_for_token(header: &str) -> bool {
    let challenges = AuthChallenge::parse_all(header);
    challenges
        .iter()
        .any(|challenge| is_for_token(challenge) || names_metadata(challenge))
}

/// Whether a header refuses only the proof of a bound token: it lacks the server's nonce, or is not valid for it.
pub(super) fn refuses_proof(header: &str) -> bool {
    let is_for_proof = |challenge: &AuthChallenge| {
        challenge
            .param("error")
            .is_some_and(|error| PROOF_ERRORS.contains(&error))
    };
    AuthChallenge::parse_all(header).iter().any(is_for_proof)
}

fn is_for_token(challenge: &AuthChallenge) -> bool {
    matches!(challenge.scheme.as_str(), "bearer" | "dpop")
}

fn names_metadata(challenge: &AuthChallenge) -> bool {
    challenge.param("resource_metadata").is_some()
}

fn offers_dpop(challenge: &AuthChallenge) -> bool {
    let is_ours = |algs: &str| algs.split_ascii_whitespace().any(|alg| alg == DPOP_ALG);
    challenge.scheme == "dpop" && challenge.param("algs").is_none_or(is_ours)
}

/// The scopes in a string, each once and in their order.
pub(super) fn scopes(text: &str) -> Vec<String> {
    let mut scopes = Vec::new();
    add_scopes(&mut scopes, text.split_ascii_whitespace());
    scopes
}

/// Adds scopes that are not there yet. Those with characters that a scope cannot have are left out.
pub(super) fn add_scopes<'a>(scopes: &mut Vec<String>, more: impl IntoIterator<Item = &'a str>) {
    let is_allowed = |byte: u8| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
    for scope in more {
        let is_scope = !scope.is_empty() && scope.bytes().all(is_allowed);
        if is_scope && scopes.len() < MAX_SCOPES && !scopes.iter().any(|known| known == scope) {
            scopes.push(scope.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge(metadata: Option<&str>, scopes: &[&str], error: Option<&str>) -> Challenge {
        Challenge {
            resource_metadata: metadata.map(str::to_owned),
            scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
            error: error.map(str::to_owned),
            offers_dpop: false,
        }
    }

    #[test]
    fn a_bearer_challenge_is_found_among_others_and_in_every_notation() {
        let url = "https://mcp.example/.well-known/oauth-protected-resource";
        for header in [
            format!(r#"Bearer resource_metadata="{url}", scope="a b""#),
            format!(r#"bearer Scope="a b a",Resource_Metadata="{url}""#),
            format!(
                r#"Basic realm="x, y", Bearer realm="Bearer scope=\"no\"", scope="a b", resource_metadata="{url}""#
            ),
            format!(r#"Negotiate, Bearer scope = "a b" , resource_metadata={url}, DPoP algs="ES256""#),
            format!(r#"Bearer error_description="none", Bearer scope="a b", resource_metadata="{url}""#),
            format!(r#"NTLM TlRMTVNTUAAC==, Bearer scope="a b", resource_metadata="{url}""#),
            format!(r#"DPoP resource_metadata="{url}", scope="a b""#),
            format!(
                r#"Bearer scope="a b", scope="c", resource_metadata="{url}", resource_metadata="https://evil.example/""#
            ),
        ] {
            let expected = Challenge {
                offers_dpop: header.contains("DPoP"),
                ..challenge(Some(url), &["a", "b"], None)
            };
            assert_eq!(Challenge::parse(&header), expected, "{header}");
        }
    }

    #[test]
    fn a_challenge_for_bound_tokens_is_read_like_one_for_bearer_tokens() {
        for (header, offers_dpop) in [
            (
                r#"DPoP error="insufficient_scope", scope="a", algs="PS256 ES256""#,
                true,
            ),
            (r#"dpop scope="a", error=insufficient_scope"#, true),
            (r#"DPoP error="insufficient_scope", scope="a", algs="ES384""#, false),
            (r#"DPoP algs="", error="insufficient_scope", scope="a""#, false),
            (r#"Bearer, DPoP error="insufficient_scope", scope="a""#, true),
            (
                r#"Bearer error="insufficient_scope", scope="a", DPoP algs="ES256""#,
                true,
            ),
            (r#"Bearer error="insufficient_scope", scope="a", algs="ES256""#, false),
        ] {
            let expected = Challenge {
                offers_dpop,
                ..challenge(None, &["a"], Some("insufficient_scope"))
            };
            assert_eq!(Challenge::parse(header), expected, "{header}");
            assert!(asks_for_token(header), "{header}");
        }
    }

    #[test]
    fn a_challenge_without_parameters_says_nothing() {
        for header in [
            "",
            "Bearer",
            "Basic realm=\"x\"",
            ",,,",
            "\"",
            "=\"x\"",
            "Bearer scope=\"",
            "é Bearer",
        ] {
            let parsed = Challenge::parse(header);
            assert_eq!(parsed, Challenge::default(), "{header}");
        }
    }

    #[test]
    fn a_refusal_for_lack_of_scopes_is_recognised() {
        let parsed = Challenge::parse(r#"Bearer error="insufficient_scope", scope="files:write""#);
        assert!(parsed.wants_more_scopes());
        assert_eq!(parsed, challenge(None, &["files:write"], Some("insufficient_scope")));
        assert!(!Challenge::parse(r#"Bearer error="invalid_token""#).wants_more_scopes());
    }

    #[test]
    fn scopes_that_could_not_be_sent_are_left_out() {
        assert_eq!(scopes("a \"b\" c\\d e\u{7f} f  a"), ["a", "f"]);
    }
}
