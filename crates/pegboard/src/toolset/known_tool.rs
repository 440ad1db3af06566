//! [`KnownTool`]: what is known of a tool without waiting for its server.

use std::sync::Arc;

use crate::status::Era;
use pegboard_tools::catalog::Tool;

/// A tool that is known now.
#[derive(Debug, Clone)]
#[non_exhaustive]
#[doc(hidden)]
pub struct KnownTool {
    /// The tool.
    pub tool: Arc<Tool>,
    /// The protocol era of its server, while that is connected.
    pub era: Option<Era>,
}

impl KnownTool {
    /// Creates the value for a tool whose server is not connected.
    pub fn new(tool: Arc<Tool>) -> Self {
        Self { tool, era: None }
    }
}
