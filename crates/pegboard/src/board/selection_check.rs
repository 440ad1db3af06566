//! Checks a selection against the servers of a board.

use super::Pegboard;
use crate::filter::{BadSelection, Selection};

impl Selection {
    /// Fails if the selection names servers that the board does not have. Every view checks this again on each call, because servers come and
    /// go.
    pub fn check(&self, board: &Pegboard) -> Result<(), BadSelection> {
        let servers = board.0.registry.configured();
        let names: Vec<_> = servers.iter().map(|server| server.name().as_str()).collect();
        self.check_against(&names)
    }
}
