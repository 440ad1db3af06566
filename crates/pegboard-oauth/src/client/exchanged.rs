//! What tokens of callers were exchanged for: in memory only, like the tokens of callers.

use super::OAuthClient;
use crate::{account::OAuthAccount, token_store::TokenStore};

impl OAuthClient {
    /// The store that the tokens of an account are in.
    pub(super) fn store_of(&self, account: &OAuthAccount) -> &TokenStore {
        match account.subject {
            Some(_) => &self.inner.exchanged,
            None => &self.inner.store,
        }
    }

    /// Forgets what the token of a caller was exchanged for.
    pub fn forget_exchanged(&self, account: &OAuthAccount) {
        let key = account.key();
        self.inner.exchanged.forget_in_memory(&key);
        let mut accounts = self.inner.accounts.lock();
        accounts.remove(&key);
    }
}
