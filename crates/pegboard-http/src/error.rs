//! Why a request failed.

use std::time::Duration;

use crate::resolver::LookupFailed;

pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a request failed. The texts do not contain its URL, which may have secrets.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No connection could be opened, so that nothing was sent.
    #[error("no connection could be opened")]
    Connect(#[source] BoxError),
    /// The same, because it took longer than this.
    #[error("no connection could be opened within {} s", .0.as_secs_f32())]
    ConnectTimeout(Duration),
    /// The request could not be sent, or its response did not begin.
    #[error("the request failed")]
    Request(#[source] hyper::Error),
    /// The response began and did not end.
    #[error("the response broke off")]
    Response(#[source] hyper::Error),
    /// The client is for another origin.
    #[error("the request is for another origin than the client")]
    OtherOrigin,
}

impl Error {
    /// Whether there was no connection.
    pub fn is_connect(&self) -> bool {
        matches!(self, Self::Connect(_) | Self::ConnectTimeout(_) | Self::OtherOrigin)
    }

    /// Whether there was no connection because it took too long.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::ConnectTimeout(_))
    }

    /// Whether there was no connection because the host has no known address.
    pub fn is_lookup(&self) -> bool {
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            if error.is::<LookupFailed>() {
                return true;
            }
            cause = error.source();
        }
        false
    }
}
