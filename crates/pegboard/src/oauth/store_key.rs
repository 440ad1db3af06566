//! [`StoreKey`]: the key that the files of the store are encrypted with.

use std::fmt::Debug;

/// A key outside of the store, such as one in the keyring of the operating system.
pub(crate) trait StoreKey: Debug + Send + Sync + 'static {
    /// The key; `None` if there is none on this machine, so that the files are not encrypted. Called once for each file that is read or written,
    /// on a blocking thread. An error means that there is a key that cannot be had at the moment.
    fn key(&self) -> Result<Option<[u8; 32]>, String>;

    /// Whether files are encrypted. It creates no key: one that is made with the first file counts.
    fn encrypts(&self) -> Result<bool, String> {
        self.key().map(|key| key.is_some())
    }
}

/// No key: the files are protected by their permissions only.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainText;

impl StoreKey for PlainText {
    fn key(&self) -> Result<Option<[u8; 32]>, String> {
        Ok(None)
    }
}
