//! Native tools: Rust functions that are called like the tools of servers. They are named, filtered, validated, queued, masked and recorded
//! in the same way.

mod context;
mod into_answer;
mod mcp_server;
mod tool;
#[cfg(feature = "schemars")]
mod typed;

pub use context::CALLER_META;
pub use context::ToolContext;
pub use into_answer::{IntoAnswer, Json, ToolError};
pub use tool::{NativeTool, NativeTools};

use crate::transport::{ByteSink, ByteSource, DialContext, Dialer, DialerError};
use pegboard_base::BoxFuture;
use pegboard_tools::catalog::ToolKind;

/// The capacity in bytes of the stream to and from native tools, in each direction.
const STREAM_CAPACITY: usize = 256 << 10;

impl Dialer for NativeTools {
    fn dial(&self, _context: DialContext) -> BoxFuture<'_, Result<(ByteSource, ByteSink), DialerError>> {
        Box::pin(async {
            let (ours, theirs) = tokio::io::duplex(STREAM_CAPACITY);
            // The task ends when the board drops its end.
            tokio::spawn(mcp_server::serve(self.clone(), theirs));
            let (read, write) = tokio::io::split(ours);
            Ok((Box::new(read) as ByteSource, Box::new(write) as ByteSink))
        })
    }

    fn tool_kind(&self) -> ToolKind {
        ToolKind::Native
    }
}
