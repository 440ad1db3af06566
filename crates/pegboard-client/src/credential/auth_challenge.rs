//! [`AuthChallenge`]: a challenge of a `WWW-Authenticate` header.

/// The most bytes of a header that are read.
const MAX_BYTES: usize = 16 << 10;
/// The `error` of a token that is good, but not for this request (RFC 6750).
pub const INSUFFICIENT_SCOPE: &str = "insufficient_scope";

/// A challenge with which a server refuses a credential (RFC 9110).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthChallenge {
    /// The scheme, in lower case.
    pub scheme: String,
    /// The parameters, with names in lower case. Each name is there once.
    pub params: Vec<(String, String)>,
}

impl AuthChallenge {
    /// Splits a header, or several joined by commas, into challenges.
    pub fn parse_all(header: &str) -> Vec<Self> {
        let header = &header[..header.floor_char_boundary(MAX_BYTES)];
        let mut challenges: Vec<Self> = Vec::new();
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
                    if let Some(Self { params, .. }) = challenges.last_mut() {
                        let name = word.to_ascii_lowercase();
                        // The first value counts, so that what follows cannot replace it.
                        if !params.iter().any(|(known, _)| *known == name) {
                            params.push((name, value));
                        }
                    }
                }
                _ => challenges.push(Self {
                    scheme: word.to_ascii_lowercase(),
                    params: Vec::new(),
                }),
            }
        }
    }

    /// The value of a parameter, whose name is in lower case.
    pub fn param(&self, name: &str) -> Option<&str> {
        let mut params = self.params.iter();
        params.find_map(|(known, value)| (known == name).then_some(value.as_str()))
    }

    /// Whether the token lacks scopes.
    #[cfg(any(test, feature = "http", feature = "websocket"))]
    pub(crate) fn lacks_scopes(&self) -> bool {
        self.param("error") == Some(INSUFFICIENT_SCOPE)
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

    #[test]
    fn a_token_lacks_scopes_only_if_the_error_says_so() {
        for (header, expected) in [
            (r#"Bearer error="insufficient_scope", scope="a""#, true),
            ("bearer Error = insufficient_scope", true),
            (r#"Basic realm="x", DPoP error="insufficient_scope""#, true),
            (
                r#"Bearer error="access_denied", error_description="this is not insufficient_scope""#,
                false,
            ),
            (
                r#"Bearer error="access_denied", error_uri="https://x.example/insufficient_scope""#,
                false,
            ),
            (r#"Bearer scope="insufficient_scope""#, false),
            (r#"Bearer realm="error=\"insufficient_scope\"""#, false),
            ("insufficient_scope", false),
            ("", false),
        ] {
            let challenges = AuthChallenge::parse_all(header);
            assert_eq!(challenges.iter().any(AuthChallenge::lacks_scopes), expected, "{header}");
        }
    }
}
