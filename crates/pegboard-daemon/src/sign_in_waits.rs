//! [`SignInWaits`]: the servers that wait only for people to sign in on the pages of the gateway.

use pegboard::{
    Pegboard, Principal, ServerName, State,
    status::{BoardStatus, ServerStatus},
};
use pegboard_gateway::SignInLinks;

/// The servers that wait only for people to sign in. Such a server was reached and asked for a token, so the daemon is as ready and healthy as it
/// can be.
#[derive(Debug)]
pub(crate) struct SignInWaits {
    links: Option<SignInLinks>,
    /// The servers whose instances for clients without a principal wait.
    shared: Vec<ServerName>,
}

impl SignInWaits {
    /// Those of a board behind a gateway with these links, now.
    pub(crate) fn new(board: &Pegboard, links: Option<&SignInLinks>) -> Self {
        let links = links.cloned();
        let mut shared = match &links {
            Some(_) => board.awaiting_sign_in(),
            None => Vec::new(),
        };
        shared.retain(|server| has_page(links.as_ref(), server));
        Self { links, shared }
    }

    /// Whether an instance of a server waits for a sign-in. One that is tried once more still does.
    pub(crate) fn has(&self, row: &ServerStatus) -> bool {
        match (row.state, &row.principal) {
            (State::NeedsAuth | State::Connecting, None) => self.shared.contains(&row.name),
            (State::NeedsAuth, Some(_)) => has_page(self.links.as_ref(), &row.name),
            _ => false,
        }
    }

    /// Whether every required server is ready, or waits for a sign-in.
    pub(crate) fn is_ready(&self, board: &Pegboard, status: &BoardStatus) -> bool {
        status.ready || (!self.shared.is_empty() && board.is_ready_without(&self.shared))
    }

    /// Whether every enabled server is healthy, or waits for a sign-in.
    pub(crate) fn is_healthy(&self, status: &BoardStatus) -> bool {
        let is_well = |row: &ServerStatus| {
            let refuses_principal = row.principal.is_some() && row.state == State::NeedsAuth;
            matches!(row.state, State::Ready | State::Idle | State::Disabled) || refuses_principal || self.has(row)
        };
        let mut counted = status.servers.iter().filter(|row| !row.draining);
        status.healthy || (!status.refuses_calls() && counted.all(is_well))
    }

    /// How the person signs in whom an instance of a server waits for.
    pub(crate) fn hint(&self, row: &ServerStatus) -> Option<String> {
        self.has(row).then(|| match &row.principal {
            Some(principal) => principal_hint(&row.name, principal),
            None => format!("sign in with `pegboard login {}`", row.name),
        })
    }
}

/// What a program is told that calls a server which waits for a sign-in; `None` if there is no page for it.
pub(crate) fn route_hint(links: Option<&SignInLinks>, server: &ServerName) -> Option<String> {
    has_page(links, server).then(|| {
        format!(
            "`POST /api/v1/mcp/servers/{server}/signin` returns the link with which the user signs in, in a browser"
        )
    })
}

fn principal_hint(server: &ServerName, principal: &Principal) -> String {
    format!(
        "`{principal}` must sign in: with the link of `POST /api/v1/mcp/servers/{server}/signin`, or `pegboard login {server} --principal \
         {principal}`"
    )
}

fn has_page(links: Option<&SignInLinks>, server: &ServerName) -> bool {
    links.is_some_and(|links| links.page(Some(server)).is_ok())
}
