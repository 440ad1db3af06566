//! A view as the config describes it.

use super::View;
use crate::config::ViewConfig;

/// Results are whole unless the config limits them.
impl From<&ViewConfig> for View {
    fn from(config: &ViewConfig) -> Self {
        let mut view = Self::new()
            .servers(&config.servers)
            .allow(&config.tools)
            .deny(&config.deny)
            .approval(config.approval);
        view.naming.clone_from(&config.naming);
        view.tool_budget = config.budget;
        match config.result {
            Some(limits) => view.limit_results(limits),
            None => view.whole_results(),
        }
    }
}
