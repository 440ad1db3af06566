//! A [`Gateway`] in front of a board.

use std::{io, sync::Arc};

use pegboard::Pegboard;

use super::gateway::{Gateway, GatewayBuilder};
use crate::{endpoints::BoardEndpoints, protocol::Sealer};

impl Gateway {
    /// Configures a gateway for a board: the whole board at `/mcp`, its views at `/mcp/view/{name}` and its servers at `/mcp/{server}`.
    ///
    /// The board should have a [`GatewayHost`](crate::GatewayHost), so that servers may ask clients. The gateway takes no settings from the
    /// board's config; tokens, names and limits are set on the builder.
    pub fn of_board(board: Pegboard) -> io::Result<GatewayBuilder> {
        let endpoints = BoardEndpoints::new(board, Sealer::random()?);
        Ok(GatewayBuilder::new(Arc::new(endpoints)))
    }
}
