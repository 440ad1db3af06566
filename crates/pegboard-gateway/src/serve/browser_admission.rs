//! Whom a request for a page of the dashboard comes from: the browser of a person who has signed in, or of the user of this machine.

use http::{Request, header::AUTHORIZATION, request::Parts};

use super::{listeners::Arrival, request_head::is_dashboard_request, site::Site};
use crate::door::{Caller, Rejection, Scope, TcpPeer};

impl Site {
    /// Whether this is a request for a page of the dashboard, and those are served. Programs that ask for `/` are clients like others.
    pub(super) fn is_dashboard(&self, parts: &Parts) -> bool {
        self.browsers.is_served() && is_dashboard_request(parts)
    }

    /// The caller of a request for a page of the dashboard: that of its token, else that of the browser's session. Without rights it is asked to
    /// sign in.
    pub(super) async fn admit_browser(&self, arrival: Arrival, parts: &Parts) -> Caller {
        let by_token = self.authenticate(arrival, parts).await.ok();
        if parts.headers.contains_key(AUTHORIZATION) {
            return by_token.unwrap_or_else(Caller::without_rights);
        }
        let session = self.browsers.find(&parts.headers);
        match (by_token, session) {
            // The session of a token is as good as the token.
            (None, Some(session)) if session.caller().principal.is_some() => session.caller().clone(),
            // Browsers send cookies to all ports of a host, so the session of the user also needs a process of the user.
            (None, Some(session)) if self.is_of_owner(parts).await => session.caller().clone(),
            (Some(_), Some(session)) => session.caller().clone(),
            (Some(caller), None) => caller,
            // A program of the user may follow the links of `pegboard open`, also where tokens are configured.
            (None, _) if parts.uri.path().starts_with("/ui/open/") && self.is_of_owner(parts).await => Caller {
                scopes: [Scope::Read].into_iter().collect(),
                ..Caller::default()
            },
            (None, _) => Caller::without_rights(),
        }
    }

    /// Whether the other end of a connection is a process of the user that this gateway runs for, also where tokens are configured.
    async fn is_of_owner(&self, parts: &Parts) -> bool {
        let door = self.door.load_full();
        match (door.tokens.machine_owner(), parts.extensions.get::<TcpPeer>()) {
            (Some(owner), Some(peer)) => Box::pin(owner.owns(peer)).await,
            _ => false,
        }
    }

    /// Whose a token is that a person has typed into the dashboard. Fails with the reason.
    pub(super) async fn authenticate_typed(&self, token: &str) -> Result<Caller, String> {
        let request = Request::builder().uri("/ui/sign-in");
        let request = request.header(AUTHORIZATION, format!("Bearer {token}")).body(());
        let unreadable = || "a token has letters, digits and a few signs only".to_owned();
        let (parts, ()) = request.map_err(|_| unreadable())?.into_parts();
        if self.authenticator.is_some() {
            return Err("this gateway knows its users by other means than tokens".to_owned());
        }
        let caller = self.authenticate_by_token(&parts).await;
        caller.map_err(|rejection| match rejection {
            Rejection::NotOwner => Rejection::Token.to_string(),
            rejection => rejection.to_string(),
        })
    }
}
