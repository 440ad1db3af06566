//! [`PathTarget`]: what a path names. [`Endpoints`] finds the endpoint for it.

use std::{fmt, sync::Arc};

use pegboard::Principal;

use crate::{door::Caller, protocol::Endpoint};

/// What the path of a request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum PathTarget<'a> {
    /// All servers.
    Board,
    /// One server, with its own names.
    Server(&'a str),
    /// One server, with its own names, for a client of this user that has asked for approval itself where that is needed.
    Approved(&'a str),
    /// A view of the config.
    View(&'a str),
}

/// Finds the endpoint of a path. An endpoint that has not changed must be the same `Arc` each time, because a session ends when its
/// endpoint is another one.
pub(crate) trait Endpoints: Send + Sync + 'static {
    /// Returns the endpoint of a target that the caller may use. The wire has already applied the view of the caller's token: such a
    /// caller never gets here with another target than its view.
    fn endpoint(&self, target: PathTarget<'_>, caller: &Caller) -> Result<Arc<Endpoint>, NoEndpoint>;

    /// Cancels the calls of a principal that wait for answers of its clients, at all endpoints.
    fn end_calls_of(&self, principal: Option<&Principal>);

    /// Ends the subscriptions of modern clients at all endpoints, because the server stops.
    fn stop(&self);

    /// Cancels the requests in flight at all endpoints, each with an error for its client.
    fn halt(&self);

    /// Returns `true` if others need the room that the results of clients that do not read may take.
    fn is_short_of_buffers(&self) -> bool {
        false
    }
}

/// Why there is no endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NoEndpoint {
    /// The names that the caller could use instead.
    pub(crate) known: Vec<String>,
}

/// A single endpoint, at the path of the board.
impl Endpoints for Arc<Endpoint> {
    fn endpoint(&self, target: PathTarget<'_>, _: &Caller) -> Result<Arc<Endpoint>, NoEndpoint> {
        match target {
            PathTarget::Board => Ok(self.clone()),
            PathTarget::Server(_) | PathTarget::Approved(_) | PathTarget::View(_) => Err(NoEndpoint::default()),
        }
    }

    fn end_calls_of(&self, principal: Option<&Principal>) {
        Endpoint::end_calls_of(self, principal);
    }

    fn stop(&self) {
        Endpoint::stop(self);
    }

    fn halt(&self) {
        Endpoint::halt(self);
    }
}

impl fmt::Display for PathTarget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Board => f.write_str("the board"),
            Self::Server(name) | Self::Approved(name) => write!(f, "server `{}`", name.escape_debug()),
            Self::View(name) => write!(f, "view `{}`", name.escape_debug()),
        }
    }
}
