//! For whom a request is sent: borrowed for one request, and owned while a server may ask for input.

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::offers::{HostHandle, Offers};
use pegboard_base::{
    caller::{Caller, Principal},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

/// For whom a request is sent, and which host answers what the server asks meanwhile.
#[derive(Debug, Clone, Copy)]
pub struct OnBehalf<'a> {
    /// The call, its view and its principal.
    pub caller: Caller<'a>,
    /// The host of the caller's view. Without one, the host of the connection answers.
    pub host: Option<&'a HostHandle>,
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
    /// The ids of the calls that it may be, if it is the owner of one of several.
    candidates: Vec<String>,
    /// Cancelled when the call ends. The owner of one of several calls has the tokens of all of them.
    ended: Vec<CancellationToken>,
    /// The id of the call's request; 0 if none is in flight, as for a task between polls.
    request: AtomicU64,
    /// The id of the first request after the cancellation of the call; 0 if it was not cancelled.
    probe: AtomicU64,
    /// Whether the call was cancelled before its request was sent.
    is_unsent: AtomicBool,
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
            candidates: Vec::new(),
            ended: vec![CancellationToken::new()],
            request: AtomicU64::new(0),
            probe: AtomicU64::new(0),
            is_unsent: AtomicBool::new(false),
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
            candidates: owners.iter().map(|owner| owner.call.clone()).collect(),
            ended: owners.iter().flat_map(|owner| owner.ended.clone()).collect(),
            request: AtomicU64::new(0),
            probe: AtomicU64::new(0),
            is_unsent: AtomicBool::new(false),
        }
    }

    pub(in crate::session) fn caller(&self) -> Caller<'_> {
        let caller = Caller::new(&self.call, &self.view, &self.meta);
        match &self.principal {
            Some(principal) => caller.principal(principal),
            None => caller,
        }
    }

    pub(super) fn candidates(&self) -> &[String] {
        &self.candidates
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

    /// Sets the id of the call's request, or 0 if its response has come and the call goes on as a task.
    pub(in crate::session) fn set_request(&self, id: u64) {
        self.request.store(id, Ordering::Relaxed);
    }

    pub(in crate::session) fn request(&self) -> u64 {
        self.request.load(Ordering::Relaxed)
    }

    /// Notes that the call was cancelled before the request with this id. A response to that shows that the server has read the cancellation.
    pub(in crate::session) fn cancelled_before(&self, id: u64) {
        self.probe.store(id, Ordering::Relaxed);
    }

    /// Notes that the server will never see the call, so that it cannot ask for it.
    pub(in crate::session) fn set_unsent(&self) {
        self.is_unsent.store(true, Ordering::Relaxed);
    }

    pub(in crate::session) fn is_unsent(&self) -> bool {
        self.is_unsent.load(Ordering::Relaxed)
    }

    pub(in crate::session) fn probe(&self) -> u64 {
        self.probe.load(Ordering::Relaxed)
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
