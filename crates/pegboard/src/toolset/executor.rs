//! [`ToolExecutor`]: the trait through which an agent loop lists and calls tools. Toolsets, chains and stubs implement it.

use pegboard_base::BoxFuture;
use std::{sync::Arc, time::Duration};

use super::{listing::Listing, toolset_handle::Toolset};
use crate::call::ToolCall;
use pegboard_tools::outcome::Reply;

/// Lists tools and executes calls, with the verbs of a [`Toolset`]. An agent loop can hold a `dyn ToolExecutor` without depending on one.
///
/// A program may implement it for tools of its own and join them with a board's in [`ChainedTools`](crate::toolset::ChainedTools):
///
/// ```
/// use std::time::Duration;
///
/// use pegboard::{BoxFuture, Config, Kind, ListedTool, Listing, Pegboard, Reply, ToolCall, ToolExecutor, toolset::ChainedTools};
/// use serde_json::json;
///
/// ///
/// struct Dice;
///
/// impl ToolExecutor for Dice {
///     fn list(&self, _patience: Duration) -> BoxFuture<'_, Listing> {
///         let roll = ListedTool::new("roll", "Rolls a die.", json!({"type": "object"}));
///         Box::pin(async move { Listing::from_tools(roll) })
///     }
///
///     fn call(&self, call: ToolCall) -> BoxFuture<'_, Reply> {
///         Box::pin(async move {
///             match call.name.as_str() {
///                 "roll" => Reply::done(&call, "4"),
///                 _ => Reply::refused(&call, Kind::UnknownTool, "there is only `roll`"),
///             }
///         })
///     }
/// }
///
/// # #[tokio::main]
/// # async fn main() {
/// let board = Pegboard::open(Config::default());
/// let tools = ChainedTools::new().and(Dice).and(board.toolset());
/// assert_eq!(tools.call(ToolCall::new("roll")).await.text(), "4");
/// # }
/// ```
pub trait ToolExecutor: Send + Sync {
    /// Lists the available tools, and why others are unavailable. Waits for tools that are not ready at most for `patience`.
    fn list(&self, patience: Duration) -> BoxFuture<'_, Listing>;

    /// Executes one call. Every failure is a reply that the model can read. Dropping the future cancels the call.
    ///
    /// The reply to a name that is not the name of a tool is refused with [`Kind::UnknownTool`](crate::Kind::UnknownTool).
    fn call(&self, call: ToolCall) -> BoxFuture<'_, Reply>;

    /// Closes the tools: later calls are refused, and listings are empty. Does nothing by default.
    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Whether the tools are closed, so that an agent loop can end. `false` by default.
    fn is_closed(&self) -> bool {
        false
    }
}

impl ToolExecutor for Toolset {
    fn list(&self, patience: Duration) -> BoxFuture<'_, Listing> {
        Box::pin(Self::list(self, patience))
    }

    fn call(&self, call: ToolCall) -> BoxFuture<'_, Reply> {
        Self::call(self, call)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(Self::close(self))
    }

    fn is_closed(&self) -> bool {
        Self::is_closed(self)
    }
}

/// An executor behind a pointer executes as the executor itself.
macro_rules! delegate {
    ($($pointer:ident),*) => {$(
        impl<T: ToolExecutor + ?Sized> ToolExecutor for $pointer<T> {
            fn list(&self, patience: Duration) -> BoxFuture<'_, Listing> {
                (**self).list(patience)
            }

            fn call(&self, call: ToolCall) -> BoxFuture<'_, Reply> {
                (**self).call(call)
            }

            fn close(&self) -> BoxFuture<'_, ()> {
                (**self).close()
            }

            fn is_closed(&self) -> bool {
                (**self).is_closed()
            }
        }
    )*};
}

delegate!(Arc, Box);
