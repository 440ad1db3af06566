//! Why a wire could not be opened.

use super::{request_failure::WireFailure, stdio::SpawnError};
use pegboard_base::hint::Hint;
use pegboard_mask::ServerMasker;

/// Why a wire could not be opened.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DialError {
    /// The server's process could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The TLS settings or certificate files cannot be used.
    #[error("{0}")]
    Tls(String),
    /// TLS is needed, and there is no cryptography for it.
    #[error("this program was built without cryptography for TLS")]
    NoCryptography,
    /// A setting of the connection cannot be used, such as an invalid header.
    #[error("{0}")]
    Setting(String),
    /// The transport is not built in. Its name is also the name of its cargo feature.
    #[error("this program was built without servers over `{0}`")]
    NotBuilt(&'static str),
    /// The transport could not connect, or the server refused the connection.
    #[error(transparent)]
    Failed(#[from] WireFailure),
}

impl DialError {
    /// Masks secrets in the server's text.
    pub(crate) fn hide(&mut self, masker: &ServerMasker) {
        match self {
            Self::Tls(text) | Self::Setting(text) => masker.hide(text),
            Self::Failed(failure) => failure.hide(masker),
            Self::Spawn(error) => error.hide(masker),
            Self::NoCryptography | Self::NotBuilt(_) => {}
        }
    }
}

impl Hint for DialError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Spawn(error) => error.hint(),
            Self::Failed(failure) => failure.hint(),
            Self::Tls(_) => Some("check the files named in the server's `tls` settings".to_owned()),
            Self::NoCryptography => Some(
                "build it with the feature `rustls-ring` or `rustls-aws-lc` of the crate `pegboard`, or install a `CryptoProvider` of rustls before the board is opened"
                    .to_owned(),
            ),
            Self::NotBuilt(feature) => Some(format!(
                "build it with the feature `{feature}` of the crate `pegboard`, or take the server out"
            )),
            Self::Setting(_) => None,
        }
    }
}
