//! What an agent loop needs of its tools, and no more: a trait that a toolset, a stub or anything else can stand for.

use std::{future::Future, pin::Pin, time::Duration};

use super::{listing::Listing, toolset_handle::Toolset};
use crate::{call::ToolCall, outcome::Reply};

/// How long a listing waits for servers that are starting.
const LIST: Duration = Duration::from_secs(60);

pub(super) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Lists tools and carries out calls. An agent loop can hold a `dyn ToolExecutor` and does not care who stands behind it.
///
/// Every failure of a call is a reply that the model can read. An `Err` says only that there is nobody to call any more.
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
    /// What can be called, and what cannot be and why.
    fn list_tools(&self) -> Boxed<'_, Result<Listing, Closed>>;

    /// Carries out one call. Dropping the future cancels it.
    fn execute(&self, call: ToolCall) -> Boxed<'_, Result<Reply, Closed>>;

    /// Ends it: calls that come later are refused.
    fn close(&self) -> Boxed<'_, ()>;
}

/// There is nobody to call any more.
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
            // A call that comes too late is refused, counted and told to listeners like any other.
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
