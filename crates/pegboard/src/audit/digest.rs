//! SHA-256 and HMAC-SHA-256, and their form as hexadecimal digits.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// The block of SHA-256 in bytes, which HMAC pads its key to.
const BLOCK: usize = 64;

/// A SHA-256 hash or HMAC.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    /// The `prev` of the first record of a log.
    pub(super) const ZERO: Self = Self([0; 32]);

    pub(crate) fn compute(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The HMAC of this digest under a key.
    pub(super) fn to_hmac(self, key: &[u8; 32]) -> Self {
        let padded = |pad: u8| {
            let mut block = [pad; BLOCK];
            block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
            block
        };
        let inner = Sha256::new().chain_update(padded(0x36)).chain_update(self.0).finalize();
        Self(
            Sha256::new()
                .chain_update(padded(0x5c))
                .chain_update(inner)
                .finalize()
                .into(),
        )
    }

    /// Parses 64 lower-case hexadecimal digits.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        hex(text, &mut bytes).then_some(Self(bytes))
    }
}

/// Decodes lower-case hexadecimal digits. Returns whether there are exactly as many as needed.
pub(super) fn hex(text: &str, bytes: &mut [u8]) -> bool {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() || pairs.len() != bytes.len() {
        return false;
    }
    for ([high, low], byte) in pairs.iter().zip(bytes) {
        match (digit(*high), digit(*low)) {
            (Some(high), Some(low)) => *byte = high << 4 | low,
            _ => return false,
        }
    }
    true
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231 has no vector with a 32-byte key and a 32-byte message, so this one was computed with another implementation.
    #[test]
    fn a_keyed_digest_is_hmac_sha_256() {
        let key: [u8; 32] = std::array::from_fn(|at| u8::try_from(at).unwrap());
        assert_eq!(Digest::compute(b"{}").to_hmac(&key).to_string(), HMAC_OF_EMPTY_OBJECT);
    }

    const HMAC_OF_EMPTY_OBJECT: &str = "e36e9bba45e92d3b6bf2780dbc58dc30d184b6a2c461349ce0119e80bbc5f07c";

    #[test]
    fn a_digest_reads_only_its_own_form() {
        let digest = Digest::compute(b"x");
        assert_eq!(Digest::parse(&digest.to_string()), Some(digest));
        for bad in [
            "",
            "00",
            &"0".repeat(63),
            &"G".repeat(64),
            &"A".repeat(64),
            &"0".repeat(66),
        ] {
            assert_eq!(Digest::parse(bad), None, "{bad}");
        }
    }
}
