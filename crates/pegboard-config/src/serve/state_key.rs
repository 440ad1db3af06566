//! The key that several gateways share, so that each opens what another one sealed.

use std::fmt;

use base64::{
    Engine as _,
    alphabet::{STANDARD, URL_SAFE},
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::{from_setting::FromSetting, setting::Setting};
use pegboard_base::secret::Secret;

/// A key of 32 bytes, written in base64. It is hidden wherever it is printed.
#[derive(Clone, PartialEq, Eq)]
pub struct StateKey([u8; Self::LENGTH]);

/// A text is not a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadStateKey {
    /// It is not base64.
    #[error("must be 32 bytes in base64, and is no base64")]
    NotBase64,
    /// It has another length.
    #[error("must be 32 bytes in base64, and has {0}")]
    Length(usize),
    /// All its bytes are the same.
    #[error("must be 32 random bytes in base64, and all of its bytes are the same")]
    NotRandom,
}

impl StateKey {
    /// The length of a key.
    pub const LENGTH: usize = 32;

    /// Parses base64 of either alphabet, with or without padding.
    pub fn parse(text: &str) -> Result<Self, BadStateKey> {
        let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
        let text = text.trim();
        let decode = |alphabet| GeneralPurpose::new(alphabet, config).decode(text);
        let bytes = decode(&STANDARD)
            .or_else(|_| decode(&URL_SAFE))
            .map_err(|_| BadStateKey::NotBase64)?;
        let key: [u8; Self::LENGTH] = bytes
            .try_into()
            .map_err(|bytes: Vec<u8>| BadStateKey::Length(bytes.len()))?;
        match key.iter().all(|byte| *byte == key[0]) {
            true => Err(BadStateKey::NotRandom),
            false => Ok(Self(key)),
        }
    }

    /// The key as it is written.
    pub(crate) fn to_secret(&self) -> Secret {
        Secret::from(base64::engine::general_purpose::STANDARD.encode(self.0))
    }

    /// Its bytes.
    pub fn expose(&self) -> &[u8; Self::LENGTH] {
        &self.0
    }
}

impl fmt::Debug for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(pegboard_base::secret::HIDDEN)
    }
}

impl Serialize for StateKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_secret().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StateKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Secret::deserialize(deserializer)?;
        Self::parse(text.expose()).map_err(D::Error::custom)
    }
}

/// A key that does not parse is reported when the config is checked.
impl FromSetting for StateKey {
    fn from_setting(setting: &Setting) -> Option<Self> {
        Self::parse(&String::from_setting(setting)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pegboard_base::secret::WithSecrets;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHv8=";

    #[test]
    fn a_key_is_read_in_both_alphabets() {
        let key = StateKey::parse(KEY).unwrap();
        assert_eq!((key.expose()[0], key.expose()[31]), (0, 255));
        for text in [KEY.trim_end_matches('='), &KEY.replace('/', "_"), &format!(" {KEY}\n")] {
            assert_eq!(StateKey::parse(text), Ok(key.clone()), "{text}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused_without_being_repeated() {
        for (text, error) in [
            ("", BadStateKey::Length(0)),
            ("aHVudGVyMg==", BadStateKey::Length(7)),
            (&"A".repeat(44), BadStateKey::Length(33)),
            (&"A".repeat(43), BadStateKey::NotRandom),
            ("hunter2 is my key", BadStateKey::NotBase64),
        ] {
            assert_eq!(StateKey::parse(text), Err(error), "{text}");
            assert!(!error.to_string().contains("hunter2"));
        }
    }

    #[test]
    fn a_key_is_hidden_unless_it_is_stored_with_secrets() {
        let key = StateKey::parse(KEY).unwrap();
        assert_eq!(format!("{key:?}"), "****");
        assert_eq!(serde_json::to_string(&key).unwrap(), "\"****\"");
        let stored = serde_json::to_string(&WithSecrets::new(&key)).unwrap();
        assert_eq!(serde_json::from_str::<StateKey>(&stored).unwrap(), key);
        assert!(serde_json::from_str::<StateKey>("\"****\"").is_err());
    }
}
