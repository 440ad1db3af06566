//! [`Wire`]: a raw connection to the server under test. It sends any text and hands out whatever arrives, well-formed or not.

use std::{io, time::Duration};

use tokio::sync::mpsc;

use super::{
    http::{HttpTarget, HttpWire},
    incoming::Incoming,
    stdio::{StdioTarget, StdioWire},
};

/// The server under test.
#[derive(Debug, Clone)]
pub(super) enum Target {
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
    /// Opens a connection. Over stdio this starts a process.
    pub(super) fn open(&self) -> io::Result<Wire> {
        Ok(match self {
            Self::Stdio(target) => Wire::Stdio(Box::new(target.start()?)),
            Self::Http(target) => Wire::Http(Box::new(target.open())),
        })
    }

    pub(super) fn is_stdio(&self) -> bool {
        matches!(self, Self::Stdio(_))
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
