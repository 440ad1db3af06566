//! [`Scope`]: the part of the board that an endpoint shows.

use std::sync::Arc;

use pegboard::{NameStyle, Pegboard, Selection, ServerName, View, board::GatewaySettings};
use pegboard_protocol::code;
use serde_json::{Map, Value};

use super::options::BoardOptions;
use crate::{door::Caller, protocol::RpcError};

/// The part of the board that an endpoint shows.
#[derive(Clone, Debug)]
pub(super) enum EndpointTarget {
    /// All servers, or what the program shows a caller of them.
    Board(BoardOptions),
    /// A view of the config.
    View(String),
    /// One server, under its own names.
    Server(ServerName),
    /// The same for clients that have asked for approval themselves.
    Approved(ServerName),
}

impl EndpointTarget {
    /// Creates the view that shows it. Results are as the config of their servers or the view says. Clients that ask for
    /// approval themselves are commands of this program: they have the same config, and apply these settings and the grants of their views.
    pub(super) fn view(&self, board: &Pegboard, caller: &Caller) -> Result<View, RpcError> {
        let view = match self {
            Self::Board(options) => {
                let of_caller = options.view(caller).unwrap_or_default();
                of_caller.configured_limits_unless_set()
            }
            Self::View(name) => board.configured_view(name).ok_or_else(|| {
                let message = format!("the config has no view `{}` any more", name.escape_debug());
                RpcError::new(code::INTERNAL_ERROR, message)
            })?,
            Self::Server(server) | Self::Approved(server) => {
                let selection = Selection::new().server(server.as_str());
                let view = View::new().selection(selection).naming(NameStyle::Bare);
                match self {
                    Self::Approved(_) => view.whole_results().trust_client_grants(),
                    Self::Server(_) | Self::Board(_) | Self::View(_) => view.configured_limits(),
                }
            }
        };
        Ok(view.for_client())
    }

    /// Whether toolsets that were opened with the settings `before` show what they should with `now`.
    pub(super) fn is_same(&self, before: &Arc<GatewaySettings>, now: &Arc<GatewaySettings>) -> bool {
        match self {
            _ if Arc::ptr_eq(before, now) => true,
            Self::View(name) => before.views.get(name) == now.views.get(name),
            Self::Board(_) | Self::Server(_) | Self::Approved(_) => true,
        }
    }

    /// The only server that it shows, if it shows one.
    pub(super) fn server(&self) -> Option<&ServerName> {
        match self {
            Self::Board(_) | Self::View(_) => None,
            Self::Server(server) | Self::Approved(server) => Some(server),
        }
    }

    /// Whether the program decides what is shown.
    pub(super) fn is_decided_by_program(&self) -> bool {
        matches!(self, Self::Board(options) if options.has_view())
    }

    /// How the server that it shows introduces itself, if the server is the gateway.
    pub(super) fn server_info(&self) -> Map<String, Value> {
        match self {
            Self::Board(options) => options.server_info(),
            Self::View(_) | Self::Server(_) | Self::Approved(_) => BoardOptions::default().server_info(),
        }
    }

    /// The name in the names of its toolsets.
    pub(super) fn label(&self) -> String {
        match self {
            Self::Board(_) => "mcp".to_owned(),
            Self::View(name) => format!("mcp/view/{name}"),
            Self::Server(server) => format!("mcp/{server}"),
            Self::Approved(server) => format!("approved/mcp/{server}"),
        }
    }
}
