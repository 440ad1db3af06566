//! A fake MCP server as a process.

fn main() {}
