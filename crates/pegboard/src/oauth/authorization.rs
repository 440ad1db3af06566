//! [`PendingSignIn`]: a sign-in between the URL for the browser and the redirect that answers it.

use url::Url;

use super::{account::OAuthAccount, redirect_uri::RedirectUri};
use crate::secret::Secret;

/// A sign-in that waits for the browser. It can be finished once.
#[derive(Debug)]
pub(crate) struct PendingSignIn {
    account: OAuthAccount,
    url: Url,
    redirect: RedirectUri,
    state: Secret,
}

impl PendingSignIn {
    /// The URL for the browser. It contains no secret.
    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    pub(crate) fn redirect_uri(&self) -> &RedirectUri {
        &self.redirect
    }

    /// Identifies this sign-in in the redirect.
    pub(crate) fn state(&self) -> &str {
        self.state.expose()
    }

    pub(crate) fn account(&self) -> &OAuthAccount {
        &self.account
    }
}
