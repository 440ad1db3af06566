//! Signs assertions of the client (RFC 7523) as compact JWS.

use pegboard_protocol::jws::{attach_signature, signing_input, typ};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair},
};
use rustls_pki_types::{PrivateKeyDer, pem::PemObject};
use serde_json::{Map, Value, json};

use super::{clock::unix_now, error::OAuthError, pkce::random_text};
use pegboard_base::secret::Secret;
use pegboard_config::{ClientKey, SigningAlg};

/// How long an assertion is valid, in seconds. It is used at once.
const ASSERTION_LIFETIME: u64 = 300;

enum SigningKey {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// Signs an assertion that this program is the client `client_id`, for the authorization server `audience`.
///
/// `supported` are the algorithms that the authorization server accepts; `None` if it does not say.
pub(super) fn client_assertion(
    key: &ClientKey,
    client_id: &str,
    audience: &str,
    supported: Option<&[String]>,
) -> Result<Secret, OAuthError> {
    let pair = SigningKey::parse(key)?;
    let alg = pair.alg();
    let is_supported = supported.is_none_or(|names| names.is_empty() || names.iter().any(|name| name == alg.as_str()));
    if !is_supported {
        return Err(OAuthError::Setting(format!(
            "the private key signs with {}, which the authorization server does not accept",
            alg.as_str()
        )));
    }
    let mut header = Map::new();
    header.insert("alg".to_owned(), alg.as_str().into());
    header.insert("typ".to_owned(), typ::JWT.into());
    if let Some(kid) = &key.kid {
        header.insert("kid".to_owned(), kid.clone().into());
    }
    let now = unix_now();
    let claims = json!({
        "iss": client_id,
        "sub": client_id,
        "aud": audience,
        "iat": now,
        "exp": now + ASSERTION_LIFETIME,
        "jti": random_text()?,
    });
    let signed = signing_input(&Value::Object(header), &claims);
    let signature = pair.sign(signed.as_bytes())?;
    Ok(Secret::new(attach_signature(signed, signature)))
}

impl SigningKey {
    /// Reads a PEM key: PKCS #8, or PKCS #1 for RSA.
    fn parse(key: &ClientKey) -> Result<Self, OAuthError> {
        let bad = |why: &str| OAuthError::Setting(format!("the private key of the client cannot be used: {why}"));
        let der = PrivateKeyDer::from_pem_slice(key.pem.expose().as_bytes())
            .map_err(|_| bad("it is not a private key in PEM"))?;
        let found = match &der {
            PrivateKeyDer::Pkcs1(der) => RsaKeyPair::from_der(der.secret_pkcs1_der())
                .map(|pair| Self::Rsa(Box::new(pair)))
                .ok(),
            PrivateKeyDer::Pkcs8(der) => {
                let der = der.secret_pkcs8_der();
                let ecdsa = || EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &SystemRandom::new());
                let rsa = || RsaKeyPair::from_pkcs8(der).map(|pair| Self::Rsa(Box::new(pair)));
                let ed25519 = || Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map(Self::Ed25519);
                ecdsa().map(Self::Ecdsa).or_else(|_| rsa()).or_else(|_| ed25519()).ok()
            }
            _ => return Err(bad("convert it to PKCS #8, with `openssl pkcs8 -topk8 -nocrypt`")),
        };
        let pair = found.ok_or_else(|| bad("it is no key for RS256, ES256 or EdDSA"))?;
        match key.alg {
            Some(wanted) if wanted != pair.alg() => Err(bad(&format!(
                "it is a key for {}, and the config says {}",
                pair.alg().as_str(),
                wanted.as_str()
            ))),
            _ => Ok(pair),
        }
    }

    fn alg(&self) -> SigningAlg {
        match self {
            Self::Rsa(_) => SigningAlg::Rs256,
            Self::Ecdsa(_) => SigningAlg::Es256,
            Self::Ed25519(_) => SigningAlg::EdDsa,
        }
    }

    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, OAuthError> {
        let failed = |_| OAuthError::Setting("the private key of the client cannot sign".to_owned());
        let random = SystemRandom::new();
        match self {
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .map_err(failed)?;
                Ok(signature)
            }
            Self::Ecdsa(pair) => Ok(pair.sign(&random, message).map_err(failed)?.as_ref().to_vec()),
            Self::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use pegboard_protocol::jws::{Compact, decode, decode_json};
    use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PublicKeyData as _};
    use ring::signature::{ECDSA_P256_SHA256_FIXED, ED25519, UnparsedPublicKey, VerificationAlgorithm};

    use super::*;

    #[test]
    fn an_assertion_names_the_client_and_its_signature_verifies() {
        let cases: [(_, &str, &dyn VerificationAlgorithm); 2] = [
            (&PKCS_ECDSA_P256_SHA256, "ES256", &ECDSA_P256_SHA256_FIXED),
            (&PKCS_ED25519, "EdDSA", &ED25519),
        ];
        for (kind, alg, verification) in cases {
            let pair = KeyPair::generate_for(kind).unwrap();
            let mut key = ClientKey::new(Secret::new(pair.serialize_pem()));
            key.kid = Some("k1".to_owned());
            let signed = client_assertion(&key, "me", "https://as.example", None).unwrap();
            let parts = Compact::split(signed.expose()).unwrap();
            assert_eq!(
                decode_json(parts.header).unwrap(),
                json!({"alg": alg, "typ": "JWT", "kid": "k1"})
            );
            let claims = decode_json(parts.payload).unwrap();
            assert_eq!(
                (&claims["iss"], &claims["sub"], &claims["aud"]),
                (&json!("me"), &json!("me"), &json!("https://as.example"))
            );
            assert_eq!(
                claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(),
                ASSERTION_LIFETIME
            );
            let signature = decode(parts.signature).unwrap();
            UnparsedPublicKey::new(verification, pair.der_bytes())
                .verify(parts.signed.as_bytes(), &signature)
                .unwrap();
        }
    }

    #[test]
    fn an_unusable_key_is_an_error_that_does_not_contain_it() {
        let pair = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let mut wrong_alg = ClientKey::new(Secret::new(pair.serialize_pem()));
        let unsupported = client_assertion(&wrong_alg, "me", "x", Some(&["RS256".to_owned()])).unwrap_err();
        assert!(unsupported.to_string().contains("EdDSA"), "{unsupported}");
        wrong_alg.alg = Some(SigningAlg::Rs256);
        for key in [ClientKey::new(Secret::new("s3cret")), wrong_alg] {
            let error = client_assertion(&key, "me", "x", None).unwrap_err().to_string();
            assert!(error.contains("private key") && !error.contains("s3cret"), "{error}");
        }
    }
}
