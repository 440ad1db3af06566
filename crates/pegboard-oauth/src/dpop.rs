//! Tokens that are bound to a key (DPoP, RFC 9449): the key, and the proof of it that each request carries.

mod origins;

use std::{collections::BTreeMap, fmt, sync::Arc};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header::WWW_AUTHENTICATE};
use pegboard_protocol::jws;
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use url::Url;

use super::{
    challenge::{self, DPOP_ALG},
    clock::unix_now,
};
use origins::Origins;
use pegboard_base::secret::Secret;
use pegboard_base::sync::Mutex;
use pegboard_client::credential::RequestProof;

/// The most keys that are held ready. Beyond, all are read again, which costs the nonces of their servers.
const MAX_KEYS: usize = 1000;

/// The keys of accounts, held ready with what servers said about their proofs.
#[derive(Debug, Default)]
pub(super) struct DpopKeys {
    keys: Mutex<BTreeMap<Secret, Arc<DpopKey>>>,
}

impl DpopKeys {
    /// Makes a key.
    pub(super) fn generate(&self) -> Result<Arc<DpopKey>, String> {
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let made = made.map_err(|_| "the system gives no random numbers for a key".to_owned())?;
        self.get(&Secret::new(jws::encode(made.as_ref())))
    }

    /// Forgets a key that is not stored any more.
    pub(super) fn forget(&self, text: &Secret) {
        self.keys.lock().remove(text);
    }

    /// The key that is stored as `text`.
    pub(super) fn get(&self, text: &Secret) -> Result<Arc<DpopKey>, String> {
        let mut keys = self.keys.lock();
        if let Some(key) = keys.get(text) {
            return Ok(key.clone());
        }
        let key = Arc::new(DpopKey::parse(text)?);
        if keys.len() >= MAX_KEYS {
            keys.clear();
        }
        keys.insert(text.clone(), key.clone());
        Ok(key)
    }
}

/// A private key that tokens are bound to.
pub(super) struct DpopKey {
    stored: Secret,
    pair: EcdsaKeyPair,
    /// The header of every proof, encoded.
    header: String,
    thumbprint: String,
    origins: Origins,
}

impl DpopKey {
    fn parse(stored: &Secret) -> Result<Self, String> {
        let bad = || "the key that the stored token is bound to cannot be read; sign in again".to_owned();
        let der = jws::decode(stored.expose()).ok_or_else(bad)?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der, &SystemRandom::new());
        let pair = pair.map_err(|_| bad())?;
        // An uncompressed point: a byte, then both coordinates.
        let (x, y) = match pair.public_key().as_ref() {
            [_, point @ ..] if point.len() == 64 => point.split_at(32),
            _ => return Err(bad()),
        };
        let (x, y) = (jws::encode(x), jws::encode(y));
        // RFC 7638: the required members in the order of their names, without white space.
        let canonical = format!(r#"{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}"#);
        let jwk = json!({"kty": "EC", "crv": "P-256", "x": x, "y": y});
        let header = json!({"typ": jws::typ::DPOP, "alg": DPOP_ALG, "jwk": jwk});
        Ok(Self {
            stored: stored.clone(),
            header: jws::encode_json(&header),
            thumbprint: digest(&canonical),
            origins: Origins::default(),
            pair,
        })
    }

    /// The private key as it is stored.
    pub(super) fn stored(&self) -> &Secret {
        &self.stored
    }

    /// Names the public key (RFC 7638).
    pub(super) fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// Signs a proof for one request. `ath` is the hash of the token that the request carries.
    pub(super) fn proof(&self, method: &Method, url: &Url, ath: Option<&str>) -> Result<HeaderValue, String> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|error| format!("the system gives no random numbers: {error}"))?;
        let target = target(url);
        let known = self.origins.get(&target);
        let mut claims = json!({
            "jti": jws::encode(id),
            "htm": method.as_str(),
            "htu": target.as_str(),
            "iat": unix_now().saturating_add_signed(known.skew),
        });
        if let Some(ath) = ath {
            claims["ath"] = ath.into();
        }
        if let Some(nonce) = known.nonce {
            claims["nonce"] = nonce.into();
        }
        let text = format!("{}.{}", self.header, jws::encode_json(&claims));
        let failed = || "a proof of the token's key cannot be signed".to_owned();
        let signature = self.pair.sign(&SystemRandom::new(), text.as_bytes());
        let proof = jws::attach_signature(text, signature.map_err(|_| failed())?);
        let mut proof = HeaderValue::from_str(&proof).map_err(|_| failed())?;
        proof.set_sensitive(true);
        Ok(proof)
    }

    /// Takes the nonce of a response and, from a refusal, the clock of the server. Returns whether a refused request may now succeed, if it was its
    /// proof that was refused.
    pub(super) fn learn(&self, url: &Url, status: StatusCode, response: &HeaderMap) -> bool {
        let is_refusal = matches!(status, StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED);
        self.origins.learn(&target(url), is_refusal, response) && is_refusal
    }
}

impl fmt::Debug for DpopKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DpopKey")
            .field("thumbprint", &self.thumbprint)
            .finish_non_exhaustive()
    }
}

impl PartialEq for DpopKey {
    fn eq(&self, other: &Self) -> bool {
        self.thumbprint == other.thumbprint
    }
}

impl Eq for DpopKey {}

/// The proofs of requests with one token.
#[derive(Debug)]
pub(super) struct TokenProof {
    key: Arc<DpopKey>,
    ath: String,
}

impl TokenProof {
    pub(super) fn new(key: Arc<DpopKey>, token: &Secret) -> Self {
        Self {
            key,
            ath: digest(token.expose()),
        }
    }
}

impl RequestProof for TokenProof {
    fn key_id(&self) -> &str {
        self.key.thumbprint()
    }

    fn header(&self, method: &Method, url: &Url) -> Result<HeaderValue, String> {
        self.key.proof(method, url, Some(&self.ath))
    }

    fn learn(&self, url: &Url, status: StatusCode, response: &HeaderMap) -> bool {
        let may_succeed = self.key.learn(url, status, response);
        let refuses_proof = || {
            let challenges = response.get_all(WWW_AUTHENTICATE).iter();
            let mut challenges = challenges.filter_map(|value| value.to_str().ok());
            challenges.any(challenge::refuses_proof)
        };
        may_succeed && status == StatusCode::UNAUTHORIZED && refuses_proof()
    }
}

/// The URL that a proof names: without query and fragment. A WebSocket begins as an HTTP request.
fn target(url: &Url) -> Url {
    let mut target = url.clone();
    target.set_query(None);
    target.set_fragment(None);
    // A URL with a host takes both, so these cannot fail.
    let _ = target.set_username("");
    let _ = target.set_password(None);
    let http = match target.scheme() {
        "ws" => "http",
        "wss" => "https",
        _ => return target,
    };
    let _ = target.set_scheme(http);
    target
}

fn digest(text: &str) -> String {
    jws::encode(Sha256::digest(text))
}

#[cfg(test)]
mod tests;
