//! Notices sign-ins and sign-outs that are made elsewhere: by another task, or by another process with the same store.

use super::{account::OAuthAccount, client::OAuthClient};
use futures_util::future::BoxFuture;
use pegboard_base::secret::Secret;

/// What happened to an account in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreChange {
    /// There is another token than the one that is used.
    SignedIn,
    /// The token that is used was removed.
    SignedOut,
}

impl OAuthClient {
    /// Whether the store has tokens for an account, of whatever age.
    pub fn has_session<'a>(&'a self, account: &'a OAuthAccount) -> BoxFuture<'a, bool> {
        Box::pin(async move { self.stored_token(account).await.is_some() })
    }

    /// Waits until the store has another token for an account.
    pub fn newly_signed_in<'a>(&'a self, account: &'a OAuthAccount) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let key = account.key();
            let mut changes = self.store().changes();
            let mut seen = *changes.borrow_and_update();
            let before = self.stored_token(account).await;
            loop {
                if changes.changed().await.is_err() {
                    return std::future::pending().await;
                }
                let last = *changes.borrow_and_update();
                if !self.store().has_changed_since(&key, std::mem::replace(&mut seen, last)) {
                    continue;
                }
                let now = self.stored_token(account).await;
                if now.is_some() && now != before {
                    return;
                }
            }
        })
    }

    /// Compares the store with the token that is used, if the account may have changed after the change `since`. Each change is returned once. A
    /// store that cannot be read has not changed.
    pub fn store_change<'a>(&'a self, account: &'a OAuthAccount, since: u64) -> BoxFuture<'a, Option<StoreChange>> {
        Box::pin(async move {
            let key = account.key();
            if !self.store().has_changed_since(&key, since) {
                return None;
            }
            let stored = self.store().account(&key).await.ok()?;
            let stored = stored
                .and_then(|stored| stored.session)
                .map(|session| session.access_token);
            let has_changed = self.follow(&key, stored.as_ref());
            has_changed.then_some(match stored {
                Some(_) => StoreChange::SignedIn,
                None => StoreChange::SignedOut,
            })
        })
    }

    async fn stored_token(&self, account: &OAuthAccount) -> Option<Secret> {
        let stored = self.store().account(&account.key()).await.ok().flatten()?;
        Some(stored.session?.access_token)
    }
}
