//! Revokes tokens at their authorization server (RFC 7009).

use url::Url;

use super::{
    account::OAuthAccount,
    checked_http::{CheckedHttp, Trust},
    error::OAuthError,
    stored::Session,
    token_request::{ClientIdentity, authenticate},
};

/// Revokes the tokens of a session. Returns whether the authorization server has confirmed it.
pub(super) async fn revoke(http: &CheckedHttp, account: &OAuthAccount, session: &Session) -> Result<bool, OAuthError> {
    let Some(endpoint) = session
        .revocation_endpoint
        .as_ref()
        .and_then(|url| Url::parse(url).ok())
    else {
        return Ok(false);
    };
    let client = ClientIdentity::new(&session.client, &account.settings, &session.issuer, None);
    let trust = Trust::of(account);
    // The refresh token first: many servers end the whole session with it.
    let refresh = session.refresh_token.as_ref().map(|token| (token, "refresh_token"));
    let tokens = refresh.into_iter().chain([(&session.access_token, "access_token")]);
    let mut are_revoked = true;
    for (token, kind) in tokens {
        let authentication = authenticate(&client)?;
        let mut form = vec![("token", token.expose()), ("token_type_hint", kind)];
        form.extend(authentication.form());
        let response = http
            .post_form(&trust, &endpoint, &form, authentication.header())
            .await?;
        are_revoked &= response.is_success();
    }
    Ok(are_revoked)
}
