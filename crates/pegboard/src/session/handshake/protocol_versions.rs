//! The MCP protocol versions that this client supports.

/// The protocol versions with a handshake, newest first.
pub(super) const LEGACY_VERSIONS: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The protocol version without a handshake.
pub(super) const MODERN_VERSION: &str = "2026-07-28";
