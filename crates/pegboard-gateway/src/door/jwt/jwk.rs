//! [`Jwk`]: a public key of an issuer (RFC 7517). A key is for one family of algorithms, whatever a token says.

use pegboard::config::JwtAlgorithm;
use pegboard_protocol::jws;
use ring::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde_json::Value;

/// A public key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Jwk {
    pub(super) id: Option<String>,
    /// The only algorithm that it is for, if it says so.
    algorithm: Option<JwtAlgorithm>,
    material: Material,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Material {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

impl Jwk {
    /// Reads a key of a JWKS; `None` if it is for something else, or of a kind that is not supported.
    pub(super) fn read(key: &Value) -> Option<Self> {
        let text = |name: &str| key.get(name).and_then(Value::as_str);
        if text("use").is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        if let Some(operations) = key.get("key_ops").and_then(Value::as_array)
            && !operations.iter().any(|operation| operation == "verify")
        {
            return None;
        }
        let algorithm = match text("alg") {
            Some(name) => Some(JwtAlgorithm::ALL.into_iter().find(|known| known.as_str() == name)?),
            None => None,
        };
        let bytes = |name: &str| jws::decode(text(name)?);
        let material = match (text("kty")?, text("crv")) {
            ("RSA", _) => Material::Rsa {
                modulus: without_zeros(&bytes("n")?),
                exponent: without_zeros(&bytes("e")?),
            },
            ("EC", Some("P-256")) => Material::P256(point(&bytes("x")?, &bytes("y")?, 32)?),
            ("EC", Some("P-384")) => Material::P384(point(&bytes("x")?, &bytes("y")?, 48)?),
            ("OKP", Some("Ed25519")) => Material::Ed25519(bytes("x")?),
            _ => return None,
        };
        Some(Self {
            id: text("kid").map(str::to_owned),
            algorithm,
            material,
        })
    }

    /// Returns `true` if signatures of this algorithm can be verified with the key.
    pub(super) fn is_for(&self, algorithm: JwtAlgorithm) -> bool {
        self.algorithm.is_none_or(|own| own == algorithm)
            && match self.material {
                Material::Rsa { .. } => rsa(algorithm).is_some(),
                Material::P256(_) => algorithm == JwtAlgorithm::Es256,
                Material::P384(_) => algorithm == JwtAlgorithm::Es384,
                Material::Ed25519(_) => algorithm == JwtAlgorithm::EdDsa,
            }
    }

    /// Returns `true` if the signature is one of this key over the message.
    pub(super) fn verifies(&self, algorithm: JwtAlgorithm, message: &[u8], signature: &[u8]) -> bool {
        if !self.is_for(algorithm) {
            return false;
        }
        let curve = |algorithm: &'static dyn VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(algorithm, key)
                .verify(message, signature)
                .is_ok()
        };
        match &self.material {
            Material::Rsa { modulus, exponent } => rsa(algorithm).is_some_and(|parameters| {
                let key = RsaPublicKeyComponents {
                    n: modulus,
                    e: exponent,
                };
                key.verify(parameters, message, signature).is_ok()
            }),
            Material::P256(key) => curve(&signature::ECDSA_P256_SHA256_FIXED, key),
            Material::P384(key) => curve(&signature::ECDSA_P384_SHA384_FIXED, key),
            Material::Ed25519(key) => curve(&signature::ED25519, key),
        }
    }
}

/// The parameters of an RSA algorithm. Keys have at least 2,048 bits.
fn rsa(algorithm: JwtAlgorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        JwtAlgorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
        JwtAlgorithm::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
        JwtAlgorithm::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
        JwtAlgorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
        JwtAlgorithm::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
        JwtAlgorithm::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

/// An uncompressed point of a curve whose coordinates have this many bytes.
fn point(x: &[u8], y: &[u8], length: usize) -> Option<Vec<u8>> {
    (x.len() == length && y.len() == length).then(|| [&[4], x, y].concat())
}

/// A number without zeros before it, as some issuers write them.
fn without_zeros(number: &[u8]) -> Vec<u8> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number[zeros..].to_vec()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_public_keys_for_signatures_are_read() {
        let x = jws::encode([1; 32]);
        let ed = |more: Value| {
            let mut key = json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": "a"});
            for (name, value) in more.as_object().unwrap() {
                key[name] = value.clone();
            }
            Jwk::read(&key).is_some()
        };
        assert!(ed(json!({})));
        assert!(ed(json!({"use": "sig", "key_ops": ["verify"], "alg": "EdDSA"})));
        for more in [
            json!({"use": "enc"}),
            json!({"key_ops": ["encrypt"]}),
            json!({"alg": "HS256"}),
            json!({"alg": "none"}),
            json!({"crv": "X25519"}),
            json!({"kty": "oct", "k": x}),
            json!({"kty": "EC", "crv": "P-256", "y": "AA"}),
            json!({"x": 7}),
        ] {
            assert!(!ed(more.clone()), "{more}");
        }
    }

    #[test]
    fn a_key_is_for_its_own_algorithms_only() {
        let read = |key: Value| Jwk::read(&key).unwrap();
        let rsa = read(json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"}));
        let own = read(json!({"kty": "RSA", "n": "AQAB", "e": "AQAB", "alg": "PS256"}));
        for algorithm in JwtAlgorithm::ALL {
            let is_rsa = algorithm.as_str().starts_with(['R', 'P']);
            assert_eq!(rsa.is_for(algorithm), is_rsa, "{algorithm}");
            assert_eq!(own.is_for(algorithm), algorithm == JwtAlgorithm::Ps256, "{algorithm}");
        }
    }
}
