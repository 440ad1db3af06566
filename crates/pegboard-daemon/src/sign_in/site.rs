//! [`SignInSite`]: what the pages share.

use std::{collections::HashSet, sync::Arc};

use pegboard::{Pegboard, Principal, ServerName, State};
use pegboard_gateway::{SignInLinks, SignInVisit};
use tokio::sync::Semaphore;

use super::{pages::SignInState, pending::PendingSignIns};
use crate::api::ApiState;

/// The most lists of servers that are made at once. Further ones wait: a board may have thousands of servers.
const LISTS: usize = 2;

/// What the pages share.
#[derive(Debug)]
pub(super) struct SignInSite {
    api: Arc<ApiState>,
    pub(super) links: SignInLinks,
    pub(super) pending: PendingSignIns,
    /// Permits for lists of servers.
    pub(super) lists: Semaphore,
}

impl SignInSite {
    pub(super) fn new(api: Arc<ApiState>, links: SignInLinks) -> Self {
        Self {
            api,
            links,
            pending: PendingSignIns::default(),
            lists: Semaphore::new(LISTS),
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

    /// The servers that refuse a principal without a sign-in. It looks at all servers, so it is asked once for a page.
    pub(super) fn find_refusing(&self, principal: Option<&Principal>) -> HashSet<ServerName> {
        let rows = self.board().status().servers.into_iter();
        let refusing = rows.filter(|row| row.principal.as_ref() == principal && row.state == State::NeedsAuth);
        refusing.map(|row| row.name).collect()
    }

    /// Whether a principal has signed in to a server.
    pub(super) async fn state(
        &self,
        server: &ServerName,
        principal: Option<&Principal>,
        refusing: &HashSet<ServerName>,
    ) -> SignInState {
        match self.board().is_signed_in(server.as_str(), principal).await {
            Err(_) => SignInState::Unknown,
            Ok(true) => SignInState::SignedIn,
            Ok(false) if refusing.contains(server) => SignInState::Needed,
            Ok(false) => SignInState::NotSignedIn,
        }
    }
}
