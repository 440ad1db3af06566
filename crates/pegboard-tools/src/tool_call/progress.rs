//! Progress of a call.

use serde::{Deserialize, Serialize};

/// The progress of a call, as its server reports it.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
pub struct Progress {
    /// How much is done.
    pub progress: f64,
    /// How much there is to do, if known.
    #[serde(default)]
    pub total: Option<f64>,
    /// A message about the current step.
    #[serde(default)]
    pub message: Option<String>,
}
