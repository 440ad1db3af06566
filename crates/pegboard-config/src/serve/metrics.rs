//! What the metrics of a gateway count by name.

use serde::{Deserialize, Serialize};

use crate::{key::count, settings::settings};

settings! {
    /// What `/metrics` counts by the names of tools and principals. The first ones to be seen have a label of their own; the others are counted
    /// together as `other`. `0` leaves these metrics out.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(default)]
    #[non_exhaustive]
    pub struct ServeMetrics in serve_metrics = "serve.metrics" {
        /// The most tools, of all servers together, whose calls have a label of their own.
        max_tools: usize = count((0, 10_000), 200);
        /// The most principals, such as the names of tokens, whose calls have a label of their own.
        max_principals: usize = count((0, 10_000), 100);
    }
}
