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
        Box::pin(async { Ok(serve(self.clone())) })
    }

    fn tool_kind(&self) -> ToolKind {
        ToolKind::Native
    }
}

/// A server of one tool.
impl Dialer for NativeTool {
    fn dial(&self, _context: DialContext) -> BoxFuture<'_, Result<(ByteSource, ByteSink), DialerError>> {
        Box::pin(async { Ok(serve(self.clone().into())) })
    }

    fn tool_kind(&self) -> ToolKind {
        ToolKind::Native
    }
}

/// Serves the tools over a stream in memory.
fn serve(tools: NativeTools) -> (ByteSource, ByteSink) {
    let (ours, theirs) = tokio::io::duplex(STREAM_CAPACITY);
    // The task ends when the board drops its end.
    tokio::spawn(mcp_server::serve(tools, theirs));
    let (read, write) = tokio::io::split(ours);
    (Box::new(read) as ByteSource, Box::new(write) as ByteSink)
}
