//! The named views and the settings of the gateway that are in effect.

use std::collections::BTreeMap;

use pegboard_config::{ServeConfig, ViewConfig};

/// The named views and the settings of the gateway, of one config.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct GatewaySettings {
    /// The named views, by name.
    pub views: BTreeMap<String, ViewConfig>,
    /// Where the gateway listens, whom it lets in, and its limits.
    pub serve: ServeConfig,
}

impl GatewaySettings {
    pub(super) fn new(views: BTreeMap<String, ViewConfig>, serve: ServeConfig) -> Self {
        Self { views, serve }
    }
}
