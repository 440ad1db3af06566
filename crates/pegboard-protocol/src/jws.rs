//! JSON Web Signatures in compact form (RFC 7515): taken apart and put together. Keys sign and verify elsewhere.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use serde_json::Value;

/// Values of `typ`, which compare without regard to case.
pub mod typ {
    /// A JWT in general.
    pub const JWT: &str = "JWT";
    /// An access token (RFC 9068).
    pub const ACCESS_TOKEN: &str = "at+jwt";
    /// A proof of possession (DPoP, RFC 9449).
    pub const DPOP: &str = "dpop+jwt";
}

/// Values of `alg` that all our keys know.
pub mod alg {
    /// RSA PKCS #1 v1.5 with SHA-256.
    pub const RS256: &str = "RS256";
    /// ECDSA with P-256 and SHA-256.
    pub const ES256: &str = "ES256";
    /// Ed25519.
    pub const EDDSA: &str = "EdDSA";
    /// No signature.
    pub const NONE: &str = "none";
}

/// A token in compact form, split and not yet decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compact<'a> {
    /// The header.
    pub header: &'a str,
    /// The claims.
    pub payload: &'a str,
    /// The signature.
    pub signature: &'a str,
    /// What is signed: header and payload.
    pub signed: &'a str,
}

impl<'a> Compact<'a> {
    /// Splits a token. Returns `None` unless it has three parts.
    pub fn split(token: &'a str) -> Option<Self> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.')?;
        (!payload.contains('.')).then_some(Self {
            header,
            payload,
            signature,
            signed,
        })
    }
}

/// The members of a header that decide how a token is verified. Keys that a token brings along (`jwk`, `jku`, `x5c`, `x5u`) are not among them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Header {
    /// The algorithm of the signature.
    pub alg: String,
    /// The id of the key.
    pub kid: Option<String>,
    /// The type of the token.
    pub typ: Option<String>,
    /// Whether there are members that a verifier has to understand, whatever they are.
    #[serde(default, deserialize_with = "is_present")]
    pub crit: bool,
}

fn is_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    IgnoredAny::deserialize(deserializer).map(|_| true)
}

/// The text that is signed.
pub fn signing_input(header: &Value, claims: &Value) -> String {
    format!("{}.{}", encode_json(header), encode_json(claims))
}

/// Completes the text that was signed to a token.
pub fn attach_signature(mut signed: String, signature: impl AsRef<[u8]>) -> String {
    signed.push('.');
    URL_SAFE_NO_PAD.encode_string(signature, &mut signed);
    signed
}

/// Encodes bytes as base64url without padding.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes base64url without padding.
pub fn decode(text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// Encodes a JSON value as a part of a token.
pub fn encode_json(value: &Value) -> String {
    encode(value.to_string())
}

/// Decodes a part of a token that is JSON.
pub fn decode_json(part: &str) -> Option<Value> {
    serde_json::from_slice(&decode(part)?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_token_is_taken_apart_as_it_was_put_together() {
        let (header, claims) = (json!({"alg": alg::ES256, "typ": typ::JWT}), json!({"sub": "me"}));
        let token = attach_signature(signing_input(&header, &claims), [0xff, 0xfe]);
        let parts = Compact::split(&token).unwrap();
        assert_eq!(decode_json(parts.header), Some(header));
        assert_eq!(decode_json(parts.payload), Some(claims));
        assert_eq!(decode(parts.signature).as_deref(), Some(&[0xff, 0xfe][..]));
        assert_eq!(parts.signed, format!("{}.{}", parts.header, parts.payload));
    }

    #[test]
    fn only_three_parts_are_a_token() {
        for text in ["", ".", "a.b", "a.b.c.d", "a.b.c.d.e"] {
            assert_eq!(Compact::split(text), None, "{text}");
        }
        assert!(Compact::split("..").is_some());
    }

    #[test]
    fn any_crit_counts() {
        for (header, crit) in [
            (r#"{"alg":"RS256"}"#, false),
            (r#"{"alg":"RS256","crit":[]}"#, true),
            (r#"{"alg":"RS256","crit":null}"#, true),
        ] {
            assert_eq!(serde_json::from_str::<Header>(header).unwrap().crit, crit, "{header}");
        }
    }
}
