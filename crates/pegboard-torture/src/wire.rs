//! [`Wire`]: a raw connection to the server under test. It sends any text and hands out whatever arrives, well-formed or not.

use std::{io, time::Duration};

use pegboard_client::transport::SpawnError;
use pegboard_config::{Command, Endpoint};
use rustls::ClientConfig;
use tokio::sync::mpsc;

use super::{
    http::{HttpTarget, HttpWire},
    incoming::Incoming,
    stdio::{StdioTarget, StdioWire},
};

/// The server under test.
#[derive(Debug, Clone)]
pub struct Target {
    kind: WireKind,
}

#[derive(Debug, Clone)]
enum WireKind {
    Stdio(StdioTarget),
    Http(HttpTarget),
}

/// A connection to the server under test.
#[derive(Debug)]
pub(super) enum Wire {
    Stdio(Box<StdioWire>),
    Http(Box<HttpWire>),
}

impl Target {
    /// A server that is started for each connection.
    pub fn stdio(command: &Command) -> Self {
        Self {
            kind: WireKind::Stdio(StdioTarget::new(command)),
        }
    }

    /// A server at a URL, or why it cannot be tried. `tls` are the TLS settings of the endpoint.
    pub fn http(endpoint: &Endpoint, tls: ClientConfig) -> Result<Self, String> {
        let kind = WireKind::Http(HttpTarget::new(endpoint, tls)?);
        Ok(Self { kind })
    }

    /// Opens a connection. Over stdio this starts a process.
    pub(super) async fn open(&self) -> Result<Wire, SpawnError> {
        Ok(match &self.kind {
            WireKind::Stdio(target) => Wire::Stdio(Box::new(target.start().await?)),
            WireKind::Http(target) => Wire::Http(Box::new(target.open())),
        })
    }

    /// The endpoint of a server at a URL.
    pub(super) fn endpoint(&self) -> Option<&HttpTarget> {
        match &self.kind {
            WireKind::Http(target) => Some(target),
            WireKind::Stdio(_) => None,
        }
    }

    pub(super) fn is_stdio(&self) -> bool {
        matches!(self.kind, WireKind::Stdio(_))
    }
}

impl Wire {
    /// Sends a text as one message, within `limit`.
    pub(super) async fn send(&mut self, text: &str, limit: Duration) -> io::Result<()> {
        match self {
            Self::Stdio(wire) => wire.write(&[text.as_bytes(), b"\n"].concat(), limit).await,
            Self::Http(wire) => {
                wire.post(text);
                Ok(())
            }
        }
    }

    /// The next thing that arrives; `None` after the end of the connection.
    pub(super) async fn receive(&mut self) -> Option<Incoming> {
        self.incoming().recv().await
    }

    fn incoming(&mut self) -> &mut mpsc::Receiver<Incoming> {
        match self {
            Self::Stdio(wire) => &mut wire.incoming,
            Self::Http(wire) => &mut wire.incoming,
        }
    }
}
