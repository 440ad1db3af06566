//! [`ServerName`]: what errors say of the servers of a store.

use std::{sync::Arc, time::Duration};

/// The address of a store without its passwords, and the limit on an operation.
#[derive(Debug, Clone)]
pub(super) struct ServerName {
    address: Arc<str>,
    limit: Duration,
}

impl ServerName {
    pub(super) fn new(address: &str, limit: Duration) -> Self {
        Self {
            address: address.into(),
            limit,
        }
    }

    pub(super) fn shown(&self) -> Arc<str> {
        self.address.clone()
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }
}
