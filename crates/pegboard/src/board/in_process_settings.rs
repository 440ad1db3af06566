//! The settings of servers in this process.

use pegboard_client::transport::Dialer;
use pegboard_config::ServerConfig;
use pegboard_tools::catalog::ToolKind;

/// The most calls of native tools in flight. Functions of the program share no process and no connection that many calls would burden.
const NATIVE_CALLS: usize = 4096;

/// The settings of a server in this process for which the program gives none.
pub(super) fn default_settings(dialer: &impl Dialer) -> ServerConfig {
    match dialer.tool_kind() {
        ToolKind::Native => ServerConfig::in_process().max_in_flight(NATIVE_CALLS),
        _ => ServerConfig::in_process(),
    }
}
