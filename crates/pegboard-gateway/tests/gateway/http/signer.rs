//! Signs JWTs with fresh keys, as an authorization server does, and in ways that none should.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    hmac,
    rand::SystemRandom,
    rsa::{KeyPair as RsaKeyPair, PublicKeyComponents},
    signature::{
        self, ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
        KeyPair as _, RsaEncoding,
    },
};
use serde_json::{Value, json};

/// A private key that nothing but these tests uses: ring cannot make RSA keys.
const RSA: &[u8] = include_bytes!("rsa_test_key.pk8");

/// A key of an authorization server, for one algorithm.
pub(crate) struct Signer {
    pub(crate) algorithm: &'static str,
    pub(crate) id: String,
    key: Key,
}

enum Key {
    Rsa(Box<RsaKeyPair>, &'static dyn RsaEncoding),
    Ecdsa(EcdsaKeyPair, &'static str),
    Ed25519(Ed25519KeyPair),
}

impl Signer {
    pub(crate) fn new(algorithm: &'static str, id: &str) -> Self {
        let random = SystemRandom::new();
        let rsa = |encoding| Key::Rsa(Box::new(RsaKeyPair::from_pkcs8(RSA).unwrap()), encoding);
        let ecdsa = |algorithm, curve| {
            let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            Key::Ecdsa(
                EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).unwrap(),
                curve,
            )
        };
        let key = match algorithm {
            "RS256" => rsa(&signature::RSA_PKCS1_SHA256),
            "RS384" => rsa(&signature::RSA_PKCS1_SHA384),
            "RS512" => rsa(&signature::RSA_PKCS1_SHA512),
            "PS256" => rsa(&signature::RSA_PSS_SHA256),
            "PS384" => rsa(&signature::RSA_PSS_SHA384),
            "PS512" => rsa(&signature::RSA_PSS_SHA512),
            "ES256" => ecdsa(&ECDSA_P256_SHA256_FIXED_SIGNING, "P-256"),
            "ES384" => ecdsa(&ECDSA_P384_SHA384_FIXED_SIGNING, "P-384"),
            "EdDSA" => {
                let key = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
                Key::Ed25519(Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap())
            }
            other => panic!("{other}"),
        };
        Self {
            algorithm,
            id: id.to_owned(),
            key,
        }
    }

    /// The public key as it is in a JWKS.
    pub(crate) fn jwk(&self) -> Value {
        let mut jwk = match &self.key {
            Key::Rsa(key, _) => {
                let PublicKeyComponents { n, e } = PublicKeyComponents::<Vec<u8>>::from(key.public());
                json!({"kty": "RSA", "n": encode(&n), "e": encode(&e)})
            }
            Key::Ecdsa(key, curve) => {
                let point = &key.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                json!({"kty": "EC", "crv": curve, "x": encode(x), "y": encode(y)})
            }
            Key::Ed25519(key) => json!({"kty": "OKP", "crv": "Ed25519", "x": encode(key.public_key().as_ref())}),
        };
        jwk["kid"] = self.id.as_str().into();
        jwk["use"] = "sig".into();
        jwk
    }

    /// A token with these claims.
    pub(crate) fn token(&self, claims: &Value) -> String {
        self.token_with(&json!({"alg": self.algorithm, "kid": self.id, "typ": "at+jwt"}), claims)
    }

    /// A token with this header.
    pub(crate) fn token_with(&self, header: &Value, claims: &Value) -> String {
        self.token_of(header, &claims.to_string())
    }

    /// A token with claims that are written as they are.
    pub(crate) fn token_of(&self, header: &Value, claims: &str) -> String {
        let signed = format!(
            "{}.{}",
            encode(header.to_string().as_bytes()),
            encode(claims.as_bytes())
        );
        format!("{signed}.{}", encode(&self.sign(signed.as_bytes())))
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.key {
            Key::Rsa(key, encoding) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(*encoding, &random, message, &mut signature).unwrap();
                signature
            }
            Key::Ecdsa(key, _) => key.sign(&random, message).unwrap().as_ref().to_vec(),
            Key::Ed25519(key) => key.sign(message).as_ref().to_vec(),
        }
    }
}

/// A token without a signature.
pub(crate) fn unsigned(algorithm: &str, claims: &Value) -> String {
    format!("{}.", signing_input(&json!({"alg": algorithm}), claims))
}

/// A token that is signed with a secret, for which somebody took a public key.
pub(crate) fn with_secret(secret: &[u8], header: &Value, claims: &Value) -> String {
    let signed = signing_input(header, claims);
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), signed.as_bytes());
    format!("{signed}.{}", encode(tag.as_ref()))
}

fn signing_input(header: &Value, claims: &Value) -> String {
    format!(
        "{}.{}",
        encode(header.to_string().as_bytes()),
        encode(claims.to_string().as_bytes())
    )
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
