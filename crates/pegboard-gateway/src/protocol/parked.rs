//! Modern calls that wait for their client: the work goes on in a task, and the client's next request attaches to it.

use std::{
    collections::HashMap,
    panic::AssertUnwindSafe,
    sync::{Arc, Weak},
};

use futures_util::{FutureExt, future::BoxFuture};
use pegboard::Principal;
use pegboard_base::sync::Mutex;
use pegboard_protocol::{RpcError, code};
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};
use tokio::{sync::Notify, task::AbortHandle, time::Instant};

use super::{
    client::Client,
    early_end::EarlyEnd,
    exchange::ExchangeState,
    limits::Limits,
    params::Params,
    request_stream::Wants,
    rpc_errors,
    sealer::{Purpose, ReplicaId},
    service::Answer,
};

/// All waiting calls of an endpoint. Dropping it aborts their work.
#[derive(Debug)]
pub(super) struct ParkedCalls {
    calls: Mutex<HashMap<u128, Arc<ParkedCall>>>,
    /// Tells the states of this process from those of other replicas, which share the key, and of this one before a restart.
    replica: ReplicaId,
    limits: Limits,
}

/// What a request must have in common with the one that it continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParkedOrigin {
    /// The connection; `None` if requests need none.
    pub(super) peer: Option<u64>,
    pub(super) method: Box<str>,
    /// A digest of the params, without those fields that differ.
    digest: [u8; 32],
}

/// One waiting call.
#[derive(Debug)]
pub(super) struct ParkedCall {
    id: u128,
    replica: ReplicaId,
    pub(super) shared: Arc<ExchangeState>,
    origin: ParkedOrigin,
    state: Mutex<ParkedState>,
    /// Notified when the state changes.
    changed: Notify,
    limits: Limits,
}

#[derive(Debug)]
struct ParkedState {
    /// How often the client was asked. A request state is good for one answer.
    round: u32,
    /// When the call ends for lack of an answer; `None` while a request is attached.
    until: Option<Instant>,
    /// Whether that time has come, or the call was removed.
    is_expired: bool,
    outcome: Option<Answer>,
    task: Option<AbortHandle>,
}

impl ParkedOrigin {
    pub(super) fn new(peer: Option<u64>, method: &str, params: &Params) -> Self {
        Self {
            peer,
            method: method.into(),
            digest: digest_of(params),
        }
    }
}

/// `_meta` differs from request to request, and the other two are what continues a call.
fn digest_of(params: &Params) -> [u8; 32] {
    let text = match params.parse::<Map<String, Value>>() {
        Ok(mut fields) => {
            for key in ["_meta", "requestState", "inputResponses"] {
                fields.remove(key);
            }
            serde_json::to_vec(&fields).unwrap_or_default()
        }
        Err(_) => params.json().to_vec(),
    };
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, &text).as_ref());
    bytes
}

impl ParkedCalls {
    pub(super) fn new(limits: Limits, replica: ReplicaId) -> Self {
        Self {
            calls: Mutex::default(),
            replica,
            limits,
        }
    }

    /// Moves work into a task of its own, where it goes on until it is done, its client does not answer in time, or it is removed.
    pub(super) fn park(
        self: &Arc<Self>,
        shared: Arc<ExchangeState>,
        origin: ParkedOrigin,
        work: BoxFuture<'static, Answer>,
    ) -> Result<Arc<ParkedCall>, RpcError> {
        let mut id = [0; 16];
        getrandom::fill(&mut id)
            .map_err(|_| RpcError::new(code::INTERNAL_ERROR, "no random numbers for a request state"))?;
        let call = Arc::new(ParkedCall {
            id: u128::from_be_bytes(id),
            replica: self.replica,
            shared,
            origin,
            state: Mutex::new(ParkedState {
                round: 0,
                until: None,
                is_expired: false,
                outcome: None,
                task: None,
            }),
            changed: Notify::new(),
            limits: self.limits.clone(),
        });
        let mut calls = self.calls.lock();
        let evicted = self.make_room(&mut calls, &call)?;
        // Under the lock, so that a call that is removed has a task to abort.
        let task = tokio::spawn(drive(work, call.clone(), Arc::downgrade(self)));
        call.state.lock().task = Some(task.abort_handle());
        calls.insert(call.id, call.clone());
        drop(calls);
        if let Some(evicted) = evicted {
            evicted.abort(EarlyEnd::SessionEnded);
        }
        Ok(call)
    }

    /// Makes room for a call. Beyond the limits, the call of its principal that has waited longest for an answer is removed and returned.
    fn make_room(
        &self,
        calls: &mut HashMap<u128, Arc<ParkedCall>>,
        call: &ParkedCall,
    ) -> Result<Option<Arc<ParkedCall>>, RpcError> {
        let principal = call.principal();
        let full = || full_error(call.shared.may_have_executed());
        let own = || calls.values().filter(|call| call.principal() == principal);
        if calls.len() < self.limits.parked_calls && own().count() < self.limits.parked_calls_per_principal {
            return Ok(None);
        }
        let waiting = own().filter_map(|call| Some((call.state.lock().until?, call.id)));
        let oldest = waiting.min().and_then(|(_, id)| calls.remove(&id));
        match oldest {
            Some(oldest) if oldest.expire() => Ok(Some(oldest)),
            // A request was attached to it in the last moment.
            Some(attached) => {
                calls.insert(attached.id, attached);
                Err(full())
            }
            None => Err(full()),
        }
    }

    /// Attaches a request to the call that its state names, which must be one of the same rights, connection, method and params.
    pub(super) fn attach(
        &self,
        state: &[u8],
        client: &Client,
        origin: &ParkedOrigin,
        wants: Wants,
    ) -> Result<Arc<ParkedCall>, RpcError> {
        let (replica, id, round) = parse_state(state).ok_or_else(unknown_state_error)?;
        if replica != self.replica {
            return Err(other_replica_error());
        }
        let call = self.calls.lock().get(&id).cloned().ok_or_else(unknown_state_error)?;
        if call.shared.client.caller() != client.caller() || call.origin.peer != origin.peer {
            return Err(unknown_state_error());
        }
        if call.origin != *origin {
            let message =
                "`requestState` belongs to a request with another method or other params; send the same as before";
            return Err(RpcError::invalid_params(message));
        }
        let mut state = call.state.lock();
        if state.is_expired {
            return Err(unknown_state_error());
        }
        if state.round != round || state.until.is_none() {
            let message = "`requestState` was used already; use the one of the latest response";
            return Err(RpcError::invalid_params(message));
        }
        state.until = None;
        drop(state);
        call.shared.stream.reopen(wants);
        call.changed.notify_waiters();
        Ok(call)
    }

    /// Removes a call and aborts its work.
    pub(super) fn remove(&self, call: &ParkedCall) {
        let removed = self.calls.lock().remove(&call.id);
        if let Some(call) = removed {
            call.abort(EarlyEnd::SessionEnded);
        }
    }

    /// Removes all calls of a connection.
    pub(super) fn remove_peer(&self, peer: u64) {
        self.remove_all(EarlyEnd::SessionEnded, |call| call.origin.peer == Some(peer));
    }

    /// Removes all calls of a principal whose token was withdrawn.
    pub(super) fn remove_principal(&self, principal: Option<&Principal>) {
        self.remove_all(EarlyEnd::TokenWithdrawn, |call| call.principal() == principal);
    }

    fn remove_all(&self, end: EarlyEnd, is_gone: impl Fn(&ParkedCall) -> bool) {
        let mut calls = self.calls.lock();
        let gone: Vec<_> = calls.extract_if(|_, call| is_gone(call)).collect();
        drop(calls);
        gone.iter().for_each(|(_, call)| call.abort(end));
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.calls.lock().len()
    }
}

impl Drop for ParkedCalls {
    fn drop(&mut self) {
        self.calls
            .lock()
            .values()
            .for_each(|call| call.abort(EarlyEnd::SessionEnded));
    }
}

/// The error of a call that asks its client while too many others wait. A call that may have run must not be made again just like that.
fn full_error(may_have_executed: bool) -> RpcError {
    let (message, data) = if may_have_executed {
        let message =
            "too many calls wait for answers of their clients, so this one was cancelled; it may have taken effect";
        (message, json!({"may_have_executed": true}))
    } else {
        let message = "too many calls wait for answers of their clients; answer some of them or try later";
        (message, json!({"may_have_executed": false, "retry_after": 1}))
    };
    RpcError::new(code::BUSY, message).data(data)
}

/// The error of a request whose call is gone. What the call has done until it asked its client is not known any more.
fn unknown_state_error() -> RpcError {
    let message = "`requestState` is unknown: the answer came too late, or too many later calls wait for answers. The call was \
                   cancelled and may have taken effect, so check that before you make it again";
    RpcError::invalid_params(message).data(json!({"may_have_executed": true}))
}

/// The error of an answer that reaches another replica than the one that asked. A request without `requestState` would make the call again.
fn other_replica_error() -> RpcError {
    let message = "`requestState` is of a call that waits at another replica of this gateway, or that ended when the gateway restarted: send the \
                   answer to the replica that asked; a load balancer must send all requests of a client to the same replica. The call may have \
                   taken effect, so check that before you make it again";
    RpcError::invalid_params(message).data(json!({"may_have_executed": true}))
}

/// The process in which the call of a state waits.
pub(super) fn replica_of(state: &[u8]) -> Option<ReplicaId> {
    parse_state(state).map(|(replica, ..)| replica)
}

fn parse_state(state: &[u8]) -> Option<(ReplicaId, u128, u32)> {
    let (replica, rest) = state.split_first_chunk()?;
    let (id, round) = rest.split_first_chunk()?;
    let round = round.try_into().ok()?;
    Some((
        ReplicaId(u64::from_be_bytes(*replica)),
        u128::from_be_bytes(*id),
        u32::from_be_bytes(round),
    ))
}

impl ParkedCall {
    /// Ends the attachment of a request, which got a result that asks for input. Returns the sealed state for the next request.
    pub(super) fn detach(&self) -> Result<String, RpcError> {
        self.shared.stream.park();
        let mut state = self.state.lock();
        state.round += 1;
        state.until = Some(Instant::now() + self.limits.question_time);
        let mut text = self.replica.0.to_be_bytes().to_vec();
        text.extend_from_slice(&self.id.to_be_bytes());
        text.extend_from_slice(&state.round.to_be_bytes());
        drop(state);
        self.changed.notify_waiters();
        self.shared.sealer.seal(self.principal(), Purpose::ParkedCall, &text)
    }

    /// Ends the attachment of a request that was refused. The state that it used stays good.
    pub(super) fn release(&self) {
        self.shared.stream.park();
        self.state.lock().until = Some(Instant::now() + self.limits.question_time);
        self.changed.notify_waiters();
    }

    /// Takes the outcome, if the work is done.
    pub(super) fn take_outcome(&self) -> Option<Answer> {
        self.state.lock().outcome.take()
    }

    fn principal(&self) -> Option<&Principal> {
        self.shared.client.principal()
    }

    /// Ends the call if no request is attached. Returns `false` otherwise.
    fn expire(&self) -> bool {
        let mut state = self.state.lock();
        state.is_expired |= state.until.is_some();
        state.is_expired
    }

    /// Aborts the work. A request that is attached gets an error, and no other can be attached any more.
    fn abort(&self, end: EarlyEnd) {
        let mut state = self.state.lock();
        state.is_expired = true;
        if state.outcome.is_none() {
            state.outcome = Some(Err(end.error(self.shared.may_have_executed())));
        }
        if let Some(task) = &state.task {
            task.abort();
        }
        drop(state);
        self.shared.stream.wake();
    }

    /// Completes when the client was asked and has not answered in time.
    async fn expired(&self) {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            let until = self.state.lock().until;
            match until {
                None => changed.await,
                Some(until) => tokio::select! {
                    biased;
                    () = changed => {}
                    () = tokio::time::sleep_until(until) => {
                        // Unless a request was attached in the last moment.
                        let mut state = self.state.lock();
                        state.is_expired = state.until == Some(until);
                        if state.is_expired {
                            return;
                        }
                    }
                },
            }
        }
    }
}

/// Runs the work of a parked call, and keeps its outcome until a request takes it.
async fn drive(work: BoxFuture<'static, Answer>, call: Arc<ParkedCall>, calls: Weak<ParkedCalls>) {
    let mut work = std::pin::pin!(AssertUnwindSafe(work).catch_unwind());
    let outcome = tokio::select! {
        biased;
        outcome = call.shared.info.tag.during(work.as_mut()) => Some(outcome.unwrap_or_else(|_| Err(rpc_errors::panic_error(call.shared.may_have_executed())))),
        () = call.expired() => None,
    };
    if let Some(outcome) = outcome {
        call.state.lock().outcome = Some(outcome);
        call.shared.stream.wake();
        // The request that takes the outcome removes the call, which aborts this task.
        call.expired().await;
    }
    if let Some(calls) = calls.upgrade() {
        calls.remove(&call);
    }
}
