//! A client's token. The config has only its digest.

use std::{collections::BTreeSet, fmt, str::FromStr};

use pegboard_base::timestamp::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest as _, Sha256};

use crate::{
    choice::words,
    field::DefaultValue,
    key::{choices, optional_count, parse_problem, text, unless},
    policy::Rate,
    setting::Text,
    settings::settings,
};

settings! {
    /// A client's token: its digest, and what its holder may do.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[non_exhaustive]
    pub struct TokenConfig in token = "token" {
        /// The view that its holder uses. Without it, its holder uses the whole board, every server and every view.
        view: Option<String> = text();
        /// What its holder may do: `read` lists tools and shows the state of servers, `call` calls tools, `admin` changes what runs. No scope
        /// includes another.
        scopes: BTreeSet<TokenScope> [default = "TokenScope::default_scopes"] = choices(TokenScope::default_scopes)
            .shown(DefaultValue::Texts(&["read", "call"]));
        /// How often its holder may call tools, such as `60/min`.
        rate: Option<Rate> = text().syntax(Rate::problem, "").aka(&["rate_limit"]);
        /// The most calls of its holder in flight at once; further ones are refused.
        concurrent: Option<usize> = optional_count((1, 1_000_000)).aka(&["max_concurrent", "concurrency"]);
        /// When it expires, such as `2027-01-31T12:00:00Z`.
        expires: Option<Timestamp> = text()
            .syntax(|text| unless(text.trim().parse::<Timestamp>().is_ok(), "must be a time such as `2027-01-31T12:00:00Z`"), "")
            .aka(&["expires_at"]);
    }
    keys {
        /// The SHA-256 digest of the token; `pegboard token new` prints both.
        sha256: Option<Text> = text()
            .syntax(
                |text| parse_problem(text.parse::<TokenDigest>()),
                "`pegboard token hash` reads a token on stdin and prints its digest; the token itself does not belong here",
            )
            .aka(&["hash"]);
    }
    needs {
        /// The SHA-256 digest of the token.
        sha256: TokenDigest;
    }
}

impl TokenConfig {
    /// A token that may list and call all tools of the board, without limits.
    pub fn new(sha256: TokenDigest) -> Self {
        Self::with(sha256)
    }

    /// Whether the time of `expires` has passed.
    pub fn has_expired(&self) -> bool {
        self.expires.is_some_and(|expires| Timestamp::now() >= expires)
    }
}

words! {
    /// What the holder of a token may do. No scope includes another.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum TokenScope as "scope" {
        /// Lists tools, resources and prompts, reads resources, and sees the state of servers.
        Read = "read",
        /// Calls tools.
        Call = "call",
        /// Changes what runs: adds, removes and reconnects servers, reloads the config.
        Admin = "admin",
    }
}

impl TokenScope {
    /// The scopes of a token whose config names none.
    pub(crate) fn default_scopes() -> BTreeSet<Self> {
        BTreeSet::from([Self::Read, Self::Call])
    }
}

/// The SHA-256 digest of a token, written as 64 hexadecimal digits.
///
/// A digest without salt and stretching is enough for tokens of 256 random bits, which cannot be guessed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenDigest([u8; 32]);

/// A text is not a SHA-256 digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a SHA-256 digest: 64 hexadecimal digits, with `sha256:` before them if you like")]
#[non_exhaustive]
pub struct BadTokenDigest;

impl TokenDigest {
    /// The digest of a token.
    pub fn compute(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// Its bytes.
    pub fn to_bytes(self) -> [u8; 32] {
        self.0
    }

    /// Whether two digests are the same, in a time that does not depend on them.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let differing = self.0.iter().zip(other.0).fold(0, |all, (a, b)| all | (a ^ b));
        std::hint::black_box(differing) == 0
    }
}

impl FromStr for TokenDigest {
    type Err = BadTokenDigest;

    fn from_str(text: &str) -> Result<Self, BadTokenDigest> {
        let text = text.trim();
        let digits = text.strip_prefix("sha256:").unwrap_or(text).as_bytes();
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let mut digest = [0; 32];
        if digits.len() != 2 * digest.len() {
            return Err(BadTokenDigest);
        }
        for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
            let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else {
                return Err(BadTokenDigest);
            };
            *byte = high << 4 | low;
        }
        Ok(Self(digest))
    }
}

impl fmt::Display for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for TokenDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TokenDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest of `abc` in FIPS 180-2.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_digest_is_read_and_written_as_hexadecimal_digits() {
        let digest = TokenDigest::compute("abc");
        assert_eq!(digest.to_string(), ABC);
        for text in [
            ABC.to_owned(),
            format!("sha256:{ABC}"),
            ABC.to_uppercase(),
            format!(" {ABC}\n"),
        ] {
            assert_eq!(text.parse(), Ok(digest), "{text}");
        }
        assert!(digest.is_same(&TokenDigest::compute("abc")));
        assert!(!digest.is_same(&TokenDigest::compute("xyz")));
    }

    #[test]
    fn anything_else_is_refused() {
        let bad = [
            "".to_owned(),
            "pgb_secret".to_owned(),
            ABC[1..].to_owned(),
            format!("{ABC}0"),
            format!("md5:{ABC}"),
            format!("+{}", &ABC[1..]),
            "é".repeat(32),
        ];
        for text in bad {
            assert_eq!(text.parse::<TokenDigest>(), Err(BadTokenDigest), "{text}");
        }
    }
}
