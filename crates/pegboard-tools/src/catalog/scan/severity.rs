//! How surely a finding is an attack.

use serde::{Deserialize, Serialize};

use pegboard_base::label::label;

/// How surely a finding is an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingSeverity {
    /// Unusual text.
    Low,
    /// Text that honest servers rarely have.
    Medium,
    /// Text that honest servers do not have.
    High,
}

impl FindingSeverity {
    /// The name in text and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

label!(FindingSeverity, "severity of a finding", [Low, Medium, High]);
