//! [`ToolExecutor`]: the trait through which an agent loop lists and calls tools. Toolsets and stubs implement it.

use std::{future::Future, pin::Pin, time::Duration};

use super::{listing::Listing, toolset_handle::Toolset};
use crate::{call::ToolCall, outcome::Reply};

/// How long a listing waits for servers that are starting.
const LIST: Duration = Duration::from_secs(60);

pub(super) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Lists tools and executes calls. An agent loop can hold a `dyn ToolExecutor` without depending on a [`Toolset`].
///
/// Every failure of a call is a reply that the model can read. An `Err` means only that the tools are closed.
///
/// ```
/// use pegboard::{ToolCall, ToolExecutor};
///
/// async fn one_step(tools: &dyn ToolExecutor, name: &str) -> String {
///     match tools.execute(ToolCall::new(name)).await {
///         Ok(reply) => reply.text(),
///         Err(closed) => closed.to_string(),
///     }
/// }
/// ```
pub trait ToolExecutor: Send + Sync {
    /// Lists the available tools, and why others are unavailable.
    fn list_tools(&self) -> Boxed<'_, Result<Listing, Closed>>;

    /// Executes one call. Dropping the future cancels the call.
    fn execute(&self, call: ToolCall) -> Boxed<'_, Result<Reply, Closed>>;

    /// Closes the tools: later calls are refused.
    fn close(&self) -> Boxed<'_, ()>;
}

/// The tools are closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("these tools are closed; open the board or its view again")]
pub struct Closed;

impl ToolExecutor for Toolset {
    fn list_tools(&self) -> Boxed<'_, Result<Listing, Closed>> {
        Box::pin(async {
            match self.is_closed() {
                true => Err(Closed),
                false => Ok(self.list(LIST).await),
            }
        })
    }

    fn execute(&self, call: ToolCall) -> Boxed<'_, Result<Reply, Closed>> {
        Box::pin(async {
            let is_closed = self.is_closed();
            // A late call is refused, counted and published like any other.
            let reply = self.call(call).await;
            match is_closed {
                true => Err(Closed),
                false => Ok(reply),
            }
        })
    }

    fn close(&self) -> Boxed<'_, ()> {
        Box::pin(Self::close(self))
    }
}
