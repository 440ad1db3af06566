//! [`UnreadRoom`]: the limit on the long messages that a client has not read yet.

use std::{sync::Arc, time::Duration};

use tokio::{sync::Semaphore, time::timeout};

use super::{early_end::EarlyEnd, outgoing::Outgoing};

/// How long a message waits for its client to read the ones before it.
const READ_TIME: Duration = Duration::from_secs(10);

/// The size of one permit in bytes.
const UNIT: usize = 4 << 10;

/// The room for the long messages that one client has not read yet. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct UnreadRoom {
    free: Arc<Semaphore>,
    units: usize,
}

impl UnreadRoom {
    pub(super) fn new(bytes: usize) -> Self {
        let units = bytes.div_ceil(UNIT).min(Semaphore::MAX_PERMITS);
        Self {
            free: Arc::new(Semaphore::new(units)),
            units,
        }
    }

    /// Waits for the room of a response, which it takes until it is dropped. A response that is longer than all of it needs all of it. If the
    /// client does not read in time, returns the error that the response to the request `id` was dropped.
    pub(super) async fn acquire_room(&self, response: Outgoing, id: &str) -> Outgoing {
        if !response.is_long() {
            return response;
        }
        let units = response.len().div_ceil(UNIT).min(self.units);
        let count = u32::try_from(units).unwrap_or(u32::MAX);
        match timeout(READ_TIME, self.free.clone().acquire_many_owned(count)).await {
            Ok(Ok(room)) => response.in_room(room),
            _ => Outgoing::error(Some(id), &EarlyEnd::Unread.error(true)),
        }
    }
}
