//! [`SignInSite`]: what the pages share.

use std::sync::Arc;

use pegboard::{Pegboard, Principal, ServerName, State};
use pegboard_gateway::{SignInLinks, SignInVisit};

use super::{pages::SignInState, pending::PendingSignIns};
use crate::api::ApiState;

/// What the pages share.
#[derive(Debug)]
pub(super) struct SignInSite {
    api: Arc<ApiState>,
    pub(super) links: SignInLinks,
    pub(super) pending: PendingSignIns,
}

impl SignInSite {
    pub(super) fn new(api: Arc<ApiState>, links: SignInLinks) -> Self {
        Self {
            api,
            links,
            pending: PendingSignIns::default(),
        }
    }

    pub(super) fn board(&self) -> &Pegboard {
        self.api.board()
    }

    /// Whether a visit may sign in to a server: it is for this server, its caller sees it, and people can sign in there.
    pub(super) fn may_sign_in(&self, visit: &SignInVisit, server: &ServerName) -> bool {
        let name = server.as_str();
        visit.is_for(server)
            && self.board().has_server(name)
            && self.api.sees(visit.caller(), name)
            && self.board().takes_sign_in(name)
    }

    /// Whether a sign-in of a principal may be stuck at an authorization server that has forgotten the client, and a new client would help. The
    /// config names no other one.
    pub(super) fn may_register_anew(&self, server: &ServerName, principal: Option<&Principal>) -> bool {
        self.pending.has(principal, server) && self.board().registers_client(server.as_str())
    }

    /// Whether a principal has signed in to a server.
    pub(super) async fn state(&self, server: &ServerName, principal: Option<&Principal>) -> SignInState {
        match self.board().is_signed_in(server.as_str(), principal).await {
            Err(_) => SignInState::Unknown,
            Ok(true) => SignInState::SignedIn,
            Ok(false) => {
                let rows = self.board().status().servers;
                let is_needed = rows.iter().any(|row| {
                    row.name == *server && row.principal.as_ref() == principal && row.state == State::NeedsAuth
                });
                match is_needed {
                    true => SignInState::Needed,
                    false => SignInState::NotSignedIn,
                }
            }
        }
    }
}
