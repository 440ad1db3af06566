//! The daemon in front of a board: one MCP endpoint and an HTTP API. It has no parts yet.
