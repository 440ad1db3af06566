//! Signing keys, and JSON Web Signatures made and checked with them.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use pegboard_protocol::jws::{Compact, alg, attach_signature, decode, decode_json, encode, signing_input, typ};
use ring::{
    rand::{SecureRandom, SystemRandom},
    rsa::PublicKeyComponents,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
        RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair, UnparsedPublicKey,
    },
};
use serde_json::{Value, json};

use super::rsa_key::TEST_RSA_KEY;

/// A signature algorithm of JSON Web Signatures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA PKCS #1 v1.5 with SHA-256. All keys of this kind are the same fixed key, under different ids.
    Rs256,
    /// ECDSA with P-256 and SHA-256.
    #[default]
    Es256,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// The name in headers and key sets.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rs256 => alg::RS256,
            Self::Es256 => alg::ES256,
            Self::EdDsa => alg::EDDSA,
        }
    }
}

/// A private key that signs tokens or client assertions.
#[derive(Debug)]
pub struct SigningKey {
    id: String,
    algorithm: Algorithm,
    pkcs8: Vec<u8>,
    pair: Pair,
}

#[derive(Debug)]
enum Pair {
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl SigningKey {
    /// A new key with this id.
    ///
    /// # Panics
    /// When the system has no randomness.
    #[must_use]
    pub fn generate(algorithm: Algorithm, id: impl Into<String>) -> Self {
        let random = SystemRandom::new();
        let (pkcs8, pair) = match algorithm {
            Algorithm::Rs256 => {
                let pkcs8 = STANDARD.decode(TEST_RSA_KEY).expect("the fixed key is base64");
                let pair = RsaKeyPair::from_pkcs8(&pkcs8).expect("the fixed key is valid");
                (pkcs8, Pair::Rsa(pair))
            }
            Algorithm::Es256 => {
                let chosen = &ECDSA_P256_SHA256_FIXED_SIGNING;
                let pkcs8 = EcdsaKeyPair::generate_pkcs8(chosen, &random).expect("the system has randomness");
                let pair = EcdsaKeyPair::from_pkcs8(chosen, pkcs8.as_ref(), &random).expect("the key was just made");
                (pkcs8.as_ref().to_vec(), Pair::Ec(pair))
            }
            Algorithm::EdDsa => {
                let pkcs8 = Ed25519KeyPair::generate_pkcs8(&random).expect("the system has randomness");
                let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref()).expect("the key was just made");
                (pkcs8.as_ref().to_vec(), Pair::Ed(pair))
            }
        };
        Self {
            id: id.into(),
            algorithm,
            pkcs8,
            pair,
        }
    }

    /// The key id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The algorithm it signs with.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The private key in PEM (PKCS #8), for the config of a client.
    #[must_use]
    pub fn private_pem(&self) -> String {
        let text = STANDARD.encode(&self.pkcs8);
        let mut pem = format!("-----BEGIN {0}-----\n", "PRIVATE KEY");
        for line in text.as_bytes().chunks(64) {
            pem.push_str(&String::from_utf8_lossy(line));
            pem.push('\n');
        }
        pem + &format!("-----END {0}-----\n", "PRIVATE KEY")
    }

    /// The public key as a JSON Web Key.
    #[must_use]
    pub fn public_jwk(&self) -> Value {
        let mut jwk = match &self.pair {
            Pair::Rsa(pair) => {
                let public = PublicKeyComponents::<Vec<u8>>::from(pair.public());
                json!({"kty": "RSA", "n": encode(public.n), "e": encode(public.e)})
            }
            Pair::Ec(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({"kty": "EC", "crv": "P-256", "x": encode(x), "y": encode(y)})
            }
            Pair::Ed(pair) => json!({"kty": "OKP", "crv": "Ed25519", "x": encode(pair.public_key().as_ref())}),
        };
        jwk["kid"] = self.id.as_str().into();
        jwk["alg"] = self.algorithm.name().into();
        jwk["use"] = "sig".into();
        jwk
    }

    /// Signs claims as a compact JWS of this type (`typ`).
    #[must_use]
    pub fn sign(&self, kind: &str, claims: &Value) -> String {
        self.sign_with_header(
            &json!({"alg": self.algorithm.name(), "typ": kind, "kid": self.id}),
            claims,
        )
    }

    /// Signs claims under any header, also one that lies about the key or the algorithm.
    ///
    /// # Panics
    /// When the system has no randomness.
    #[must_use]
    pub fn sign_with_header(&self, header: &Value, claims: &Value) -> String {
        let text = signing_input(header, claims);
        let random = SystemRandom::new();
        let signature = match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut signature)
                    .expect("the system has randomness");
                signature
            }
            Pair::Ec(pair) => pair
                .sign(&random, text.as_bytes())
                .expect("the system has randomness")
                .as_ref()
                .to_vec(),
            Pair::Ed(pair) => pair.sign(text.as_bytes()).as_ref().to_vec(),
        };
        attach_signature(text, signature)
    }
}

/// Claims without a signature: a token with `alg: none`.
#[must_use]
pub fn unsigned(claims: &Value) -> String {
    attach_signature(signing_input(&json!({"alg": alg::NONE, "typ": typ::JWT}), claims), [])
}

/// The header of a compact JWS.
pub(super) fn header_of(token: &str) -> Option<Value> {
    decode_json(Compact::split(token)?.header)
}

/// The claims of a compact JWS, if one of these JSON Web Keys signed it with its own algorithm.
///
/// # Errors
/// What is wrong with it.
pub fn verify(token: &str, keys: &[Value]) -> Result<Value, String> {
    let parts = Compact::split(token).ok_or("not a compact JWS")?;
    let header = decode_json(parts.header).ok_or("the header is not JSON")?;
    let signature = decode(parts.signature).ok_or("the signature is not base64")?;
    let key = keys
        .iter()
        .find(|key| header["kid"].is_null() || key["kid"] == header["kid"])
        .ok_or("no key with this id")?;
    if key["alg"] != header["alg"] {
        return Err(format!("algorithm {} is not that of the key", header["alg"]));
    }
    if !fits(key, parts.signed.as_bytes(), &signature) {
        return Err("the signature is wrong".into());
    }
    decode_json(parts.payload).ok_or_else(|| "the claims are not JSON".into())
}

fn fits(key: &Value, text: &[u8], signature: &[u8]) -> bool {
    let part = |name: &str| decode(key[name].as_str().unwrap_or_default()).unwrap_or_default();
    match key["alg"].as_str() {
        Some(alg::RS256) => {
            let public = PublicKeyComponents {
                n: part("n"),
                e: part("e"),
            };
            public.verify(&RSA_PKCS1_2048_8192_SHA256, text, signature).is_ok()
        }
        Some(alg::ES256) => {
            let point = [vec![4], part("x"), part("y")].concat();
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
                .verify(text, signature)
                .is_ok()
        }
        Some(alg::EDDSA) => UnparsedPublicKey::new(&ED25519, part("x"))
            .verify(text, signature)
            .is_ok(),
        _ => false,
    }
}

/// A random text of 192 bits after a prefix.
///
/// # Panics
/// When the system has no randomness.
pub(super) fn random_text(prefix: &str) -> String {
    let mut bytes = [0; 24];
    SystemRandom::new().fill(&mut bytes).expect("the system has randomness");
    format!("{prefix}{}", encode(bytes))
}

/// The S256 challenge of a PKCE verifier.
pub(super) fn challenge_of(verifier: &str) -> String {
    encode(ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes()).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Algorithm; 3] = [Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa];

    #[test]
    fn a_signature_is_accepted_under_its_own_key_only() {
        for algorithm in ALL {
            let key = SigningKey::generate(algorithm, "a");
            let token = key.sign("JWT", &json!({"sub": "alice"}));
            let claims = verify(&token, &[key.public_jwk()]).expect("its own key");
            assert_eq!(claims["sub"], "alice", "{algorithm:?}");

            let other = SigningKey::generate(algorithm, "b");
            assert_eq!(
                verify(&token, &[other.public_jwk()]),
                Err("no key with this id".into()),
                "{algorithm:?}"
            );
        }
    }

    #[test]
    fn changed_claims_and_claims_without_a_signature_are_refused() {
        for algorithm in ALL {
            let key = SigningKey::generate(algorithm, "a");
            let token = key.sign("JWT", &json!({"sub": "alice"}));
            let mut parts: Vec<&str> = token.split('.').collect();
            let claims = encode(json!({"sub": "mallory"}).to_string().as_bytes());
            parts[1] = &claims;
            assert_eq!(
                verify(&parts.join("."), &[key.public_jwk()]),
                Err("the signature is wrong".into())
            );
            assert!(verify(&unsigned(&json!({"sub": "mallory"})), &[key.public_jwk()]).is_err());
        }
    }

    #[test]
    fn the_challenge_is_that_of_rfc_7636() {
        assert_eq!(
            challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
    }
}
