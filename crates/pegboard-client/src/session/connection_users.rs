//! [`ConnectionUsers`]: whether one principal alone has used a connection.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

use pegboard_base::caller::Principal;

/// Notes the principals of the requests on one connection. What a server says without naming a request can be about any of them.
#[derive(Debug, Default)]
pub(super) struct ConnectionUsers {
    /// The principal of the first request, or `None` if that had none.
    first: OnceLock<Option<Principal>>,
    are_several: AtomicBool,
}

impl ConnectionUsers {
    /// Notes a request of this principal, before it is sent.
    pub(super) fn note(&self, principal: Option<&Principal>) {
        if self.are_several.load(Ordering::Relaxed) {
            return;
        }
        let first = self.first.get_or_init(|| principal.cloned());
        if first.as_ref() != principal {
            self.are_several.store(true, Ordering::Release);
        }
    }

    /// Returns the principal that alone has used the connection.
    pub(super) fn sole(&self) -> Option<&Principal> {
        if self.are_several.load(Ordering::Acquire) {
            return None;
        }
        self.first.get()?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_has_one_user_until_another_comes() {
        let (ada, bob) = (Principal::new("ada"), Principal::new("bob"));
        let users = ConnectionUsers::default();
        assert_eq!(users.sole(), None);
        users.note(Some(&ada));
        users.note(Some(&ada));
        assert_eq!(users.sole(), Some(&ada));
        users.note(Some(&bob));
        users.note(Some(&ada));
        assert_eq!(users.sole(), None);
        let users = ConnectionUsers::default();
        users.note(None);
        assert_eq!(users.sole(), None);
        users.note(Some(&ada));
        assert_eq!(users.sole(), None);
    }
}
