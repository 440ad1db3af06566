//! Revokes tokens at their authorization server (RFC 7009).

use url::Url;

use super::{
    account::OAuthAccount,
    checked_http::{CheckedHttp, ConfiguredOrigins, Response},
    error::OAuthError,
    stored::Session,
    token_answer::{self, TokenRefusal},
    token_request::{ClientIdentity, authenticate},
};

const CLIENT_SECRET: &str = "client_secret";

/// Revokes the tokens of a session. Returns why the authorization server has not confirmed it.
pub(super) async fn revoke(http: &CheckedHttp, account: &OAuthAccount, session: &Session) -> Result<(), String> {
    let parsed = |url: &String| Url::parse(url).ok();
    let Some(endpoint) = session.revocation_endpoint.as_ref().and_then(parsed) else {
        return Err("the authorization server names no address to revoke tokens".to_owned());
    };
    // Tokens and the secret of the client go only to those who gave or got them.
    let known = [parsed(&session.issuer), parsed(&session.token_endpoint)];
    if !known.iter().flatten().any(|url| url.origin() == endpoint.origin()) {
        return Err("the address to revoke tokens is that of another server".to_owned());
    }
    // The refresh token first: many servers end the whole session with it. If it is refused, the access token may be accepted still.
    let refresh = session.refresh_token.as_ref().map(|token| (token, "refresh_token"));
    let tokens = refresh.into_iter().chain([(&session.access_token, "access_token")]);
    let mut result = Ok(());
    for (token, kind) in tokens {
        let form = [("token", token.expose()), ("token_type_hint", kind)];
        let revoked = request(http, account, session, &endpoint, &form).await;
        result = result.and(revoked);
    }
    result
}

async fn request(
    http: &CheckedHttp,
    account: &OAuthAccount,
    session: &Session,
    endpoint: &Url,
    fields: &[(&str, &str)],
) -> Result<(), String> {
    let failed = |error: OAuthError| error.to_string();
    let client = ClientIdentity::new(&session.client, &account.settings, &session.issuer, None);
    let trust = ConfiguredOrigins::new(account);
    let authentication = authenticate(&client).map_err(failed)?;
    let secret = session
        .client
        .secret
        .as_ref()
        .or(account.settings.client_secret.as_ref());
    let mut form = fields.to_vec();
    form.extend(authentication.form());
    let send = async |form: &[(&str, &str)]| {
        let sent = http.post_form(&trust, endpoint, form, authentication.header()).await;
        sent.map_err(|error| failed(error.into()))
    };
    let mut response = send(&form).await?;
    if response.status == 400 && !form.iter().any(|(name, _)| *name == CLIENT_SECRET) {
        // The servers of the Python SDK refuse a request whose form has no `client_secret`, even one of a client without a secret.
        form.push((CLIENT_SECRET, secret.map_or("", |secret| secret.expose())));
        response = send(&form).await?;
    }
    if response.is_success() {
        return Ok(());
    }
    let tokens = [Some(&session.access_token), session.refresh_token.as_ref(), secret];
    let mut sent: Vec<&str> = tokens.into_iter().flatten().map(|secret| secret.expose()).collect();
    sent.extend(authentication.assertion().map(|assertion| assertion.expose()));
    Err(refusal(&response, &sent))
}

/// What the authorization server says in a refusal, without a text that repeats one of the secrets in `sent`.
fn refusal(response: &Response, sent: &[&str]) -> String {
    let fields = serde_json::from_slice(&response.body).unwrap_or_default();
    match token_answer::refusal(response.status, &fields, sent) {
        TokenRefusal::Error { text, .. } => format!("the authorization server refused it: {text}"),
        TokenRefusal::Malformed(_) | TokenRefusal::NoAnswer(_) => {
            format!("the authorization server answered with status {}", response.status)
        }
    }
}
