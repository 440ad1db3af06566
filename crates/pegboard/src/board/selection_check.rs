//! Checks a selection against the servers of a board.

use super::Pegboard;
use pegboard_tools::filter::{BadSelection, Selection};

impl Pegboard {
    /// Fails if a selection names servers that the board does not have. Every view checks this again on each call, because servers come and
    /// go.
    pub fn check_selection(&self, selection: &Selection) -> Result<(), BadSelection> {
        let servers = self.0.registry.configured_servers();
        let names: Vec<_> = servers.iter().map(|server| server.name().as_str()).collect();
        selection.check_against(&names)
    }
}
