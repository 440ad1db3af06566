//! PKCE (RFC 7636): proves that the client that redeems a code is the one that asked for it.

use pegboard_protocol::jws;
use sha2::{Digest as _, Sha256};

use super::{error::OAuthError, metadata::ServerMetadata};
use pegboard_base::secret::Secret;

/// A verifier and its challenge. Only the method S256 is used.
#[derive(Debug)]
pub(super) struct Pkce {
    pub(super) verifier: Secret,
    pub(super) challenge: String,
}

impl Pkce {
    /// Fails if the authorization server does not support S256: without PKCE, a stolen code is enough to get a token. A server that the config
    /// names (`is_named`) may leave it out of its metadata, as some large ones do.
    pub(super) fn new(server: &ServerMetadata, is_named: bool) -> Result<Self, OAuthError> {
        let is_supported = match &server.pkce_methods {
            Some(methods) => methods.iter().any(|method| method == "S256"),
            None => is_named,
        };
        if !is_supported {
            return Err(OAuthError::Discovery(format!(
                "the authorization server {} does not support PKCE with S256, so signing in there is not safe",
                server.issuer
            )));
        }
        let verifier = random_text()?;
        let challenge = jws::encode(Sha256::digest(verifier.as_bytes()));
        Ok(Self {
            verifier: Secret::new(verifier),
            challenge,
        })
    }
}

/// 256 random bits as text.
pub(super) fn random_text() -> Result<String, OAuthError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| OAuthError::Setting(format!("the system gives no random numbers: {error}")))?;
    Ok(jws::encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_challenge_is_the_hash_of_a_verifier_that_is_new_each_time() {
        let server = ServerMetadata::at_endpoints(
            "https://as.example",
            "https://as.example/authorize",
            "https://as.example/token",
        );
        let (a, b) = (Pkce::new(&server, false).unwrap(), Pkce::new(&server, false).unwrap());
        assert_ne!(a.verifier, b.verifier);
        assert_eq!(a.verifier.expose().len(), 43);
        assert_eq!(a.challenge, jws::encode(Sha256::digest(a.verifier.expose().as_bytes())));
    }

    #[test]
    fn a_server_without_s256_is_refused() {
        let mut server =
            ServerMetadata::at_endpoints("https://as.example", "https://as.example/a", "https://as.example/t");
        for (methods, is_named, is_refused) in [
            (Some(&["plain"][..]), true, true),
            (Some(&["plain", "S256"]), false, false),
            (None, false, true),
            (None, true, false),
        ] {
            server.pkce_methods = methods.map(|methods| methods.iter().map(|method| (*method).to_owned()).collect());
            assert_eq!(Pkce::new(&server, is_named).is_err(), is_refused, "{methods:?}");
        }
    }
}
