//! The clients that an authorization server knows, and how they prove themselves.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{jws::verify, record::AuthRequest};

/// The type of a signed client assertion.
const JWT_ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A client of an authorization server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Client {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    /// The only accepted way to prove itself; `None` accepts each that fits.
    pub(super) method: Option<String>,
    pub(super) redirects: Vec<String>,
    pub(super) key: Option<Value>,
}

impl Client {
    /// A public client, which proves nothing and may redirect to any loopback address.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }

    /// Has a secret.
    #[must_use]
    pub fn secret(mut self, secret: &str) -> Self {
        self.secret = Some(secret.into());
        self
    }

    /// Must prove itself in this way: `client_secret_basic`, `client_secret_post`, `private_key_jwt` or `none`.
    #[must_use]
    pub fn method(mut self, method: &str) -> Self {
        self.method = Some(method.into());
        self
    }

    /// Signs assertions with the private key of this JSON Web Key.
    #[must_use]
    pub fn key(mut self, key: Value) -> Self {
        self.key = Some(key);
        self.method("private_key_jwt")
    }

    /// May redirect there. A loopback address may have another port.
    #[must_use]
    pub fn redirect(mut self, uri: &str) -> Self {
        self.redirects.push(uri.into());
        self
    }

    /// The client of a registration request or of a client-id metadata document.
    pub(super) fn from_metadata(id: &str, metadata: &Value) -> Self {
        let texts = |member: &Value| -> Vec<String> {
            let list = member.as_array().into_iter().flatten();
            list.filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        Self {
            id: id.into(),
            method: metadata["token_endpoint_auth_method"].as_str().map(str::to_owned),
            redirects: texts(&metadata["redirect_uris"]),
            ..Self::default()
        }
    }

    /// Whether a sign-in may end at this address.
    pub(super) fn may_redirect_to(&self, uri: &str) -> bool {
        if self.redirects.is_empty() {
            return is_loopback(uri);
        }
        let portless = |text: &str| -> Option<String> {
            let mut url = url::Url::parse(text).ok()?;
            is_loopback(text).then(|| url.set_port(None).ok())??;
            Some(url.into())
        };
        self.redirects
            .iter()
            .any(|known| known == uri || portless(known).is_some_and(|known| Some(known) == portless(uri)))
    }

    /// Checks how a request to the token endpoint proves that it is from this client.
    pub(super) fn check(&self, proof: &Proof, audiences: &[String]) -> Result<(), String> {
        if let Some(wanted) = &self.method
            && wanted != proof.method()
        {
            return Err(format!("the client must use {wanted}, not {}", proof.method()));
        }
        match proof {
            Proof::None => match &self.secret {
                None => Ok(()),
                Some(_) => Err("the client has a secret".into()),
            },
            Proof::Basic(given) | Proof::Post(given) => {
                if self.secret.as_ref() == Some(given) {
                    Ok(())
                } else {
                    Err("the secret is wrong".into())
                }
            }
            Proof::Assertion(assertion) => {
                let key = self.key.clone().ok_or("the client has no key")?;
                let claims = verify(assertion, &[key])?;
                if claims["iss"] != self.id.as_str() || claims["sub"] != self.id.as_str() {
                    return Err("the assertion is not by this client".into());
                }
                if !names_one_of(&claims["aud"], audiences) {
                    return Err(format!("the assertion is for {}", claims["aud"]));
                }
                if claims["exp"]
                    .as_u64()
                    .is_none_or(|end| end <= super::books::now_seconds())
                {
                    return Err("the assertion has expired".into());
                }
                if claims["jti"].as_str().is_none_or(str::is_empty) {
                    return Err("the assertion has no jti".into());
                }
                Ok(())
            }
        }
    }
}

/// What a request presents to prove which client it is from.
#[derive(Debug)]
pub(super) enum Proof {
    None,
    Basic(String),
    Post(String),
    Assertion(String),
}

impl Proof {
    /// The client id and the proof of a request.
    pub(super) fn read(request: &AuthRequest) -> Result<(String, Self), String> {
        if let Some(basic) = request
            .header("authorization")
            .and_then(|value| value.strip_prefix("Basic "))
        {
            let text = STANDARD
                .decode(basic)
                .ok()
                .and_then(|bytes| String::from_utf8(bytes).ok());
            let text = text.ok_or("the authorization is not base64")?;
            let (id, secret) = text.split_once(':').ok_or("the authorization has no colon")?;
            return Ok((decode_form(id), Self::Basic(decode_form(secret))));
        }
        if let Some(assertion) = request.parameter("client_assertion") {
            if request.parameter("client_assertion_type") != Some(JWT_ASSERTION) {
                return Err("unknown type of assertion".into());
            }
            let id = match request.parameter("client_id") {
                Some(id) => id.to_owned(),
                None => subject_of(assertion).ok_or("the assertion names no client")?,
            };
            return Ok((id, Self::Assertion(assertion.to_owned())));
        }
        let id = request.parameter("client_id").ok_or("no client_id")?.to_owned();
        let proof = match request.parameter("client_secret") {
            Some(secret) => Self::Post(secret.to_owned()),
            None => Self::None,
        };
        Ok((id, proof))
    }

    fn method(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic(_) => "client_secret_basic",
            Self::Post(_) => "client_secret_post",
            Self::Assertion(_) => "private_key_jwt",
        }
    }
}

/// Whether an `aud` is, or contains, one of these.
pub(super) fn names_one_of(audience: &Value, wanted: &[String]) -> bool {
    let is_wanted = |value: &Value| value.as_str().is_some_and(|text| wanted.iter().any(|one| one == text));
    is_wanted(audience) || audience.as_array().is_some_and(|list| list.iter().any(is_wanted))
}

/// The unchecked subject of a signed assertion.
fn subject_of(assertion: &str) -> Option<String> {
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(assertion.split('.').nth(1)?)
        .ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    claims["sub"].as_str().map(str::to_owned)
}

fn decode_form(text: &str) -> String {
    let pair = format!("x={}", text.replace('&', "%26"));
    let found = url::form_urlencoded::parse(pair.as_bytes()).next();
    found.map(|(_, value)| value.into_owned()).unwrap_or_default()
}

fn is_loopback(uri: &str) -> bool {
    let Ok(url) = url::Url::parse(uri) else { return false };
    matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]")) && url.scheme() == "http"
}
