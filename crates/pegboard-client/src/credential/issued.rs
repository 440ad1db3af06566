//! [`Issued`]: a credential that the provider returned, checked and ready to be sent.

use std::{collections::BTreeSet, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue};
use pegboard_protocol::header;
use tokio::time::Instant;

use super::{provider::Credential, request_proof::RequestProof};
use pegboard_base::secret::Secret;
use pegboard_config::{is_variable_name, secrets_in};

/// Headers that HTTP and MCP define. They depend on each message or connection, so a credential cannot set them.
const RESERVED: &[&str] = &[
    "accept",
    "connection",
    "content-length",
    "content-type",
    "host",
    "keep-alive",
    header::LAST_EVENT_ID,
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Prefixes of such headers.
const RESERVED_PREFIXES: &[&str] = &["mcp-", "sec-websocket-"];
/// The most headers, and the most variables, of a credential.
const MAX_VALUES: usize = 64;
/// The longest value of a credential.
const MAX_VALUE_BYTES: usize = 16 << 10;

/// A credential of one server and principal, as it is sent.
#[derive(Debug)]
pub(crate) struct Issued {
    /// Grows with every new credential. Equal values have equal generations, unless the server has refused them.
    generation: u64,
    /// Until when it is reused; `None` if it is for one request.
    valid_until: Option<Instant>,
    values: Arc<Values>,
}

#[derive(Debug)]
struct Values {
    credential: Credential,
    headers: HeaderMap,
    secrets: Arc<[Secret]>,
}

impl Issued {
    /// Checks a credential. The error names the value that cannot be sent, and does not contain it.
    pub(super) fn new(generation: u64, credential: &Credential) -> Result<Self, String> {
        let values = Values {
            headers: headers(credential)?,
            secrets: secrets(credential).into(),
            credential: credential.clone(),
        };
        check_variables(credential)?;
        Ok(Self {
            generation,
            valid_until: valid_until(credential),
            values: Arc::new(values),
        })
    }

    /// The same credential, which the provider has returned once more.
    pub(super) fn with_new_validity(&self, credential: &Credential) -> Self {
        Self {
            generation: self.generation,
            valid_until: valid_until(credential),
            values: self.values.clone(),
        }
    }

    pub(super) fn has_values_of(&self, other: &Credential) -> bool {
        let own = &self.values.credential;
        own.headers() == other.headers() && own.variables() == other.variables() && own.proof() == other.proof()
    }

    pub(super) fn valid_until(&self) -> Option<Instant> {
        self.valid_until
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The headers of requests, marked as sensitive. Each replaces the config's header of the same name.
    #[cfg_attr(
        not(any(feature = "http", feature = "websocket", test)),
        expect(dead_code, reason = "only remote servers take headers")
    )]
    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.values.headers
    }

    /// The token in its `Authorization` header; `None` if it has none.
    pub(super) fn token(&self) -> Option<Secret> {
        let mut headers = self.values.credential.headers().iter();
        let (_, value) = headers.find(|(name, _)| name.eq_ignore_ascii_case("authorization"))?;
        let (_scheme, token) = value.expose().split_once(' ')?;
        Some(Secret::new(token.to_owned()))
    }

    /// Makes a further header for each request.
    #[cfg_attr(
        not(any(feature = "http", feature = "websocket")),
        expect(dead_code, reason = "only remote servers take proofs")
    )]
    pub(crate) fn proof(&self) -> Option<&dyn RequestProof> {
        self.values.credential.proof().map(|proof| &*proof.0)
    }

    /// The environment variables of a process.
    pub(crate) fn variables(&self) -> &[(String, Secret)] {
        self.values.credential.variables()
    }

    /// The values to mask: each value and its secret parts.
    pub(crate) fn secrets(&self) -> &Arc<[Secret]> {
        &self.values.secrets
    }
}

/// A lifetime too long for the clock never ends, as far as this program is concerned.
fn valid_until(credential: &Credential) -> Option<Instant> {
    const MAX: std::time::Duration = std::time::Duration::from_secs(365 * 24 * 3600);
    credential.lifetime().map(|lifetime| Instant::now() + lifetime.min(MAX))
}

/// Bounds what a provider may return. Every value is also searched for in all texts, so long ones are costly.
fn check_size(values: &[(String, Secret)], what: &str) -> Result<(), String> {
    if values.len() > MAX_VALUES {
        return Err(format!(
            "the credential has {} {what}; {MAX_VALUES} are allowed",
            values.len()
        ));
    }
    match values.iter().find(|(_, value)| value.expose().len() > MAX_VALUE_BYTES) {
        Some((name, _)) => Err(format!(
            "the value of `{}` in the credential is longer than {MAX_VALUE_BYTES} bytes",
            name.escape_debug()
        )),
        None => Ok(()),
    }
}

fn headers(credential: &Credential) -> Result<HeaderMap, String> {
    check_size(credential.headers(), "headers")?;
    let mut headers = HeaderMap::new();
    for (name, value) in credential.headers() {
        let shown = name.escape_debug();
        let key = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| format!("`{shown}` in the credential cannot be the name of a header"))?;
        if RESERVED.contains(&key.as_str()) || RESERVED_PREFIXES.iter().any(|prefix| key.as_str().starts_with(prefix)) {
            return Err(format!(
                "the credential sets the header `{shown}`, which is part of the protocol"
            ));
        }
        let mut value = HeaderValue::from_str(value.expose()).map_err(|_| {
            format!("the value of `{shown}` in the credential has characters that a header cannot carry")
        })?;
        value.set_sensitive(true);
        headers
            .try_insert(key, value)
            .map_err(|_| "the credential has too many headers".to_owned())?;
    }
    Ok(headers)
}

fn check_variables(credential: &Credential) -> Result<(), String> {
    check_size(credential.variables(), "variables")?;
    for (name, value) in credential.variables() {
        let shown = name.escape_debug();
        if !is_variable_name(name) {
            return Err(format!("`{shown}` in the credential cannot be the name of a variable"));
        }
        if value.expose().contains('\0') {
            return Err(format!(
                "the value of `{shown}` in the credential has a character that a variable cannot carry"
            ));
        }
    }
    Ok(())
}

/// Every value as a whole, what follows a scheme such as `Bearer`, and the parts that would be secrets of a config.
fn secrets(credential: &Credential) -> Vec<Secret> {
    let mut secrets = BTreeSet::new();
    for (name, value) in credential.headers().iter().chain(credential.variables()) {
        let text = value.expose().trim();
        secrets.insert(Secret::new(text));
        if let Some((_, rest)) = text.split_once(' ') {
            secrets.insert(Secret::new(rest.trim()));
        }
        secrets.extend(secrets_in(name, text));
    }
    secrets
        .into_iter()
        .filter(|secret| !secret.expose().is_empty())
        .collect()
}
