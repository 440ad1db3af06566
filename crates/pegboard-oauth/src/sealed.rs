//! The content of a file: encrypted with ChaCha20-Poly1305 if there is a key, else plain.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::store_key::StoreKey;

const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Envelope {
    version: u32,
    /// The nonce and the encrypted text, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sealed: Option<String>,
    /// The text itself, on machines without a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    plain: Option<Box<RawValue>>,
}

/// Makes the content of the file `name`. An encrypted text can be read only from a file of that name, so files cannot be swapped.
pub(crate) fn seal(text: Vec<u8>, name: &str, key: &dyn StoreKey) -> Result<Vec<u8>, String> {
    let envelope = match key.key()? {
        None => Envelope {
            version: VERSION,
            sealed: None,
            plain: Some(serde_json::from_slice(&text).map_err(|error| error.to_string())?),
        },
        Some(key) => {
            let mut nonce = [0; NONCE_LEN];
            getrandom::fill(&mut nonce).map_err(|error| error.to_string())?;
            let mut sealed = text;
            cipher(&key)?
                .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(name), &mut sealed)
                .map_err(|_| "it cannot be encrypted".to_owned())?;
            let mut whole = nonce.to_vec();
            whole.append(&mut sealed);
            Envelope {
                version: VERSION,
                sealed: Some(STANDARD.encode(whole)),
                plain: None,
            }
        }
    };
    serde_json::to_vec(&envelope).map_err(|error| error.to_string())
}

/// Why the text in a file cannot be read.
pub(crate) enum Problem {
    /// It will never be readable.
    Damaged(String),
    /// Another program, another key or another time may read it.
    NotNow(String),
}

impl Problem {
    pub(crate) fn why(self) -> String {
        match self {
            Self::Damaged(why) | Self::NotNow(why) => why,
        }
    }
}

impl From<String> for Problem {
    fn from(why: String) -> Self {
        Self::NotNow(why)
    }
}

impl From<&str> for Problem {
    fn from(why: &str) -> Self {
        Self::NotNow(why.to_owned())
    }
}

/// Whether the content of a file is encrypted.
pub(crate) fn is_encrypted(content: &[u8]) -> bool {
    serde_json::from_slice(content).is_ok_and(|envelope: Envelope| envelope.sealed.is_some())
}

/// Returns the text in the file `name`.
pub(crate) fn open(content: &[u8], name: &str, key: &dyn StoreKey) -> Result<Vec<u8>, Problem> {
    let damaged = || Problem::Damaged("it is no file of this program".to_owned());
    let envelope: Envelope = serde_json::from_slice(content).map_err(|_| damaged())?;
    if envelope.version != VERSION {
        return Err("a newer version of this program has written it".into());
    }
    match (envelope.sealed, envelope.plain) {
        (Some(sealed), _) => {
            let key = key.key()?;
            let key = key.ok_or("it is encrypted, and the keyring with its key is not available here")?;
            let broken = || "it cannot be decrypted: it was changed, or encrypted with another key".to_owned();
            let mut sealed = STANDARD.decode(sealed).map_err(|_| broken())?;
            if sealed.len() < NONCE_LEN {
                return Err(broken().into());
            }
            let (nonce, text) = sealed.split_at_mut(NONCE_LEN);
            let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| broken())?;
            let text = cipher(&key)?
                .open_in_place(nonce, Aad::from(name), text)
                .map_err(|_| broken())?;
            Ok(text.to_vec())
        }
        // It was written before there was a key, or by another program that wants its tokens used.
        (None, Some(_)) if key.is_there()? => Err(Problem::Damaged(
            "it is not encrypted, although there is a key for it; sign in again".to_owned(),
        )),
        (None, Some(plain)) => Ok(plain.get().as_bytes().to_vec()),
        (None, None) => Err(damaged()),
    }
}

fn cipher(key: &[u8; 32]) -> Result<LessSafeKey, String> {
    let key = UnboundKey::new(&CHACHA20_POLY1305, key).map_err(|_| "the key cannot be used".to_owned())?;
    Ok(LessSafeKey::new(key))
}
