//! [`Limits`]: what one endpoint allows its clients.

use std::time::Duration;

/// The limits of one endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Requests in flight per legacy session or connection: far more than clients send at once, and a bound on memory.
    pub(crate) in_flight: usize,
    /// The bytes of long responses that a connection's client has not read yet. A response beyond that waits for a while and is then dropped.
    pub(crate) unread: usize,
    /// How long a client may take to answer a question.
    pub(crate) question_time: Duration,
    /// Modern calls that wait for the client's answers.
    pub(crate) parked_calls: usize,
    /// Such calls per principal. One more ends the one that has waited longest.
    pub(crate) parked_calls_per_principal: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            in_flight: 1024,
            unread: 64 << 20,
            question_time: Duration::from_secs(300),
            parked_calls: 1024,
            parked_calls_per_principal: 64,
        }
    }
}
