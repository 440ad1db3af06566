//! Sign-outs: the tokens are forgotten here, and revoked where they came from.

use super::{Inner, OAuthClient, Remembered};
use crate::{
    account::{AccountKey, OAuthAccount},
    error::OAuthError,
    renewal::within_flow,
    revocation,
    signed_out::{Forgotten, SignedOut, What},
};
use futures_util::future::BoxFuture;

impl OAuthClient {
    /// Revokes and forgets the tokens of an account, also those of another setting of `oauth.dpop`.
    pub async fn sign_out(&self, account: &OAuthAccount) -> Result<SignedOut, OAuthError> {
        let mut ended = self.sign_out_of(&account.key(), account).await?;
        for key in account.keys_of_other_dpop() {
            ended = ended.and(self.sign_out_of(&key, account).await?);
        }
        Ok(ended)
    }

    /// Revokes and forgets the tokens under this key. `account` says which addresses may be asked.
    pub(crate) fn sign_out_of<'a>(
        &'a self,
        key: &'a AccountKey,
        account: &'a OAuthAccount,
    ) -> BoxFuture<'a, Result<SignedOut, OAuthError>> {
        Box::pin(async move {
            let forgotten = self.forget(key).await?;
            Ok(self.revoke(forgotten, account).await)
        })
    }

    /// Forgets the tokens under this key. A file that cannot be read can still be removed.
    pub fn forget<'a>(&'a self, key: &'a AccountKey) -> BoxFuture<'a, Result<Forgotten, OAuthError>> {
        Box::pin(async move {
            let Inner { store, .. } = &*self.inner;
            let _lock = store.lock(key).await?;
            let read = store.account(key).await;
            let is_damaged = store.damaged_file(key).await.is_some();
            let was_there = store.remove_account(key).await?;
            self.update_remembered(key, |remembered| *remembered = Remembered::default());
            let session = match read {
                Ok(stored) => stored.and_then(|stored| stored.session),
                Err(_) if was_there => return Ok(Forgotten(What::Unreadable)),
                Err(_) => None,
            };
            Ok(Forgotten(match session {
                Some(session) => {
                    if let Some(proof_key) = &session.proof_key {
                        self.inner.keys.forget(proof_key);
                    }
                    What::Session(Box::new(session))
                }
                None if is_damaged => What::Unreadable,
                None => What::Nothing,
            }))
        })
    }

    /// Revokes what was forgotten.
    pub fn revoke<'a>(&'a self, forgotten: Forgotten, account: &'a OAuthAccount) -> BoxFuture<'a, SignedOut> {
        Box::pin(async move {
            let session = match forgotten.0 {
                What::Nothing => return SignedOut::WasNot,
                What::Unreadable => return SignedOut::OnlyForgotten("their file could not be read".to_owned()),
                What::Session(session) => session,
            };
            let http = &self.inner.http;
            match within_flow(async { Ok(revocation::revoke(http, account, &session).await) }).await {
                Ok(Ok(())) => SignedOut::Revoked,
                Ok(Err(why)) => SignedOut::OnlyForgotten(why),
                Err(error) => SignedOut::OnlyForgotten(error.to_string()),
            }
        })
    }
}
