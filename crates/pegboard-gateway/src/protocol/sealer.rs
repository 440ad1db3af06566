//! [`Sealer`]: encrypts what a client keeps for us between two requests, so that it is of use only to that client's principal at
//! that endpoint.

use std::{
    fmt,
    hash::{BuildHasher as _, RandomState},
};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use pegboard::Principal;
use pegboard_protocol::{RpcError, code};
use pegboard_store::KeyRing;
use serde_json::json;

/// The limit on what is sealed. Clients keep it and send it back, and servers rarely have more than an id to remember.
const MAX_SEALED: usize = 64 * 1024;

/// What a sealed text is, as its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Names a call that waits for the client's answers.
    ParkedCall = 1,
    /// Whatever a service keeps there, such as a server's own state.
    Service = 2,
    /// What the handshake of a session has settled.
    Session = 3,
}

/// The process that something was sealed by, for as long as it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReplicaId(pub(crate) u64);

/// Encrypts and authenticates with a key of this process, or with one that several processes share.
pub struct Sealer {
    ring: KeyRing,
    replica: ReplicaId,
}

impl Sealer {
    /// The length of a key.
    pub const KEY_LENGTH: usize = KeyRing::KEY_LENGTH;

    /// Creates a sealer with a random key. What it seals is of no use after the process has ended.
    pub fn random() -> std::io::Result<Self> {
        let mut key = [0; Self::KEY_LENGTH];
        getrandom::fill(&mut key)?;
        Ok(Self::with_key(&key))
    }

    /// Creates a sealer with a key, so that several processes can open what one of them seals.
    pub fn with_key(key: &[u8; Self::KEY_LENGTH]) -> Self {
        Self::with_keys(key, None)
    }

    /// Creates a sealer with a key that also opens what was sealed with another one, before the key was changed.
    pub fn with_keys(key: &[u8; Self::KEY_LENGTH], previous: Option<&[u8; Self::KEY_LENGTH]>) -> Self {
        Self {
            ring: KeyRing::new(key, previous),
            replica: ReplicaId(RandomState::new().hash_one(())),
        }
    }

    /// This process.
    pub(crate) fn replica(&self) -> ReplicaId {
        self.replica
    }

    /// Encrypts `bytes`. They are opened with the same context only. `None` if the system has no random numbers.
    pub(crate) fn seal(&self, context: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
        self.ring.seal(context, bytes)
    }

    /// Opens what [`Sealer::seal`] returned for the same context.
    pub(crate) fn open(&self, context: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        self.ring.open(context, sealed)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").finish_non_exhaustive()
    }
}

/// A sealer for the clients of one endpoint.
#[derive(Debug)]
pub(super) struct EndpointSealer {
    pub(super) sealer: std::sync::Arc<Sealer>,
    /// The path of the endpoint.
    pub(super) endpoint: Box<str>,
}

impl EndpointSealer {
    pub(super) fn seal(
        &self,
        principal: Option<&Principal>,
        purpose: Purpose,
        bytes: &[u8],
    ) -> Result<String, RpcError> {
        if bytes.len() > MAX_SEALED {
            let message = format!("the request state has more than {MAX_SEALED} bytes");
            return Err(RpcError::new(code::INTERNAL_ERROR, message));
        }
        let plain = [&[purpose as u8], bytes].concat();
        let sealed = self
            .sealer
            .seal(&self.context(principal), &plain)
            .ok_or_else(|| RpcError::new(code::INTERNAL_ERROR, "the request state cannot be encrypted"))?;
        Ok(BASE64_URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Opens what [`EndpointSealer::seal`] returned for the same principal.
    pub(super) fn open(&self, principal: Option<&Principal>, text: &str) -> Result<(Purpose, Vec<u8>), RpcError> {
        let refused = || {
            // It may be one from before a restart.
            let message = "`requestState` is not one that this endpoint gave to you, or the server has restarted since; a call that it \
                           continues may have taken effect, so check that before you make it again";
            RpcError::invalid_params(message).data(json!({"may_have_executed": true}))
        };
        // Base64 needs four bytes for three.
        if text.len() > (MAX_SEALED + 64).div_ceil(3) * 4 {
            return Err(refused());
        }
        let sealed = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| refused())?;
        let opened = self
            .sealer
            .open(&self.context(principal), &sealed)
            .ok_or_else(refused)?;
        let (purpose, bytes) = opened.split_first().ok_or_else(refused)?;
        let purpose = match purpose {
            1 => Purpose::ParkedCall,
            2 => Purpose::Service,
            3 => Purpose::Session,
            _ => return Err(refused()),
        };
        Ok((purpose, bytes.to_vec()))
    }

    /// What is authenticated with the text: for whom and where it was sealed. The length keeps the two apart.
    fn context(&self, principal: Option<&Principal>) -> Vec<u8> {
        let name = principal.map(Principal::as_str);
        let length = name.map_or(u64::MAX, |name| name.len() as u64);
        let mut context = length.to_be_bytes().to_vec();
        context.extend_from_slice(name.unwrap_or_default().as_bytes());
        context.extend_from_slice(self.endpoint.as_bytes());
        context
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn at(endpoint: &str, key: u8) -> EndpointSealer {
        EndpointSealer {
            sealer: Arc::new(Sealer::with_key(&[key; 32])),
            endpoint: endpoint.into(),
        }
    }

    #[test]
    fn only_the_same_principal_opens_it_at_the_same_endpoint() {
        let (ada, bob) = (Principal::new("ada"), Principal::new("bob"));
        let sealer = at("/mcp", 1);
        let sealed = sealer.seal(Some(&ada), Purpose::Service, b"secret").unwrap();
        assert!(!sealed.contains("secret"));
        let opened = sealer.open(Some(&ada), &sealed).unwrap();
        assert_eq!(opened, (Purpose::Service, b"secret".to_vec()));
        assert!(
            at("/mcp", 1).open(Some(&ada), &sealed).is_ok(),
            "another process with the same key"
        );
        for (sealer, principal) in [
            (at("/mcp", 1), Some(&bob)),
            (at("/mcp", 1), None),
            (at("/mcp", 1), Some(&Principal::new("ada/mc"))),
            (at("/mcp/x", 1), Some(&ada)),
            (at("a/mcp", 1), Some(&Principal::new("ad"))),
            (at("/mcp", 2), Some(&ada)),
        ] {
            let error = sealer.open(principal, &sealed).unwrap_err();
            assert_eq!(error.code, code::INVALID_PARAMS, "{sealer:?} {principal:?}");
        }
    }

    #[test]
    fn a_key_can_be_changed_in_two_steps() {
        let (old, new) = (Sealer::with_key(&[1; 32]), Sealer::with_keys(&[2; 32], Some(&[1; 32])));
        let (of_old, of_new) = (old.seal(b"x", b"a").unwrap(), new.seal(b"x", b"b").unwrap());
        assert_eq!(new.open(b"x", &of_old).as_deref(), Some(&b"a"[..]));
        assert_eq!(new.open(b"x", &of_new).as_deref(), Some(&b"b"[..]));
        assert_eq!(old.open(b"x", &of_new), None);
        assert_eq!(new.open(b"y", &of_old), None, "another context");
        assert_eq!(Sealer::with_key(&[2; 32]).open(b"x", &of_old), None);
    }

    #[test]
    fn what_was_altered_is_refused() {
        let sealer = at("/mcp", 1);
        let sealed = sealer.seal(None, Purpose::ParkedCall, &[7; 16]).unwrap();
        for index in 0..sealed.len() {
            let mut altered = sealed.clone().into_bytes();
            altered[index] = if altered[index] == b'A' { b'B' } else { b'A' };
            let altered = String::from_utf8(altered).unwrap();
            assert!(sealer.open(None, &altered).is_err(), "byte {index}");
        }
        for text in ["", "A", "!!", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
            assert!(sealer.open(None, text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_size_is_bounded_both_ways() {
        let sealer = at("/mcp", 1);
        let largest = sealer.seal(None, Purpose::Service, &vec![1; MAX_SEALED]).unwrap();
        assert_eq!(sealer.open(None, &largest).unwrap().1.len(), MAX_SEALED);
        assert!(sealer.seal(None, Purpose::Service, &vec![1; MAX_SEALED + 1]).is_err());
        assert!(sealer.open(None, &"A".repeat(1_000_000)).is_err());
    }

    #[test]
    fn equal_states_look_different() {
        let sealer = at("/mcp", 1);
        let seal = || sealer.seal(None, Purpose::Service, b"same").unwrap();
        assert_ne!(seal(), seal());
    }
}
