//! [`ViewOwner`]: the view that owns a server, and what it has done with it.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

use super::{view_calls::ViewCalls, view_tag::ViewTag};
use crate::status::CallCounts;
use pegboard_base::caller::Principal;
use pegboard_tools::outcome::Reply;

/// The view that owns a server, or the principal whose views share it. A server of the board has none.
#[derive(Debug, Default)]
pub(crate) struct ViewOwner {
    tag: OnceLock<ViewTag>,
    /// Counts the calls of the owner; the board's counters cover all servers of one name.
    calls: ViewCalls,
    /// Set once the server is told that the session of its view has ended.
    is_session_ended: AtomicBool,
}

impl ViewOwner {
    /// The owner, if there is one.
    pub(crate) fn tag(&self) -> Option<&ViewTag> {
        self.tag.get()
    }

    /// Sets the owner. Returns `false` if there is one already.
    pub(super) fn assign(&self, tag: &ViewTag) -> bool {
        self.tag.set(tag.clone()).is_ok()
    }

    /// Whether the views of one principal share the server.
    pub(super) fn is_principal(&self) -> bool {
        self.tag().is_some_and(|tag| tag.name.is_none())
    }

    /// The principal that owns the server, or whose view does.
    pub(crate) fn principal(&self) -> Option<&Principal> {
        self.tag().and_then(|tag| tag.principal.as_ref())
    }

    /// Counts a completed call, if a view owns the server.
    pub(crate) fn count(&self, reply: &Reply) {
        if self.tag().is_some() {
            self.calls.record(reply);
        }
    }

    /// The calls of the owner; `None` if no view owns the server.
    pub(super) fn calls(&self) -> Option<CallCounts> {
        self.tag().map(|_| self.calls.status())
    }

    /// Notes that the session of the view ends. Returns `true` only the first time.
    pub(super) fn end_session(&self) -> bool {
        !self.is_session_ended.swap(true, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_keeps_its_first_owner_and_ends_its_session_once() {
        let tag =
            |name: Option<&str>, number| ViewTag::new(name.map(Into::into), Some(Principal::new("ada")), None, number);
        let owner = ViewOwner::default();
        assert!(owner.tag().is_none() && owner.calls().is_none() && owner.principal().is_none());
        assert!(owner.assign(&tag(None, 1)));
        assert!(!owner.assign(&tag(Some("chat"), 2)));
        assert!(owner.is_principal(), "only a view has a name");
        assert_eq!(owner.principal(), Some(&Principal::new("ada")));
        assert_eq!(owner.calls().map(|calls| calls.total), Some(0));
        assert!(owner.end_session());
        assert!(!owner.end_session());
    }
}
