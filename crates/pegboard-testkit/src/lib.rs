//! Fake MCP servers for tests.
