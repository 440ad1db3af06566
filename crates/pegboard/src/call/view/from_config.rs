//! A view as the config describes it.

use super::View;
use pegboard_config::ViewConfig;
use pegboard_tools::grant::Grants;

/// Results are limited as the view says, else as the config of their servers says.
impl From<&ViewConfig> for View {
    fn from(config: &ViewConfig) -> Self {
        let mut view = Self::new()
            .servers(&config.servers)
            .allow(&config.tools)
            .deny(&config.deny)
            .approval(config.approval);
        view.naming.clone_from(&config.naming);
        view.tool_budget = config.budget;
        view.resource_tools = config.resource_tools;
        view.rules.grants = config.grants.as_ref().map(Grants::from_words);
        match config.result {
            Some(limits) => view.limit_results(limits),
            None => view.configured_limits(),
        }
    }
}
