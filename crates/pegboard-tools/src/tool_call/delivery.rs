//! [`Delivery`]: whether one call may have run, for a program that cancels calls.

use std::fmt;

/// Learns whether a call may have run. See [`ToolCall::delivery`](super::ToolCall::delivery).
///
/// Both functions run within the call: they must be fast, and must neither block nor panic.
pub trait Delivery: fmt::Debug + Send + Sync {
    /// The call is sent to its server now. From here on it may run.
    fn sending(&self);

    /// The call has provably not run so far, and may be sent again.
    fn not_run(&self);
}
