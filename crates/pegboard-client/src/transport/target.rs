//! [`Target`]: how a server is reached, over its configured transport or in this process.

use std::{fmt, sync::Arc};

use super::in_process_dialer::Dialer;
use pegboard_config::Transport;
use pegboard_tools::catalog::ToolKind;

/// How a server is reached.
#[derive(Clone)]
pub enum Target {
    /// Over the transport in its config.
    Configured(Box<Transport>),
    /// In this process.
    InProcess(Arc<dyn Dialer>),
    /// In this process, in place of the transport in its config.
    StandIn(Arc<dyn Dialer>),
}

impl Target {
    /// The kind of the server's tools.
    pub fn tool_kind(&self) -> ToolKind {
        match self {
            Self::Configured(_) => ToolKind::Mcp,
            Self::InProcess(dialer) | Self::StandIn(dialer) => dialer.tool_kind(),
        }
    }

    /// The host of the server's URL.
    pub fn host(&self) -> Option<&str> {
        match self {
            Self::Configured(transport) => transport.endpoint()?.url.expose().host_str(),
            Self::InProcess(_) | Self::StandIn(_) => None,
        }
    }

    /// Whether the server comes from the config, even if a stand-in in this process replaces its transport.
    pub fn is_configured(&self) -> bool {
        matches!(self, Self::Configured(_) | Self::StandIn(_))
    }

    /// The dialer of a server in this process that is not a stand-in.
    pub fn dialer(&self) -> Option<Arc<dyn Dialer>> {
        match self {
            Self::InProcess(dialer) => Some(dialer.clone()),
            Self::Configured(_) | Self::StandIn(_) => None,
        }
    }

    /// Whether the other side supervises the server, so that crashes are not counted here.
    pub fn is_supervised(&self) -> bool {
        match self {
            Self::Configured(_) => false,
            Self::InProcess(dialer) | Self::StandIn(dialer) => dialer.supervises(),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Configured(transport) => transport.fmt(f),
            Self::InProcess(_) => f.write_str("InProcess"),
            Self::StandIn(_) => f.write_str("StandIn"),
        }
    }
}
