//! For whom a request is sent: borrowed for one request, and owned while a server may ask for input.

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::offers::{HostHandle, Offers};
use crate::caller::{Caller, Principal};

/// For whom a request is sent, and which host answers what the server asks meanwhile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OnBehalf<'a> {
    pub(crate) caller: Caller<'a>,
    /// The host of the caller's view. Without one, the host of the connection answers.
    pub(crate) host: Option<&'a HostHandle>,
}

impl OnBehalf<'_> {
    /// What the host of the view offers, if it has one.
    pub(in crate::session) fn offers(self) -> Option<Offers> {
        self.host.map(|host| host.offers)
    }
}

/// The owner of a call in flight.
#[derive(Debug)]
pub(in crate::session) struct CallOwner {
    call: String,
    view: String,
    principal: Option<Principal>,
    meta: Map<String, Value>,
    host: Option<HostHandle>,
    /// Cancelled when the call ends. The owner of one of several calls has the tokens of all of them.
    ended: Vec<CancellationToken>,
}

impl CallOwner {
    pub(in crate::session) fn new(on_behalf: OnBehalf<'_>) -> Self {
        let OnBehalf { caller, host } = on_behalf;
        Self {
            call: caller.call.to_owned(),
            view: caller.view.to_owned(),
            principal: caller.principal.cloned(),
            meta: caller.meta.clone(),
            host: host.cloned(),
            ended: vec![CancellationToken::new()],
        }
    }

    /// The owner of a request that belongs to one of these calls, which have the same audience.
    pub(in crate::session) fn one_of(owners: &[&Self]) -> Self {
        let first = owners[0];
        let is_one_view = owners.iter().all(|owner| owner.view == first.view);
        Self {
            call: String::new(),
            view: if is_one_view { first.view.clone() } else { String::new() },
            principal: first.principal.clone(),
            meta: Map::new(),
            host: first.host.clone(),
            ended: owners.iter().flat_map(|owner| owner.ended.clone()).collect(),
        }
    }

    pub(in crate::session) fn caller(&self) -> Caller<'_> {
        let caller = Caller::new(&self.call, &self.view, &self.meta);
        match &self.principal {
            Some(principal) => caller.principal(principal),
            None => caller,
        }
    }

    pub(super) fn host(&self) -> Option<&HostHandle> {
        self.host.as_ref()
    }

    pub(in crate::session) fn view(&self) -> &str {
        &self.view
    }

    /// Returns `true` if the view has a principal or a host of its own.
    pub(in crate::session) fn is_private(&self) -> bool {
        self.principal.is_some() || self.host.is_some()
    }

    /// Returns `true` if a question of the server to one reaches the same person as a question to the other.
    pub(in crate::session) fn has_audience_of(&self, other: &Self) -> bool {
        let same_host = match (&self.host, &other.host) {
            (Some(ours), Some(theirs)) => ours.is(theirs),
            (None, None) => true,
            _ => false,
        };
        same_host && self.principal == other.principal
    }

    /// Withdraws the server's questions for the call.
    pub(in crate::session) fn end(&self) {
        self.ended.iter().for_each(CancellationToken::cancel);
    }

    /// Waits until the call, or each of the calls, has ended.
    pub(in crate::session) async fn ended(&self) {
        for call in &self.ended {
            call.cancelled().await;
        }
    }
}
