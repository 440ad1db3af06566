//! Whether a selection can be used on a board, kind before anything is started.

use super::Pegboard;
use crate::filter::{BadSelection, Selection};

impl Selection {
    /// Whether it can be used on this board: every server that it names and that is not there is kind. A view checks again at each call,
    /// because servers come and go.
    pub fn check(&self, board: &Pegboard) -> Result<(), BadSelection> {
        let servers = board.0.registry.configured();
        let names: Vec<_> = servers.iter().map(|server| server.name().as_str()).collect();
        self.check_against(&names)
    }
}
