//! [`Caller`]: what is known of a client that was admitted.

use std::sync::Arc;

use pegboard::{
    Principal, View,
    config::{Rate, TokenConfig},
    credential::CallerRights,
};
use tokio::sync::watch;

use super::{revocation::Revocation, scope::Scopes};

/// How many calls the holder of an access token may make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallLimits {
    pub(crate) rate: Option<Rate>,
    pub(crate) concurrent: Option<usize>,
}

impl CallLimits {
    /// The limits of a token of the config.
    pub fn from_token(token: &TokenConfig) -> Self {
        Self {
            rate: token.rate,
            concurrent: token.concurrent,
        }
    }

    /// Applies the limits to the view of the caller.
    pub fn apply(self, mut view: View) -> View {
        if let Some(rate) = self.rate {
            view = view.rate(rate);
        }
        match self.concurrent {
            Some(most) => view.max_in_flight(most),
            None => view,
        }
    }
}

/// The limits of a caller, which a reload may change. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct CurrentLimits(Arc<watch::Sender<CallLimits>>);

impl CurrentLimits {
    pub(crate) fn get(&self) -> CallLimits {
        *self.0.borrow()
    }

    pub(crate) fn set(&self, limits: CallLimits) {
        self.0.send_replace(limits);
    }

    /// Completes when they are others than `known`.
    pub(crate) async fn changed(&self, known: CallLimits) {
        // The sender lives as long as this.
        let _ = self.0.subscribe().wait_for(|limits| *limits != known).await;
    }
}

impl From<CallLimits> for CurrentLimits {
    fn from(limits: CallLimits) -> Self {
        Self(Arc::new(watch::Sender::new(limits)))
    }
}

/// A client that was admitted. Equal callers have the same rights and limits.
///
/// Requests that reach the router of [`GatewayBuilder::fallback`](crate::GatewayBuilder::fallback) carry it as an extension.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The name of its token, or who its access token is for; `None` if no tokens are configured.
    pub(crate) principal: Option<Principal>,
    /// Which of the principal's access tokens it has; `None` if no server exchanges them.
    pub(crate) rights: Option<CallerRights>,
    /// The only view that its token allows.
    pub(crate) view: Option<Arc<str>>,
    /// What it may do.
    pub(crate) scopes: Scopes,
    /// How many calls it may make, if that is not a matter of a token of the config.
    pub(crate) limits: CurrentLimits,
    /// Whether it came with an access token of an authorization server.
    pub(crate) has_access_token: bool,
    /// Cancelled when the token is removed, expires or gets other rights. What the client has open ends then, but calls that a token has
    /// admitted outlast its time.
    pub(crate) revoked: Revocation,
}

impl Caller {
    /// The name of its token, or the issuer, `#` and the subject of its access token; `None` if it needs none.
    pub fn principal(&self) -> Option<&Principal> {
        self.principal.as_ref()
    }

    /// The only view that it may use; `None` if it may use the whole board.
    pub fn view(&self) -> Option<&str> {
        self.view.as_deref()
    }

    /// Which of the principal's access tokens is exchanged for its calls; `None` if no server exchanges them.
    pub fn rights(&self) -> Option<CallerRights> {
        self.rights
    }

    /// How many calls it may make. The limits of a token of the config are those of its settings.
    pub fn limits(&self) -> CallLimits {
        self.limits.get()
    }

    /// What it may do.
    pub fn scopes(&self) -> Scopes {
        self.scopes
    }

    /// A client of a path that needs no token, which has none. It may do nothing else.
    pub(crate) fn without_rights() -> Self {
        Self {
            scopes: std::iter::empty().collect(),
            ..Self::default()
        }
    }

    /// Completes when its token is removed, expires or gets other rights. Responses end then by themselves, unless they are marked as
    /// [those of calls](crate::AnswersCall).
    pub async fn revoked(&self) {
        self.revoked.wait_ended().await;
    }

    /// Completes when its token is removed or gets other rights, and never because it expires: a call that was admitted before goes on then.
    pub async fn withdrawn(&self) {
        self.revoked.wait_revoked().await;
    }
}

/// A client where no token is needed. It may do everything.
impl Default for Caller {
    fn default() -> Self {
        Self {
            principal: None,
            rights: None,
            view: None,
            scopes: Scopes::ALL,
            limits: CurrentLimits::default(),
            has_access_token: false,
            revoked: Revocation::default(),
        }
    }
}

impl PartialEq for Caller {
    fn eq(&self, other: &Self) -> bool {
        let rights = |caller: &Self| (caller.rights, caller.scopes, caller.limits());
        (&self.principal, &self.view, rights(self)) == (&other.principal, &other.view, rights(other))
    }
}

impl Eq for Caller {}
