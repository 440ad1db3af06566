//! Revokes tokens at their authorization server (RFC 7009).

use url::Url;

use super::{
    account::OAuthAccount,
    checked_http::{CheckedHttp, Response, Trust},
    error::OAuthError,
    metadata::clipped,
    stored::Session,
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
    // The refresh token first: many servers end the whole session with it.
    let refresh = session.refresh_token.as_ref().map(|token| (token, "refresh_token"));
    let tokens = refresh.into_iter().chain([(&session.access_token, "access_token")]);
    for (token, kind) in tokens {
        let form = [("token", token.expose()), ("token_type_hint", kind)];
        let response = request(http, account, session, &endpoint, &form).await;
        let response = response.map_err(|error| error.to_string())?;
        if !response.is_success() {
            return Err(refusal(&response));
        }
    }
    Ok(())
}

async fn request(
    http: &CheckedHttp,
    account: &OAuthAccount,
    session: &Session,
    endpoint: &Url,
    fields: &[(&str, &str)],
) -> Result<Response, OAuthError> {
    let client = ClientIdentity::new(&session.client, &account.settings, &session.issuer, None);
    let trust = Trust::of(account);
    let authentication = authenticate(&client)?;
    let mut form = fields.to_vec();
    form.extend(authentication.form());
    let response = http.post_form(&trust, endpoint, &form, authentication.header()).await?;
    if response.status != 400 || form.iter().any(|(name, _)| *name == CLIENT_SECRET) {
        return Ok(response);
    }
    // The servers of the Python SDK refuse a request whose form has no `client_secret`, even one of a client without a secret.
    let secret = session
        .client
        .secret
        .as_ref()
        .or(account.settings.client_secret.as_ref());
    form.push((CLIENT_SECRET, secret.map_or("", |secret| secret.expose())));
    Ok(http.post_form(&trust, endpoint, &form, authentication.header()).await?)
}

/// What the authorization server says in a refusal.
fn refusal(response: &Response) -> String {
    #[derive(Default, serde::Deserialize)]
    struct Body {
        error: Option<String>,
        error_description: Option<String>,
    }
    let body: Body = serde_json::from_slice(&response.body).unwrap_or_default();
    let status = response.status;
    match (body.error, body.error_description) {
        (Some(error), Some(text)) => format!(
            "the authorization server refused it: {} ({})",
            clipped(&error),
            clipped(&text)
        ),
        (Some(error), None) => format!("the authorization server refused it: {}", clipped(&error)),
        (None, _) => format!("the authorization server answered with status {status}"),
    }
}
