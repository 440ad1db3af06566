//! [`Jws`]: a token in the compact form of RFC 7515, parsed but not verified.

use pegboard::config::JwtAlgorithm;
use pegboard_protocol::jws::{Compact, Header, decode, typ};

use crate::door::token_fault::TokenFault;

/// The longest token that is parsed.
pub(in crate::door) const MAX_TOKEN: usize = 16 * 1024;

/// The values of `typ` for access tokens.
const ACCESS_TOKEN: [&str; 2] = [typ::ACCESS_TOKEN, "application/at+jwt"];

/// A token whose signature was not verified.
pub(in crate::door) struct Jws<'a> {
    pub(super) algorithm: JwtAlgorithm,
    pub(super) key_id: Option<String>,
    /// What is signed.
    pub(super) signed: &'a [u8],
    pub(super) signature: Vec<u8>,
    /// The claims as JSON.
    pub(in crate::door) payload: Vec<u8>,
    /// Whether the header says that it is an access token, rather than any JWT.
    pub(in crate::door) is_access_token: bool,
}

impl<'a> Jws<'a> {
    /// Parses a token; `None` if it does not have the form of one, so that it may be an opaque token.
    pub(in crate::door) fn parse(token: &'a str) -> Option<Result<Self, TokenFault>> {
        let parts = Compact::split(token)?;
        let header = decode(parts.header)?;
        if !header.starts_with(b"{") {
            return None;
        }
        Some(Self::with_header(&header, parts))
    }

    fn with_header(header: &[u8], parts: Compact<'a>) -> Result<Self, TokenFault> {
        let header: Header = serde_json::from_slice(header).map_err(|_| TokenFault::Malformed)?;
        let algorithm = JwtAlgorithm::ALL.into_iter().find(|known| known.as_str() == header.alg);
        let algorithm = algorithm.ok_or(TokenFault::Algorithm)?;
        if header.crit {
            return Err(TokenFault::Critical);
        }
        // ID tokens of OpenID Connect have no type of their own, so their claims are looked at.
        let kind = header.typ.as_deref().unwrap_or(typ::JWT);
        let is_access_token = ACCESS_TOKEN.iter().any(|known| known.eq_ignore_ascii_case(kind));
        if !is_access_token && !kind.eq_ignore_ascii_case(typ::JWT) {
            return Err(TokenFault::Type);
        }
        let decode = |text: &str| decode(text).ok_or(TokenFault::Malformed);
        Ok(Self {
            algorithm,
            key_id: header.kid,
            signed: parts.signed.as_bytes(),
            signature: decode(parts.signature)?,
            payload: decode(parts.payload)?,
            is_access_token,
        })
    }

    /// The algorithm that the header names.
    pub(in crate::door) fn algorithm(&self) -> JwtAlgorithm {
        self.algorithm
    }
}

#[cfg(test)]
mod tests {
    use pegboard_protocol::jws::encode;

    use super::*;

    fn parse(header: &str, rest: &str) -> Option<Result<(), TokenFault>> {
        let token = format!("{}.{rest}", encode(header));
        Jws::parse(&token).map(|parsed| parsed.map(drop))
    }

    #[test]
    fn a_header_is_taken_or_refused_by_what_it_says() {
        for (header, outcome) in [
            (r#"{"alg":"RS256"}"#, Ok(())),
            (r#"{"alg":"EdDSA","typ":"at+JWT","kid":"a"}"#, Ok(())),
            (
                r#"{"alg":"ES256","typ":"JWT","jwk":{"kty":"oct"},"jku":"https://evil.example"}"#,
                Ok(()),
            ),
            (r#"{"alg":"none"}"#, Err(TokenFault::Algorithm)),
            (r#"{"alg":"None"}"#, Err(TokenFault::Algorithm)),
            (r#"{"alg":""}"#, Err(TokenFault::Algorithm)),
            (r#"{"alg":"HS256"}"#, Err(TokenFault::Algorithm)),
            (r#"{"alg":"rs256"}"#, Err(TokenFault::Algorithm)),
            (r#"{"alg":"RS256","crit":["exp"]}"#, Err(TokenFault::Critical)),
            (r#"{"alg":"RS256","crit":[]}"#, Err(TokenFault::Critical)),
            (r#"{"alg":"RS256","crit":null}"#, Err(TokenFault::Critical)),
            (r#"{"alg":"RS256","typ":"logout+jwt"}"#, Err(TokenFault::Type)),
            (r#"{"alg":"RS256","alg":"none"}"#, Err(TokenFault::Malformed)),
            (r#"{"alg":7}"#, Err(TokenFault::Malformed)),
            (r#"{}"#, Err(TokenFault::Malformed)),
        ] {
            assert_eq!(parse(header, "e30.AAAA"), Some(outcome), "{header}");
        }
    }

    #[test]
    fn what_has_another_form_is_no_jwt() {
        let header = r#"{"alg":"RS256"}"#;
        assert_eq!(parse(header, "e30"), None);
        assert_eq!(parse(header, "e30.AA.BB"), None);
        assert_eq!(parse(header, "e30.A"), Some(Err(TokenFault::Malformed)));
        assert_eq!(parse(header, "e30=.AAAA"), Some(Err(TokenFault::Malformed)));
        assert_eq!(parse("[]", "e30.AAAA"), None);
        for opaque in ["", ".", "..", "pgb_x", "a.b.c", "a.b.c.d.e"] {
            assert!(Jws::parse(opaque).is_none(), "{opaque}");
        }
    }
}
