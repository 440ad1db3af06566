//! [`Daemon`]: a board with the routes that operators and programs use.

use axum::Router;
use pegboard::Pegboard;

use crate::reloads::Reloads;

/// The routes of a daemon besides MCP. Clones share the board.
#[derive(Clone, Debug)]
pub struct Daemon {
    board: Pegboard,
    reloads: Reloads,
}

impl Daemon {
    /// The daemon of a board whose config is applied by whoever holds the other end of `reloads`.
    pub fn new(board: Pegboard, reloads: Reloads) -> Self {
        Self { board, reloads }
    }

    /// The router of all routes.
    pub fn router(&self) -> Router {
        Router::new().with_state(self.clone())
    }

    /// The board.
    pub fn board(&self) -> &Pegboard {
        &self.board
    }

    /// The reloads of its config.
    pub fn reloads(&self) -> &Reloads {
        &self.reloads
    }
}
