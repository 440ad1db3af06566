//! [`SessionStore`]: where the sessions of legacy clients are kept between their requests.

use std::{fmt, sync::Arc};

use tokio::sync::mpsc;

use super::{secret_id::SecretId, session::InUse};
use crate::{
    door::Caller,
    protocol::{Endpoint, Outgoing, Peer},
};

/// Keeps sessions between requests. A store that several processes share is another implementation of this trait, and no change of the
/// wires. Besides sessions, only calls that wait for an answer of their client, and open connections, outlive a request.
///
/// No method waits: `enter` is on the path of every legacy request.
pub(super) trait SessionStore: fmt::Debug + Send + Sync {
    /// Stores a session of a client that has shaken hands at an endpoint, and returns its id.
    fn open(
        &self,
        endpoint: &Arc<Endpoint>,
        caller: &Caller,
        opened: (Arc<Peer>, mpsc::Receiver<Outgoing>),
    ) -> Result<SecretId, NotOpened>;

    /// Finds the session that this caller opened at this endpoint. To any other caller it does not exist.
    fn enter(&self, id: SecretId, caller: &Caller, endpoint: &Arc<Endpoint>) -> Option<InUse>;

    /// Stores a session that the caller has shown to have opened, under the id that it has. Returns the one that another request has stored
    /// meanwhile, if one has.
    fn reopen(
        &self,
        id: SecretId,
        endpoint: &Arc<Endpoint>,
        caller: &Caller,
        opened: (Arc<Peer>, mpsc::Receiver<Outgoing>),
    ) -> Result<InUse, NotOpened>;

    /// Whether the client has ended the session with this id, as far as that is known.
    fn is_over(&self, id: SecretId) -> bool;

    /// Notes that the client has ended the session with this id, at another replica.
    fn note_over(&self, id: SecretId);

    /// Ends a session here that another replica has taken over.
    fn hand_over(&self, id: SecretId);

    /// Ends a session of this caller at this endpoint. Returns `false` if there is none.
    fn end(&self, id: SecretId, caller: &Caller, endpoint: &Arc<Endpoint>) -> bool;

    /// Ends the streams on which clients only listen, because the server stops.
    fn end_listening(&self);

    /// Ends the sessions whose tokens were revoked. One whose token has expired ends when its requests in flight are answered.
    fn end_revoked(&self);

    /// Ends all sessions of this process.
    fn end_all(&self);

    /// The number of sessions of this process.
    fn len(&self) -> usize;
}

/// Why a session is not opened.
#[derive(Clone, Copy, Debug)]
pub(super) enum NotOpened {
    /// Too many sessions are in use, and the caller has its share of them.
    Full,
    /// The system has no random numbers for an id.
    NoId,
    /// There is a session with this id, of a caller with other rights.
    OfOther,
}
