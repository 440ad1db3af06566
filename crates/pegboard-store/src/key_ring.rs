//! [`KeyRing`]: the keys that values are sealed with.

use std::fmt;

use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    rand::{SecureRandom, SystemRandom},
};

/// One or two keys that all users of a store have. The first seals, and all open, so that a key is replaced in two steps: every process gets the new
/// key as its second one, and then as its first.
pub struct KeyRing {
    first: LessSafeKey,
    second: Option<LessSafeKey>,
    random: SystemRandom,
}

impl KeyRing {
    /// The length of a key.
    pub const KEY_LENGTH: usize = 32;

    /// By how much a sealed value is larger.
    pub(crate) const OVERHEAD: usize = NONCE_LEN + 16;

    /// Creates a ring of the key that seals, and of another one that opens what is left from before a change of keys.
    pub fn new(first: &[u8; Self::KEY_LENGTH], second: Option<&[u8; Self::KEY_LENGTH]>) -> Self {
        Self {
            first: sealing_key(first),
            second: second.map(sealing_key),
            random: SystemRandom::new(),
        }
    }

    /// Encrypts a value. Only [`KeyRing::open`] with the same context decrypts it. `None` if the system has no random numbers.
    pub fn seal(&self, context: &[u8], value: &[u8]) -> Option<Vec<u8>> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).ok()?;
        let mut sealed = Vec::with_capacity(value.len() + Self::OVERHEAD);
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(value);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self
            .first
            .seal_in_place_separate_tag(nonce, Aad::from(context), &mut sealed[NONCE_LEN..])
            .ok()?;
        sealed.extend_from_slice(tag.as_ref());
        Some(sealed)
    }

    /// Decrypts a value with whichever key sealed it. `None` if neither has, or the context is another one.
    pub fn open(&self, context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let open_with = |key: &LessSafeKey| {
            let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
            let mut opened = sealed.to_vec();
            let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
            let length = key.open_in_place(nonce, Aad::from(context), &mut opened).ok()?.len();
            opened.truncate(length);
            Some(opened)
        };
        open_with(&self.first).or_else(|| open_with(self.second.as_ref()?))
    }
}

impl fmt::Debug for KeyRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRing").finish_non_exhaustive()
    }
}

fn sealing_key(bytes: &[u8; KeyRing::KEY_LENGTH]) -> LessSafeKey {
    let Ok(key) = UnboundKey::new(&CHACHA20_POLY1305, bytes) else {
        unreachable!("the key has the length that the algorithm wants")
    };
    LessSafeKey::new(key)
}
