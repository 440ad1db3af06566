//! The named views and the settings of the gateway that are in effect.

use std::{collections::BTreeMap, sync::Arc};

use super::Pegboard;
use crate::{
    call::View,
    config::{ServeConfig, ViewConfig},
};

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

impl Pegboard {
    /// The views and the settings of the gateway in the config that was opened or applied last. Reading them takes no lock, and the snapshot
    /// does not change: [`Pegboard::apply`] publishes another one.
    pub fn gateway_settings(&self) -> Arc<GatewaySettings> {
        self.0.gateway.load_full()
    }

    /// The view that the config has under this name, to open it with [`Pegboard::toolset_with`]; `None` if there is none. Toolsets that are
    /// open when the config changes keep the rules that they were opened with.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() {
    /// use pegboard::{Config, Env, Format, Pegboard};
    ///
    /// let text = "[views.reading]\ntools = ['get_*', 'list_*']\n";
    /// let config = Config::from_text(text, Format::Toml, &Env::process()).config;
    /// let board = Pegboard::open(config);
    /// let tools = board.toolset_with(board.configured_view("reading").unwrap().principal("alice"));
    /// assert!(board.configured_view("writing").is_none());
    /// # }
    /// ```
    pub fn configured_view(&self, name: &str) -> Option<View> {
        self.0.gateway.load().views.get(name).map(View::from)
    }
}
