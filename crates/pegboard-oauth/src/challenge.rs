//! Reads `WWW-Authenticate`: what a server says when it refuses a token.

/// The most bytes of a header that are read.
const MAX_BYTES: usize = 16 << 10;
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
        let header = &header[..header.floor_char_boundary(MAX_BYTES)];
        let challenges = parse_all(header);
        let for_token = |(scheme, _): &&(String, Vec<(String, String)>)| is_for_token(scheme);
        let names_metadata =
            |(_, params): &&(String, Vec<(String, String)>)| params.iter().any(|(name, _)| name == "resource_metadata");
        // Of several challenges for tokens, the one that says the most.
        let chosen = challenges
            .iter()
            .filter(for_token)
            .find(names_metadata)
            .or_else(|| {
                challenges
                    .iter()
                    .filter(for_token)
                    .find(|(_, params)| !params.is_empty())
            })
            .or_else(|| challenges.iter().find(names_metadata));
        let mut challenge = Self {
            offers_dpop: challenges.iter().any(|(scheme, params)| offers_dpop(scheme, params)),
            ..Self::default()
        };
        for (name, value) in chosen.map_or(&[][..], |(_, params)| params) {
            match name.as_str() {
                "resource_metadata" => challenge.resource_metadata = Some(value.clone()),
                "scope" => challenge.scopes = scopes(value),
                "error" => challenge.error = Some(value.clone()),
                _ => {}
            }
        }
        challenge
    }

    /// Whether the token is good, but not for this request.
    pub(super) fn wants_more_scopes(&self) -> bool {
        self.error.as_deref() == Some("insufficient_scope")
    }
}

/// Whether a header asks for a token of an authorization server.
pub fn asks_for_token(header: &str) -> bool {
    let header = &header[..header.floor_char_boundary(MAX_BYTES)];
    let names_metadata = |params: &[(String, String)]| params.iter().any(|(name, _)| name == "resource_metadata");
    parse_all(header)
        .iter()
        .any(|(scheme, params)| is_for_token(scheme) || names_metadata(params))
}

/// Whether a header refuses only the proof of a bound token: it lacks the server's nonce, or is not valid for it.
pub(super) fn refuses_proof(header: &str) -> bool {
    let header = &header[..header.floor_char_boundary(MAX_BYTES)];
    let is_for_proof = |(name, value): &(String, String)| name == "error" && PROOF_ERRORS.contains(&value.as_str());
    parse_all(header)
        .iter()
        .any(|(_, params)| params.iter().any(is_for_proof))
}

fn is_for_token(scheme: &str) -> bool {
    matches!(scheme, "bearer" | "dpop")
}

fn offers_dpop(scheme: &str, params: &[(String, String)]) -> bool {
    let mut algs = params.iter().filter(|(name, _)| name == "algs");
    let is_ours = |algs: &str| algs.split_ascii_whitespace().any(|alg| alg == DPOP_ALG);
    scheme == "dpop" && algs.next().is_none_or(|(_, algs)| is_ours(algs))
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

/// Splits a header into challenges: schemes in lower case, and their parameters with names in lower case.
fn parse_all(header: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut challenges: Vec<(String, Vec<(String, String)>)> = Vec::new();
    let mut rest = Rest(header);
    loop {
        rest.skip(|c| c == ',' || c.is_ascii_whitespace());
        let word = rest.token();
        if word.is_empty() {
            // Not part of the grammar: skips one character, or ends.
            if !rest.skip_one() {
                return challenges;
            }
            continue;
        }
        let is_spaced = rest.0.starts_with([' ', '\t']);
        rest.skip(|c| c == ' ' || c == '\t');
        match rest.0.strip_prefix('=') {
            // `token68` credentials end with `=`; a parameter has a value after it.
            Some(after) if !(is_spaced && challenges.is_empty()) => {
                rest = Rest(after);
                rest.skip(|c| c == ' ' || c == '\t');
                let value = rest.value();
                if let Some((_, params)) = challenges.last_mut() {
                    let name = word.to_ascii_lowercase();
                    // The first value counts, so that what follows cannot replace it.
                    if !params.iter().any(|(known, _)| *known == name) {
                        params.push((name, value));
                    }
                }
            }
            _ => challenges.push((word.to_ascii_lowercase(), Vec::new())),
        }
    }
}

struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn skip(&mut self, skipped: impl Fn(char) -> bool) {
        self.0 = self.0.trim_start_matches(skipped);
    }

    fn skip_one(&mut self) -> bool {
        let mut chars = self.0.chars();
        let is_some = chars.next().is_some();
        self.0 = chars.as_str();
        is_some
    }

    /// The characters of a token (RFC 9110), which is a scheme, a name or a value.
    fn token(&mut self) -> &'a str {
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        let end = self.0.find(|c| !is_token(c)).unwrap_or(self.0.len());
        let (token, rest) = self.0.split_at(end);
        self.0 = rest;
        token
    }

    /// A quoted string, or what comes before the next separator: some servers do not quote URLs.
    fn value(&mut self) -> String {
        let Some(quoted) = self.0.strip_prefix('"') else {
            let end = self.0.find([',', ' ', '\t']).unwrap_or(self.0.len());
            let (value, rest) = self.0.split_at(end);
            self.0 = rest;
            return value.to_owned();
        };
        let mut value = String::new();
        let mut chars = quoted.chars();
        while let Some(c) = chars.next() {
            match c {
                '"' => break,
                '\\' => value.extend(chars.next()),
                _ => value.push(c),
            }
        }
        self.0 = chars.as_str();
        value
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
