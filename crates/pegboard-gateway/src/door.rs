//! Decides who may send a request: by `Host` and `Origin`, which stop web pages, and by token, which says who the client is.
//!
//! A [`Door`] stands before every route, WebSocket handshakes included. What it knows of a client that it admits is a [`Caller`]. Tokens are
//! those of the config, or access tokens of an authorization server.

mod admitted;
mod auth_error;
mod authenticate;
mod caller;
mod fetch;
mod jwt;
mod oauth;
mod owner;
mod quota;
mod rejection;
mod revocation;
mod scope;
mod site_check;
mod token_fault;
mod token_holders;
mod tokens;

use std::sync::Arc;

use http::HeaderMap;

pub use auth_error::AuthError;
pub(crate) use authenticate::Authenticator;
pub use caller::{CallLimits, Caller};
pub(crate) use oauth::{Resource, ResourceServer, WELL_KNOWN};
pub use owner::Owner;
pub(crate) use owner::TcpPeer;
pub use quota::{PrincipalQuota, QuotaPermit};
pub(crate) use rejection::Rejection;
pub(crate) use revocation::{Revocation, RevocationWatch};
pub use scope::{Scope, Scopes};
pub(crate) use site_check::{Origin, SiteCheck, is_probe};
pub(crate) use token_fault::TokenFault;
pub(crate) use token_holders::TokenHolders;
pub use tokens::Token;
pub(crate) use tokens::{Presented, Tokens};

/// The checks that every request passes before it is routed.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) site: SiteCheck,
    pub(crate) tokens: Tokens,
    pub(crate) oauth: Option<Arc<ResourceServer>>,
    /// The URL under which clients reach the gateway.
    pub(crate) public_url: Option<Arc<str>>,
}

/// What the door says of a request's token.
pub(crate) enum AuthResult {
    Authenticated(Caller),
    Rejected(Rejection),
    /// It has none, and is admitted as this caller if it comes from a process of the owner.
    NeedsOwnerProcess(Owner, Caller),
    /// It may be an access token, and has to be verified.
    NeedsVerification(Arc<ResourceServer>),
}

impl Door {
    /// Looks at the token of a request to this path, without waiting.
    pub(crate) fn authenticate(&self, headers: &HeaderMap, path: &str) -> AuthResult {
        let rejection = match self.tokens.authenticate(headers) {
            Ok(Presented::Known(caller)) => return AuthResult::Authenticated(caller),
            Ok(Presented::OfOwner(caller)) => {
                return match self.tokens.owner() {
                    Some(owner) => AuthResult::NeedsOwnerProcess(owner.clone(), caller),
                    None => AuthResult::Rejected(Rejection::NoToken),
                };
            }
            Err(rejection) => rejection,
        };
        let (Some(oauth), Rejection::Token) = (&self.oauth, rejection) else {
            return AuthResult::Rejected(rejection);
        };
        let Some(token) = tokens::bearer(headers) else {
            return AuthResult::Rejected(rejection);
        };
        match oauth.find_verified(token, path) {
            Some(Ok(caller)) => AuthResult::Authenticated(caller),
            Some(Err(fault)) => AuthResult::Rejected(Rejection::AccessToken(fault)),
            None => AuthResult::NeedsVerification(oauth.clone()),
        }
    }
}

/// Verifies the access token of a request.
pub(crate) async fn verify(oauth: &ResourceServer, headers: &HeaderMap, path: &str) -> Result<Caller, Rejection> {
    let token = tokens::bearer(headers).ok_or(Rejection::Token)?;
    oauth.verify(token, path).await.map_err(Rejection::AccessToken)
}
