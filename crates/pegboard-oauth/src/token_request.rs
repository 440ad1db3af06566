//! Requests to the token endpoint: redeems a code, refreshes, and the grants without a person.

use std::{path::Path, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::HeaderValue;
use url::{Url, form_urlencoded::byte_serialize};

use super::{
    account::OAuthAccount,
    binding::Binding,
    challenge::PROOF_ERRORS,
    checked_http::{CheckedHttp, ConfiguredOrigins, show},
    client_auth::ClientAuth,
    error::{OAuthError, RETRY_AFTER, Refusal},
    jws,
    stored::StoredClient,
    token_answer::{TokenAnswer, TokenRefusal},
};
use pegboard_base::{private_file::do_not_wait, secret::Secret};
use pegboard_config::{ClientKey, IdentityProvider, JwtBearer, OAuthConfig, TokenExchange, TokenInput};

/// The largest token that is read from a file.
const MAX_TOKEN_FILE: u64 = 64 << 10;
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// A client as it authenticates at one authorization server.
#[derive(Debug)]
pub(super) struct ClientIdentity<'a> {
    id: Option<&'a str>,
    secret: Option<&'a Secret>,
    key: Option<&'a ClientKey>,
    auth: ClientAuth,
    /// The audience of assertions: the issuer.
    issuer: &'a str,
    signing_algs: Option<&'a [String]>,
    /// The key that tokens are bound to.
    binding: Option<&'a Binding>,
}

impl<'a> ClientIdentity<'a> {
    /// The secret and the key of the config are used only for the client of the config.
    pub(super) fn new(
        client: &'a StoredClient,
        settings: &'a OAuthConfig,
        issuer: &'a str,
        signing_algs: Option<&'a [String]>,
    ) -> Self {
        let is_configured = settings.client_id.as_deref() == Some(client.id.as_str())
            || settings
                .client_metadata_url
                .as_ref()
                .is_some_and(|url| url.expose().as_str() == client.id);
        let configured = settings.client_secret.as_ref().filter(|_| is_configured);
        Self {
            id: (!client.id.is_empty()).then_some(client.id.as_str()),
            secret: client.secret.as_ref().or(configured),
            key: settings.private_key.as_ref().filter(|_| is_configured),
            auth: client.auth,
            issuer,
            signing_algs,
            binding: None,
        }
    }

    /// Requests tokens that are bound to a key.
    pub(super) fn with_binding(mut self, binding: Option<&'a Binding>) -> Self {
        self.binding = binding;
        self
    }
}

/// What is exchanged for a token.
#[derive(Debug)]
pub(super) enum Grant<'a> {
    Code {
        code: &'a Secret,
        verifier: &'a Secret,
        redirect_uri: &'a str,
    },
    Refresh(&'a Secret),
    ClientCredentials,
    Exchange {
        subject: &'a Secret,
        exchange: &'a TokenExchange,
    },
    Assertion(&'a Secret),
}

/// What every token request has besides its grant.
#[derive(Debug, Clone, Copy)]
pub(super) struct TokenRequestBase<'a> {
    pub(super) resource: Option<&'a str>,
    pub(super) audience: Option<&'a str>,
    pub(super) scopes: &'a [String],
}

/// Why a token request gave no token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TokenError {
    /// The grant is not valid, or no longer: another one is needed.
    InvalidGrant(String),
    /// The authorization server does not know the client.
    InvalidClient(String),
    /// The authorization server refuses the proof of the key, and may accept the next one.
    Proof(String),
    /// Everything else.
    Other(OAuthError),
}

impl TokenError {
    /// The error of an account: a client that is refused is one of its settings.
    pub(super) fn for_account(self, account: &OAuthAccount) -> OAuthError {
        match self {
            Self::InvalidClient(text) => OAuthError::wrong_client(account, text),
            error => error.into(),
        }
    }
}

impl From<TokenError> for OAuthError {
    fn from(error: TokenError) -> Self {
        match error {
            TokenError::InvalidGrant(text) | TokenError::InvalidClient(text) => Self::Refused(Refusal::new(text)),
            TokenError::Proof(reason) => Self::Temporary {
                reason,
                retry_after: RETRY_AFTER,
            },
            TokenError::Other(error) => error,
        }
    }
}

impl From<OAuthError> for TokenError {
    fn from(error: OAuthError) -> Self {
        Self::Other(error)
    }
}

/// Requests a token, and once more if the authorization server refuses only the proof of the key: it may want a nonce in it.
pub(super) async fn request(
    http: &CheckedHttp,
    trust: &ConfiguredOrigins<'_>,
    endpoint: &Url,
    client: &ClientIdentity<'_>,
    grant: &Grant<'_>,
    wanted: TokenRequestBase<'_>,
) -> Result<TokenAnswer, TokenError> {
    match request_once(http, trust, endpoint, client, grant, wanted).await {
        Err(TokenError::Proof(_)) => request_once(http, trust, endpoint, client, grant, wanted).await,
        answer => answer,
    }
}

async fn request_once(
    http: &CheckedHttp,
    trust: &ConfiguredOrigins<'_>,
    endpoint: &Url,
    client: &ClientIdentity<'_>,
    grant: &Grant<'_>,
    wanted: TokenRequestBase<'_>,
) -> Result<TokenAnswer, TokenError> {
    let mut form: Vec<(&str, &str)> = Vec::new();
    let mut sent: Vec<&str> = Vec::new();
    match grant {
        Grant::Code {
            code,
            verifier,
            redirect_uri,
        } => {
            form.push(("grant_type", "authorization_code"));
            form.push(("code", code.expose()));
            form.push(("code_verifier", verifier.expose()));
            form.push(("redirect_uri", redirect_uri));
            sent.extend([code.expose(), verifier.expose()]);
        }
        Grant::Refresh(token) => {
            form.push(("grant_type", "refresh_token"));
            form.push(("refresh_token", token.expose()));
            sent.push(token.expose());
        }
        Grant::ClientCredentials => form.push(("grant_type", "client_credentials")),
        Grant::Exchange { subject, exchange } => {
            form.push(("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"));
            form.push(("subject_token", subject.expose()));
            form.push(("subject_token_type", &exchange.subject_type));
            if let Some(kind) = &exchange.requested_type {
                form.push(("requested_token_type", kind));
            }
            sent.push(subject.expose());
        }
        Grant::Assertion(assertion) => {
            form.push(("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"));
            form.push(("assertion", assertion.expose()));
            sent.push(assertion.expose());
        }
    }
    let scopes = wanted.scopes.join(" ");
    // A refresh gives the scopes of its session; asking for more is an error, and asking for the same is refused by some servers.
    if !scopes.is_empty() && !matches!(grant, Grant::Code { .. } | Grant::Refresh(_)) {
        form.push(("scope", &scopes));
    }
    form.extend(wanted.resource.map(|resource| ("resource", resource)));
    form.extend(wanted.audience.map(|audience| ("audience", audience)));
    let authentication = authenticate(client)?;
    form.extend(authentication.form());
    sent.extend(authentication.assertion.as_ref().map(Secret::expose));
    sent.extend(client.secret.map(Secret::expose));
    let proof_key = client.binding.map(|binding| &*binding.key);
    let response = http
        .post_proven(trust, endpoint, &form, authentication.header(), proof_key)
        .await;
    let response = response.map_err(OAuthError::from)?;
    match TokenAnswer::parse(response.status, &response.body, &sent) {
        Ok(answer) => check_binding(client.binding, answer),
        Err(TokenRefusal::Error { code, text })
            if response.may_take_other_proof && PROOF_ERRORS.contains(&code.as_str()) =>
        {
            Err(TokenError::Proof(text))
        }
        Err(refusal) => Err(failure(endpoint, response.is_temporary(), response.status, refusal)),
    }
}

/// Refuses a token that is bound to a key unasked, or not bound although that is required.
fn check_binding(binding: Option<&Binding>, answer: TokenAnswer) -> Result<TokenAnswer, TokenError> {
    let refused = |why: &str| Err(TokenError::Other(OAuthError::Refused(Refusal::new(why))));
    match binding {
        None if answer.is_bound => refused("it issued a token that is bound to a key, although none was named"),
        Some(binding) if binding.is_required && !answer.is_bound => Err(TokenError::Other(OAuthError::NotBound(
            "the authorization server issued a token that is not bound to this program's key (DPoP), and `oauth.dpop` is `required`"
                .to_owned(),
        ))),
        _ => Ok(answer),
    }
}

/// How a request proves which client it comes from.
#[derive(Debug)]
pub(super) struct Authentication<'a> {
    id: Option<&'a str>,
    secret: Option<&'a Secret>,
    assertion: Option<Secret>,
    header: Option<HeaderValue>,
}

impl Authentication<'_> {
    /// The fields of the form.
    pub(super) fn form(&self) -> impl Iterator<Item = (&str, &str)> {
        let id = self.id.map(|id| ("client_id", id));
        let secret = self.secret.map(|secret| ("client_secret", secret.expose()));
        let assertion = self
            .assertion
            .as_ref()
            .map(|assertion| ("client_assertion", assertion.expose()));
        let kind = assertion.map(|_| {
            (
                "client_assertion_type",
                "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            )
        });
        id.into_iter().chain(secret).chain(kind).chain(assertion)
    }

    /// The signed assertion of the client.
    pub(super) fn assertion(&self) -> Option<&Secret> {
        self.assertion.as_ref()
    }

    /// The `Authorization` header.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        self.header.clone()
    }
}

/// Proves who the client is, by its method.
pub(super) fn authenticate<'a>(client: &ClientIdentity<'a>) -> Result<Authentication<'a>, OAuthError> {
    let mut authentication = Authentication {
        id: client.id,
        secret: None,
        assertion: None,
        header: None,
    };
    match client.auth {
        ClientAuth::None => {}
        ClientAuth::ClientSecretBasic => {
            // The id stays in the form: the servers of the Python SDK refuse a request without it.
            authentication.header = Some(basic(client)?);
        }
        ClientAuth::ClientSecretPost => {
            authentication.secret = Some(client.secret.ok_or_else(|| missing_credential_error("a secret"))?);
        }
        ClientAuth::PrivateKeyJwt => {
            let key = client.key.ok_or_else(|| missing_credential_error("a private key"))?;
            let id = client.id.ok_or_else(|| missing_credential_error("an id"))?;
            authentication.assertion = Some(jws::client_assertion(key, id, client.issuer, client.signing_algs)?);
        }
    }
    Ok(authentication)
}

fn missing_credential_error(what: &str) -> OAuthError {
    OAuthError::Setting(format!(
        "the client needs {what} to authenticate at the authorization server"
    ))
}

fn failure(endpoint: &Url, is_temporary: bool, status: u16, refusal: TokenRefusal) -> TokenError {
    let temporary = |reason| {
        TokenError::Other(OAuthError::Temporary {
            reason,
            retry_after: RETRY_AFTER,
        })
    };
    match refusal {
        TokenRefusal::Error { code, text } => match code.as_str() {
            "invalid_grant" => TokenError::InvalidGrant(text),
            "invalid_client" | "unauthorized_client" => TokenError::InvalidClient(text),
            "server_error" | "temporarily_unavailable" | "slow_down" => temporary(text),
            code if PROOF_ERRORS.contains(&code) => temporary(text),
            _ if is_temporary => temporary(text),
            _ => TokenError::Other(OAuthError::Refused(Refusal::new(text).code(Some(code)))),
        },
        TokenRefusal::NoAnswer(text) => temporary(format!("{} answered with {text}", show(endpoint))),
        TokenRefusal::Malformed(text) if is_temporary => {
            temporary(format!("{} answered with status {status}: {text}", show(endpoint)))
        }
        TokenRefusal::Malformed(text) => TokenError::Other(OAuthError::Refused(Refusal::new(text))),
    }
}

/// The header of `client_secret_basic`: id and secret are form-encoded first (RFC 6749, 2.3.1).
fn basic(client: &ClientIdentity<'_>) -> Result<HeaderValue, OAuthError> {
    let id = client.id.ok_or_else(|| missing_credential_error("an id"))?;
    let secret = client.secret.ok_or_else(|| missing_credential_error("a secret"))?;
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(id), encoded(secret.expose()));
    let mut value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair)))
        .map_err(|_| missing_credential_error("an id and a secret that a header can carry"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Reads the token that is exchanged.
pub(super) async fn read_input(input: &TokenInput, account: &OAuthAccount) -> Result<Secret, OAuthError> {
    match input {
        TokenInput::Value(token) => Ok(token.clone()),
        TokenInput::Caller => match &account.subject {
            Some(subject) => Ok(subject.token.clone()),
            None => Err(OAuthError::Setting(
                "the caller came without a token that could be exchanged".to_owned(),
            )),
        },
        TokenInput::File(file) => read_file(file).await,
    }
}

async fn read_file(file: &Path) -> Result<Secret, OAuthError> {
    const READ_TIMEOUT: Duration = Duration::from_secs(5);
    let path = file.to_owned();
    let read = tokio::task::spawn_blocking(move || {
        use std::io::Read as _;
        let mut text = String::new();
        let mut options = std::fs::OpenOptions::new();
        options.read(true);
        do_not_wait(&mut options);
        let file = options.open(&path)?;
        // A pipe would block this thread until somebody writes to it.
        if !file.metadata()?.is_file() {
            return Err(std::io::Error::other("it is no regular file"));
        }
        file.take(MAX_TOKEN_FILE).read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(text)
    });
    let failed = |why: String| OAuthError::Temporary {
        reason: format!("the token in {} cannot be read: {why}", file.display()),
        retry_after: RETRY_AFTER,
    };
    match tokio::time::timeout(READ_TIMEOUT, read).await {
        Ok(Ok(Ok(text))) if !text.trim().is_empty() => Ok(Secret::new(text.trim())),
        Ok(Ok(Ok(_))) => Err(failed("the file is empty".to_owned())),
        Ok(Ok(Err(error))) => Err(failed(error.to_string())),
        Ok(Err(_)) => Err(failed("the program is ending".to_owned())),
        Err(_) => Err(failed("it takes too long".to_owned())),
    }
}

/// The assertion of a JWT bearer grant: `input`, or one that an identity provider issues for it.
pub(super) async fn assertion(
    http: &CheckedHttp,
    account: &OAuthAccount,
    grant: &JwtBearer,
    input: Secret,
    issuer: &str,
    wanted: TokenRequestBase<'_>,
) -> Result<Secret, TokenError> {
    let Some(provider) = &grant.identity_provider else {
        return Ok(input);
    };
    let IdentityProvider {
        token_url,
        client_id,
        client_secret,
    } = provider;
    let mut exchange = TokenExchange::new(TokenInput::Caller);
    exchange.subject_type = "urn:ietf:params:oauth:token-type:id_token".to_owned();
    exchange.requested_type = Some(ID_JAG.to_owned());
    let provider_issuer = token_url.expose().origin().ascii_serialization();
    let client = ClientIdentity {
        id: client_id.as_deref(),
        secret: client_secret.as_ref(),
        key: None,
        auth: match client_secret {
            Some(_) => ClientAuth::ClientSecretBasic,
            None => ClientAuth::None,
        },
        issuer: &provider_issuer,
        signing_algs: None,
        binding: None,
    };
    let exchanged = Grant::Exchange {
        subject: &input,
        exchange: &exchange,
    };
    let wanted = TokenRequestBase {
        audience: Some(issuer),
        ..wanted
    };
    let trust = ConfiguredOrigins::new(account).and(token_url.expose());
    let answer = request(http, &trust, token_url.expose(), &client, &exchanged, wanted).await?;
    Ok(answer.access_token)
}

#[cfg(test)]
mod tests;
