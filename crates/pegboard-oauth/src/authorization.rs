//! [`PendingSignIn`]: a sign-in between the URL for the browser and the redirect that answers it.

use std::{borrow::Cow, fmt, time::Duration};

use sha2::{Digest as _, Sha256};
use tokio::time::Instant;
use url::Url;

use super::{
    account::OAuthAccount,
    binding::Binding,
    challenge::{OFFLINE_ACCESS, add_scopes},
    checked_http::{ConfiguredOrigins, show},
    discovery::Discovered,
    error::{OAuthError, Refusal},
    metadata::clip,
    pkce::{Pkce, random_text},
    redirect_uri::RedirectUri,
    sign_in_page,
    stored::{StoredChallenge, StoredClient},
};
use pegboard_base::secret::Secret;

/// How long a person may take.
const PENDING_TIMEOUT: Duration = Duration::from_secs(600);
/// The longest redirect that is read.
const MAX_REDIRECT: usize = 16 << 10;

/// A sign-in that waits for the browser. It can be finished once.
pub struct PendingSignIn {
    pub(super) account: OAuthAccount,
    pub(super) found: Discovered,
    pub(super) client: StoredClient,
    pub(super) scopes: Vec<String>,
    pub(super) verifier: Secret,
    pub(super) is_step_up: bool,
    /// The key that the tokens will be bound to.
    pub(super) binding: Option<Binding>,
    url: Url,
    redirect: RedirectUri,
    state: Secret,
    began: Instant,
}

impl PendingSignIn {
    /// Builds the URL for the browser. `is_step_up` says whether a server asked for more scopes.
    pub(super) fn new(
        account: &OAuthAccount,
        found: Discovered,
        client: StoredClient,
        redirect: &RedirectUri,
        scopes: Vec<String>,
        is_step_up: bool,
    ) -> Result<Self, OAuthError> {
        let settings = &account.settings;
        let pkce = Pkce::new(&found.server, settings.issuer.is_some())?;
        let state = random_text()?;
        let Some(mut url) = found.server.authorization_endpoint.clone() else {
            return Err(OAuthError::Discovery(format!(
                "the authorization server {} has no page to sign in",
                clip(&found.server.issuer)
            )));
        };
        // The URL is opened in a browser, so it must not be anything but a web page.
        ConfiguredOrigins::new(account).check_scheme(&url).map_err(|why| {
            OAuthError::Discovery(format!(
                "the page to sign in that the authorization server names is not used: {why}"
            ))
        })?;
        if !sign_in_page::is_of(&found.server, &url, settings) {
            return Err(OAuthError::Discovery(format!(
                "the authorization server {} names the page of another one, {}, and would get its codes",
                clip(&found.server.issuer),
                show(&url)
            )));
        }
        url.set_fragment(None);
        keep_others(&mut url);
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("response_type", "code")
                .append_pair("client_id", &client.id)
                .append_pair("redirect_uri", redirect.as_str())
                .append_pair("state", &state)
                .append_pair("code_challenge", &pkce.challenge)
                .append_pair("code_challenge_method", "S256")
                .append_pair("resource", &found.resource);
            if !scopes.is_empty() {
                query.append_pair("scope", &scopes.join(" "));
            }
            if scopes.iter().any(|scope| scope == OFFLINE_ACCESS) {
                // OpenID Connect gives a refresh token only after the person was asked.
                query.append_pair("prompt", "consent");
            }
            if let Some(audience) = &settings.audience {
                query.append_pair("audience", audience);
            }
        }
        Ok(Self {
            account: account.clone(),
            found,
            client,
            scopes,
            verifier: pkce.verifier,
            is_step_up,
            binding: None,
            url,
            redirect: redirect.clone(),
            state: Secret::new(state),
            began: Instant::now(),
        })
    }

    /// Binds the code to a key, and the tokens that it is redeemed for.
    pub(super) fn with_binding(mut self, binding: Option<Binding>) -> Self {
        if let Some(binding) = &binding {
            self.url
                .query_pairs_mut()
                .append_pair("dpop_jkt", binding.key.thumbprint());
        }
        self.binding = binding;
        self
    }

    /// The URL for the browser. It contains no secret.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The address to which the authorization server sends the browser back.
    pub fn redirect_uri(&self) -> &RedirectUri {
        &self.redirect
    }

    /// Identifies this sign-in in the redirect.
    #[cfg(test)]
    pub(crate) fn state(&self) -> &str {
        self.state.expose()
    }

    /// The account that is signed in to.
    pub fn account(&self) -> &OAuthAccount {
        &self.account
    }

    /// Whether this is the redirect of this sign-in: a URL, or only its query.
    pub fn is_answered_by(&self, redirected: &str) -> bool {
        let Ok(query) = self.query(redirected.trim()) else {
            return false;
        };
        let has = |wanted: &dyn Fn(&str, &str) -> bool| {
            url::form_urlencoded::parse(query.as_bytes()).any(|(name, value)| wanted(&name, &value))
        };
        has(&|name, value| name == "state" && is_equal(value, self.state.expose()))
            && has(&|name, _| matches!(name, "code" | "error"))
    }

    /// Returns the code in the redirect that answers this sign-in: a URL, or only its query, as people paste it.
    pub(super) fn code(&self, redirected: &str) -> Result<Secret, OAuthError> {
        let refused = |why: &str| Err(OAuthError::Redirect(why.to_owned()));
        if self.began.elapsed() > PENDING_TIMEOUT {
            return refused("the sign-in took too long; start it again");
        }
        let redirected = redirected.trim();
        if redirected.len() > MAX_REDIRECT {
            return refused("the redirect address is too long");
        }
        let query = self.query(redirected)?;
        let mut fields = RedirectParams::default();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            fields.take(&name, &value)?;
        }
        // First of all: whether this is the answer to our question.
        match &fields.state {
            Some(state) if is_equal(state, self.state.expose()) => {}
            Some(_) => return refused("the redirect belongs to another sign-in (its `state` differs)"),
            None => return refused("the redirect has no `state`, so it may not be the answer to this sign-in"),
        }
        let issuer = &self.found.server.issuer;
        match &fields.iss {
            Some(iss) if iss == issuer => {}
            Some(iss) => {
                return Err(OAuthError::Redirect(format!(
                    "the redirect comes from another authorization server: {} and not {}",
                    clip(iss),
                    clip(issuer)
                )));
            }
            None if self.found.server.sends_iss => {
                return refused("the redirect does not name its authorization server, although that always does");
            }
            None => {}
        }
        if let Some(error) = fields.error {
            let text = match fields.description {
                Some(description) => format!("{} ({})", clip(&error), clip(&description)),
                None => clip(&error),
            };
            return Err(OAuthError::Denied(Refusal::new(text).code(Some(clip(&error)))));
        }
        match fields.code {
            Some(code) if !code.is_empty() => Ok(Secret::new(code)),
            _ => refused("the redirect has no code"),
        }
    }

    /// The query of a redirect. A whole URL must be that of this sign-in.
    fn query<'a>(&self, redirected: &'a str) -> Result<&'a str, OAuthError> {
        if !redirected.contains("://") {
            return Ok(redirected.rsplit_once('?').map_or(redirected, |(_, query)| query));
        }
        let url = Url::parse(redirected);
        let own = self.redirect.url();
        let is_own = url.is_ok_and(|url| url.origin() == own.origin() && url.path() == own.path());
        if !is_own {
            return Err(OAuthError::Redirect(format!(
                "this is not the redirect address of the sign-in, which begins with {}",
                self.redirect.as_str()
            )));
        }
        let query = redirected.split_once('?').map_or("", |(_, query)| query);
        Ok(query.split_once('#').map_or(query, |(query, _)| query))
    }
}

/// Without the URL and the state: who knows them can answer in the place of the person.
impl fmt::Debug for PendingSignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingSignIn")
            .field("server", &self.account.server)
            .field("principal", &self.account.principal)
            .field("issuer", &self.found.server.issuer)
            .field("redirect", &self.redirect)
            .finish_non_exhaustive()
    }
}

/// The parameters that a sign-in sets, and those that would change what they mean.
const OWN_PARAMETERS: [&str; 16] = [
    "dpop_jkt",
    "response_type",
    "response_mode",
    "client_id",
    "redirect_uri",
    "state",
    "nonce",
    "code_challenge",
    "code_challenge_method",
    "resource",
    "scope",
    "prompt",
    "audience",
    "request",
    "request_uri",
    "client_secret",
];

/// Removes those from the URL of the page. What else it has belongs to it, such as a tenant or a policy.
fn keep_others(url: &mut Url) {
    let is_other = |(name, _): &(Cow<'_, str>, Cow<'_, str>)| !OWN_PARAMETERS.contains(&name.as_ref());
    let others: Vec<(String, String)> = url
        .query_pairs()
        .filter(is_other)
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    url.set_query(None);
    if !others.is_empty() {
        url.query_pairs_mut().extend_pairs(others);
    }
}

/// The parameters of a redirect.
#[derive(Default)]
struct RedirectParams {
    state: Option<String>,
    iss: Option<String>,
    code: Option<String>,
    error: Option<String>,
    description: Option<String>,
}

impl RedirectParams {
    /// Takes a parameter. One that comes twice could mean two things.
    fn take(&mut self, name: &str, value: &str) -> Result<(), OAuthError> {
        let field = match name {
            "state" => &mut self.state,
            "iss" => &mut self.iss,
            "code" => &mut self.code,
            "error" => &mut self.error,
            "error_description" => &mut self.description,
            _ => return Ok(()),
        };
        match field.replace(value.to_owned()) {
            None => Ok(()),
            Some(_) => Err(OAuthError::Redirect(format!("the redirect has `{name}` twice"))),
        }
    }
}

/// Compares by hash, so that the time does not depend on where the values differ.
fn is_equal(a: &str, b: &str) -> bool {
    Sha256::digest(a) == Sha256::digest(b)
}

/// The scopes to request: those of the config, of the challenge, or of the resource; none if nobody says.
pub(super) fn choose_scopes(account: &OAuthAccount, challenge: &StoredChallenge, found: &Discovered) -> Vec<String> {
    let configured = &account.settings.scopes;
    let mut scopes = Vec::new();
    if !configured.is_empty() {
        add_scopes(&mut scopes, configured.iter().map(String::as_str));
    }
    if configured.is_empty() || challenge.is_step_up {
        add_scopes(&mut scopes, challenge.scopes.iter().map(String::as_str));
    }
    if scopes.is_empty() {
        let listed = found.resource_scopes.iter().flatten();
        add_scopes(&mut scopes, listed.map(String::as_str));
    }
    let server_scopes = found.server.scopes.iter().flatten();
    let gives_refresh_tokens = server_scopes.into_iter().any(|scope| scope == OFFLINE_ACCESS);
    if gives_refresh_tokens && !scopes.is_empty() && account.settings.grant.needs_person() {
        add_scopes(&mut scopes, [OFFLINE_ACCESS]);
    }
    scopes
}

#[cfg(test)]
mod tests;
