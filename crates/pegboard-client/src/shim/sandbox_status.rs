//! Which sandbox a server has, for its status.

use serde::Serialize;

/// Which sandbox a server has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SandboxStatus {
    /// The level that its config requests: `basic` or `strict`.
    pub requested: &'static str,
    /// The level that is in force: `off`, `basic` or `strict`; `None` while no process runs.
    pub in_force: Option<&'static str>,
    /// The parts that are not in force on this system, and why.
    pub missing: Vec<String>,
}

impl SandboxStatus {
    /// A sandbox of a server without a process.
    #[doc(hidden)]
    pub fn from_requested(requested: &'static str) -> Self {
        Self {
            requested,
            in_force: None,
            missing: Vec::new(),
        }
    }
}
