//! [`Client`]: who sends requests, and what is known of the client between them.

use std::{
    any::Any,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use pegboard::{Principal, credential::CallerRights};
use pegboard_protocol::Version;

use crate::door::{Caller, Scope};

/// A client: that of a legacy session or connection, or of a single modern request.
#[derive(Debug)]
pub struct Client {
    caller: Caller,
    version: Version,
    capabilities: Bytes,
    info: Bytes,
    /// What the service keeps for the client, dropped with it.
    state: OnceLock<Arc<dyn Any + Send + Sync>>,
}

impl Client {
    /// Creates a client. `capabilities` and `info` are the JSON objects that it declared.
    pub(crate) fn new(caller: Caller, version: Version, capabilities: Bytes, info: Bytes) -> Self {
        Self {
            caller,
            version,
            capabilities,
            info,
            state: OnceLock::new(),
        }
    }

    /// What its token allows.
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether it may call tools.
    pub(crate) fn may_call(&self) -> bool {
        self.caller.scopes.contains(Scope::Call)
    }

    /// Which of the principal's access tokens is exchanged for its calls.
    pub(crate) fn rights(&self) -> Option<CallerRights> {
        self.caller.rights
    }

    /// The user or program that the client acts for, as its token says.
    pub fn principal(&self) -> Option<&Principal> {
        self.caller.principal()
    }

    /// The protocol version that it speaks.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The capabilities that it declares: a JSON object as text.
    pub fn capabilities(&self) -> &Bytes {
        &self.capabilities
    }

    /// Its name and version: a JSON object as text, `{}` if it gives none.
    pub fn info(&self) -> &Bytes {
        &self.info
    }

    /// What the service keeps for this client. `create` is called once. A modern client lives for one request only.
    pub fn state<T: Send + Sync + 'static>(&self, create: impl FnOnce() -> T) -> Arc<T> {
        let state = self.state.get_or_init(|| Arc::new(create()));
        match Arc::downcast(state.clone()) {
            Ok(state) => state,
            // A client belongs to one service, which keeps values of one type.
            Err(_) => unreachable!("a service keeps one type of state"),
        }
    }
}
