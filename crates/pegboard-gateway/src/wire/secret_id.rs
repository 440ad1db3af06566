//! [`SecretId`]: the id of a session, 128 random bits.

use std::fmt;

/// The id of a session. It is never printed.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SecretId(u128);

impl SecretId {
    /// The length of its text.
    pub(super) const LENGTH: usize = 32;

    /// A fresh id of the system's random generator.
    pub(super) fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(u128::from_be_bytes(bytes)))
    }

    /// Parses what [`SecretId::text`] writes: 32 lower-case hexadecimal digits.
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        if text.len() != Self::LENGTH {
            return None;
        }
        let mut id = 0;
        for byte in text {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                _ => return None,
            };
            id = id << 4 | u128::from(digit);
        }
        Some(Self(id))
    }

    /// The id as clients send it.
    pub(super) fn text(self) -> String {
        format!("{:032x}", self.0)
    }
}

impl fmt::Debug for SecretId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretId(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_long_and_never_the_same() {
        let (first, second) = (SecretId::random().unwrap(), SecretId::random().unwrap());
        assert_ne!(first, second);
        assert_eq!(first.text().len(), 32);
        assert_eq!(SecretId::parse(first.text().as_bytes()), Some(first));
        assert!(!format!("{first:?}").contains(&first.text()[..4]));
    }

    #[test]
    fn an_id_is_written_in_one_way_only() {
        for text in [
            "",
            "0",
            "00000000000000000000000000000000f",
            "0000000000000000000000000000000F",
            "+000000000000000000000000000000f",
        ] {
            assert_eq!(SecretId::parse(text.as_bytes()), None, "{text}");
        }
    }
}
