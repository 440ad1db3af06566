//! A daemon in front of a board, with one MCP endpoint and an HTTP API. Not implemented yet.
