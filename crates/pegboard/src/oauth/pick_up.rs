//! Notices sign-ins that are made elsewhere: by another task, or by another process with the same store.

use super::{account::OAuthAccount, client::OAuthClient};
use crate::secret::Secret;

impl OAuthClient {
    /// Whether the store has tokens for an account, of whatever age.
    pub(crate) async fn has_session(&self, account: &OAuthAccount) -> bool {
        self.stored_token(account).await.is_some()
    }

    /// Waits until the store has another token for an account.
    pub(crate) async fn newly_signed_in(&self, account: &OAuthAccount) {
        let mut changes = self.store().changes();
        let before = self.stored_token(account).await;
        loop {
            if changes.changed().await.is_err() {
                return std::future::pending().await;
            }
            let now = self.stored_token(account).await;
            if now.is_some() && now != before {
                return;
            }
        }
    }

    async fn stored_token(&self, account: &OAuthAccount) -> Option<Secret> {
        let stored = self.store().account(&account.key()).await.ok().flatten()?;
        Some(stored.session?.access_token)
    }
}
