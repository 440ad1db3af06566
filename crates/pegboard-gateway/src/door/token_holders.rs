//! [`TokenHolders`]: ends what several requests share when the last of their tokens is good no longer.

use tokio_util::task::AbortOnDropHandle;

use super::caller::Caller;

/// The callers that share something which outlives their requests, such as a toolset with servers of its own. It ends with the last of
/// their tokens.
#[derive(Debug, Default)]
pub(crate) struct TokenHolders(Vec<Holder>);

#[derive(Debug)]
struct Holder {
    caller: Caller,
    _waiting: AbortOnDropHandle<()>,
}

impl TokenHolders {
    /// Adds a caller, whose token may be known already. `on_end` is called when the token is good no longer, unless this is dropped before.
    ///
    /// A caller without a principal has no token that could end.
    pub(crate) fn add(&mut self, caller: &Caller, on_end: impl FnOnce() + Send + 'static) {
        if caller.principal.is_none()
            || self
                .0
                .iter()
                .any(|holder| holder.caller.revoked.is_of_same_token(&caller.revoked))
        {
            return;
        }
        self.0.retain(|holder| !holder.caller.revoked.has_ended());
        let revoked = caller.revoked.cancelled_owned();
        let waiting = tokio::spawn(async move {
            revoked.await;
            on_end();
        });
        self.0.push(Holder {
            caller: caller.clone(),
            _waiting: AbortOnDropHandle::new(waiting),
        });
    }

    /// Whether callers with tokens have been added, and no token is good any longer.
    pub(crate) fn have_ended(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|holder| holder.caller.revoked.has_ended())
    }

    /// Whether the tokens have ended, and one of them only because its time was over. Its client may come back with a new one.
    pub(crate) fn have_expired(&self) -> bool {
        self.have_ended() && self.0.iter().any(|holder| holder.caller.revoked.has_expired())
    }
}
