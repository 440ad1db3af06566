//! [`CallsInFlight`]: the calls on one connection, and which of them a request of the server belongs to.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
    time::Duration,
};

use super::{
    clock::Clock,
    connection_users::ConnectionUsers,
    host::{CallOwner, OnBehalf},
};
use crate::sync::{Mutex, MutexGuard};

/// How long a server may still ask for the sake of a call that was cancelled or whose task was left: the cancellation may cross its request, or
/// be ignored.
const CROSSING: Duration = Duration::from_secs(600);
/// The most owners of cancelled calls that are kept. If there are more, requests that name no call are rejected.
const MAX_CANCELLED: usize = 256;

const AMBIGUOUS: &str = "calls of different users are in flight, and the request does not say which of them it belongs to, so no user was \
                         asked; send it on the response stream of the call, or support protocol version 2026-07-28";
const NO_CALL: &str = "no call that this request could belong to is in flight, so no user was asked";

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
    /// Owners of calls that were cancelled, with the time until which the server may ask for them. One for each audience.
    cancelled: Vec<(Arc<CallOwner>, u64)>,
    /// Until when more owners of cancelled calls may be asked for than are kept.
    overflows_until: u64,
    /// Whether a view with a principal or a host of its own has used the connection.
    is_private: bool,
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
        let mut table = self.lock();
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
            None => self.lock().attribute(self.clock.now()),
        }
    }

    /// Returns where a request goes that came on the response stream of a request that has ended.
    pub(super) fn attribute_late(&self) -> Attribution {
        if self.lock().is_private {
            return Attribution::Rejected(NO_CALL);
        }
        self.attribute(None)
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.lock().calls.len()
    }

    /// Every statement leaves the table valid, so a poisoned lock can be used.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn attribute(&mut self, now: u64) -> Attribution {
        self.cancelled.retain(|(_, until)| *until > now);
        let mut calls = self.calls.values();
        let Some(first) = calls.next() else {
            return match self.is_private {
                true => Attribution::Rejected(NO_CALL),
                false => Attribution::Connection,
            };
        };
        let cancelled = self.cancelled.iter().map(|(owner, _)| owner);
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

    /// Keeps the owner of a cancelled call until `until`.
    fn keep_cancelled(&mut self, owner: &Arc<CallOwner>, now: u64, until: u64) {
        self.cancelled.retain(|(_, until)| *until > now);
        let same = self
            .cancelled
            .iter_mut()
            .find(|(other, _)| other.has_audience_of(owner));
        if let Some((_, kept)) = same {
            *kept = until;
        } else if self.cancelled.len() < MAX_CANCELLED {
            self.cancelled.push((owner.clone(), until));
        } else {
            self.overflows_until = until;
        }
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
        let mut table = self.calls.lock();
        table.calls.remove(&self.number);
        if !self.is_complete {
            let until = now.saturating_add(CROSSING.as_millis() as u64);
            table.keep_cancelled(&self.owner, now, until);
        }
        drop(table);
        self.owner.end();
    }
}

#[cfg(test)]
mod tests;
