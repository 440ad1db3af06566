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
    pub fn for_board(board: Pegboard) -> io::Result<GatewayBuilder> {
        Ok(Self::for_board_with(board, Sealer::random()?))
    }

    /// Configures a gateway as [`Gateway::for_board`] does, with a sealer of its own. Gateways with the same key and config can stand behind
    /// one load balancer: each of them goes on with a modern request that another one has begun.
    pub fn for_board_with(board: Pegboard, sealer: impl Into<Arc<Sealer>>) -> GatewayBuilder {
        let tokens = board.caller_tokens();
        let endpoints = BoardEndpoints::new(board, sealer);
        let (links, options) = (endpoints.sign_in_links(), endpoints.options());
        let builder = GatewayBuilder::new(Arc::new(endpoints)).with_sign_in_links(links);
        builder.with_options(options).caller_tokens(tokens)
    }
}
