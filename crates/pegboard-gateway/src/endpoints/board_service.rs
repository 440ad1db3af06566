//! [`board_service`]: a board as one service, for transports with a single client such as stdio.

use std::sync::Arc;

use pegboard::{Pegboard, ServerName};

use super::{board::BoardEndpoint, options::BoardOptions, scope::EndpointTarget, server::ServerEndpoint};
use crate::{protocol::Service, sign_in::SignInLinks};

/// The part of a board that a service shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BoardPart {
    /// All servers.
    #[default]
    Whole,
    /// A view of the config.
    View(String),
    /// One server, unchanged.
    Server(ServerName),
}

/// Creates the service that shows a part of a board, to serve it with [`serve_stdio`](crate::serve_stdio).
///
/// The board should have a [`GatewayHost`](crate::GatewayHost), so that servers may ask the client. Without HTTP there are no sign-in pages: with
/// `links` that are [served](SignInLinks::serve), clients are told to run `pegboard login` instead.
pub fn board_service(board: Pegboard, part: BoardPart, links: SignInLinks) -> Arc<dyn Service> {
    match part {
        BoardPart::Whole => Arc::new(BoardEndpoint::new(
            board,
            EndpointTarget::Board(BoardOptions::default()),
            links,
        )),
        BoardPart::View(name) => Arc::new(BoardEndpoint::new(board, EndpointTarget::View(name), links)),
        BoardPart::Server(server) => Arc::new(ServerEndpoint::new(board, server, links)),
    }
}
