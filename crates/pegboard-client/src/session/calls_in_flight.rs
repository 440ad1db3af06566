//! [`CallsInFlight`]: the calls on one connection, and which of them a request of the server belongs to.

use std::{collections::HashMap, sync::Arc, time::Duration};

use super::{
    clock::Clock,
    connection_users::ConnectionUsers,
    host::{CallOwner, OnBehalf},
};
use pegboard_base::sync::Mutex;

/// How long a server may still ask for a cancelled call after it has read the cancellation.
const GRACE: Duration = Duration::from_secs(5);
/// How long it may ask for one whose cancellation it has not read or ignores, and for a task that was left.
const CROSSING: Duration = Duration::from_secs(600);
/// The most cancelled calls that are kept. If calls of more clients are cancelled, requests that name no call are rejected.
const MAX_CANCELLED: usize = 256;

const AMBIGUOUS: &str = "calls of several clients are in flight or were just cancelled, and the request does not say which of them it belongs \
                         to, so no client was asked; send it on the response stream of the call, or support protocol version \
                         2026-07-28; in the config, `serial = true` runs the server's calls one after the other, and \
                         `scope = \"session\"` gives each client a connection of its own";
const NO_CALL: &str = "no call that this request could belong to is in flight, so no client was asked";

/// Where a question of the server goes.
#[derive(Debug, Clone)]
pub(super) enum Attribution {
    /// To the host of the connection. No call is known.
    Connection,
    /// To the host of the call's view.
    Call(Arc<CallOwner>),
    /// Nowhere, for this reason.
    Rejected(&'static str),
}

impl Attribution {
    /// Waits until the call has ended. Never completes without a call.
    pub(super) async fn ended(&self) {
        match self {
            Self::Call(owner) => owner.ended().await,
            Self::Connection | Self::Rejected(_) => std::future::pending().await,
        }
    }
}

/// The calls in flight on one connection whose server may ask for input.
#[derive(Debug)]
pub(super) struct CallsInFlight {
    clock: Clock,
    table: Mutex<Table>,
    users: ConnectionUsers,
}

#[derive(Debug, Default)]
struct Table {
    /// By number.
    calls: HashMap<u64, Arc<CallOwner>>,
    last_number: u64,
    /// Cancelled calls that the server may still ask for.
    cancelled: Vec<Cancelled>,
    /// Until when the server may ask for more cancelled calls than are kept.
    overflows_until: u64,
    /// The highest id of a request that the server has responded to late.
    last_late: u64,
    /// Whether the server has gone on with a call after it had read the cancellation. It may ask until it responds to the call.
    ignores_cancellations: bool,
    /// Whether a view with a principal or a host of its own has used the connection.
    is_private: bool,
}

/// A cancelled call that the server may still ask for.
#[derive(Debug)]
struct Cancelled {
    owner: Arc<CallOwner>,
    /// The id of its request, whose response ends the doubt; 0 if there is none.
    request: u64,
    /// The id of the first request after the cancellation; 0 if the call was not cancelled, but its task was left.
    probe: u64,
    /// Whether the server has read the cancellation.
    is_read: bool,
    until: u64,
}

impl CallsInFlight {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            table: Mutex::default(),
            users: ConnectionUsers::default(),
        }
    }

    /// The principals that have used the connection.
    pub(super) fn users(&self) -> &ConnectionUsers {
        &self.users
    }

    /// Adds a call until the returned value is dropped.
    pub(super) fn register(self: &Arc<Self>, on_behalf: OnBehalf<'_>) -> CallInFlight {
        let owner = Arc::new(CallOwner::new(on_behalf));
        let mut table = self.table.lock();
        table.is_private |= owner.is_private();
        table.last_number += 1;
        let number = table.last_number;
        table.calls.insert(number, owner.clone());
        drop(table);
        CallInFlight {
            calls: self.clone(),
            number,
            owner,
            is_complete: false,
        }
    }

    /// Returns the call that a request of the server belongs to. `stream` is the owner of the request on whose response stream it came:
    /// `None` if it came on no such stream, or on that of a request without an owner.
    pub(super) fn attribute(&self, stream: Option<Arc<CallOwner>>) -> Attribution {
        match stream {
            Some(owner) => Attribution::Call(owner),
            None => self.table.lock().attribute(self.clock.now()),
        }
    }

    /// Returns where a request goes that came on the response stream of a request that has ended.
    pub(super) fn attribute_late(&self) -> Attribution {
        if self.table.lock().is_private {
            return Attribution::Rejected(NO_CALL);
        }
        self.attribute(None)
    }

    /// Notes a response to a request that is not pending any more: the server has ended that call, and has read what was sent before the request.
    pub(super) fn late_response(&self, id: u64, is_result: bool) {
        self.table.lock().late_response(id, is_result, self.clock.now());
    }

    /// Notes progress of a request that is not pending any more.
    pub(super) fn late_progress(&self, id: u64) {
        let mut table = self.table.lock();
        let is_ignored = table.cancelled.iter().any(|call| call.request == id && call.is_read);
        table.ignores_cancellations |= is_ignored;
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.table.lock().calls.len()
    }
}

impl Table {
    fn attribute(&mut self, now: u64) -> Attribution {
        self.cancelled.retain(|call| call.until > now);
        let mut calls = self.calls.values();
        let Some(first) = calls.next() else {
            return match self.is_private {
                true => Attribution::Rejected(NO_CALL),
                false => Attribution::Connection,
            };
        };
        let cancelled = self.cancelled.iter().map(|call| &call.owner);
        let mut possible = self.calls.values().chain(cancelled);
        let is_overflowing = self.overflows_until > now && self.is_private;
        if is_overflowing || possible.any(|owner| !owner.has_audience_of(first)) {
            return Attribution::Rejected(AMBIGUOUS);
        }
        if self.calls.len() == 1 {
            return Attribution::Call(first.clone());
        }
        if !first.is_private() && calls.any(|owner| owner.view() != first.view()) {
            return Attribution::Connection;
        }
        let owners: Vec<&CallOwner> = self.calls.values().map(|owner| &**owner).collect();
        Attribution::Call(Arc::new(CallOwner::one_of(&owners)))
    }

    /// Keeps a cancelled call for as long as the server may ask for it.
    fn keep_cancelled(&mut self, owner: &Arc<CallOwner>, now: u64) {
        self.cancelled.retain(|call| call.until > now);
        let (request, probe) = (owner.request(), owner.probe());
        let is_read = probe != 0 && probe <= self.last_late;
        let until = self.doubt_until(is_read, now);
        if self.cancelled.len() < MAX_CANCELLED {
            return self.cancelled.push(Cancelled {
                owner: owner.clone(),
                request,
                probe,
                is_read,
                until,
            });
        }
        let same = self.cancelled.iter_mut().find(|call| call.owner.has_audience_of(owner));
        match same {
            // Stands for both calls from now on, so no response to one of them ends it.
            Some(call) => {
                call.request = 0;
                call.probe = if call.probe == 0 { 0 } else { probe };
                call.is_read = is_read;
                call.until = call.until.max(until);
            }
            None => self.overflows_until = self.overflows_until.max(until),
        }
    }

    fn late_response(&mut self, id: u64, is_result: bool, now: u64) {
        self.last_late = self.last_late.max(id);
        // A result that crossed the cancellation says nothing about what the server does with cancellations.
        let is_ignored = |call: &Cancelled| call.request == id && call.is_read && is_result;
        self.ignores_cancellations |= self.cancelled.iter().any(is_ignored);
        self.cancelled.retain(|call| call.request != id);
        let until = self.doubt_until(true, now);
        for call in &mut self.cancelled {
            if !call.is_read && (1..=id).contains(&call.probe) {
                call.is_read = true;
                call.until = call.until.min(until);
            }
        }
    }

    /// Until when the server may ask for a call that was cancelled or left.
    fn doubt_until(&self, is_read: bool, now: u64) -> u64 {
        let doubt = match is_read && !self.ignores_cancellations {
            true => GRACE,
            false => CROSSING,
        };
        now.saturating_add(u64::try_from(doubt.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A call in flight. Dropping it withdraws the server's questions for the call.
#[derive(Debug)]
pub(crate) struct CallInFlight {
    calls: Arc<CallsInFlight>,
    number: u64,
    owner: Arc<CallOwner>,
    /// Whether the server has responded, so that it asks no more.
    is_complete: bool,
}

impl CallInFlight {
    pub(super) fn owner(&self) -> &Arc<CallOwner> {
        &self.owner
    }

    /// Returns `true` if the call is registered in this table.
    pub(super) fn is_on(&self, calls: &Arc<CallsInFlight>) -> bool {
        Arc::ptr_eq(&self.calls, calls)
    }

    /// Notes that the server has responded to the call.
    pub(super) fn complete(&mut self) {
        self.is_complete = true;
    }
}

impl Drop for CallInFlight {
    fn drop(&mut self) {
        let now = self.calls.clock.now();
        let mut table = self.calls.table.lock();
        table.calls.remove(&self.number);
        if !self.is_complete && !self.owner.is_unsent() {
            table.keep_cancelled(&self.owner, now);
        }
        drop(table);
        self.owner.end();
    }
}

#[cfg(test)]
mod tests;
