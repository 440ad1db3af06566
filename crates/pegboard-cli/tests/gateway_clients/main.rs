//! Third-party MCP clients against `pegboard serve` and `pegboard mcp`, over real servers. `scripts/peers` installs both sides.

// The installed Node is built for Linux, and processes are counted in /proc.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test panics at the step that fails")]

mod client;
mod command_lines;
mod every_client;
mod gateway;
mod limits;
mod plan;
mod processes;
mod report;
mod rmcp_client;
mod scratch;
mod tasks;
