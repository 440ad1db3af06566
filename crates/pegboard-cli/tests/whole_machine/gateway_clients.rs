//! Third-party MCP clients against `pegboard serve` and `pegboard mcp`, over real servers. `scripts/peers` installs both sides.

mod client;
mod command_lines;
mod every_client;
mod gateway;
mod limits;
mod plan;
mod processes;
mod report;
mod rmcp_client;
pub(crate) mod scratch;
mod tasks;
