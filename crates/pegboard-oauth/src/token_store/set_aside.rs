//! Damaged files of the store: kept under another name, so that a person can look at them and sign in again.

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;

use super::{MAX_BYTES, Storage, StoreError, TokenStore, file, run_blocking};
use crate::{account::AccountKey, sealed};
use pegboard_base::private_file;

impl TokenStore {
    /// The file that was set aside because it was damaged, until the next sign-in or sign-out.
    pub(crate) async fn damaged_file(&self, key: &AccountKey) -> Option<String> {
        let Storage::Folder(folder) = &self.inner.storage else {
            return None;
        };
        let file = aside(folder, key);
        let shown = file.display().to_string();
        let exists = run_blocking(move || Ok(file.symlink_metadata().is_ok())).await;
        exists.unwrap_or(false).then_some(shown)
    }

    /// Removes the file that was set aside: it is not needed any more.
    pub(crate) async fn remove_damaged_file(&self, key: &AccountKey) {
        if let Storage::Folder(folder) = &self.inner.storage {
            let file = aside(folder, key);
            let _ = run_blocking(move || Ok(std::fs::remove_file(file).is_ok())).await;
        }
    }

    /// Reads a file. One that is damaged is set aside, as if there were none.
    pub(super) async fn read_undamaged<T: DeserializeOwned + Send + 'static>(
        &self,
        key: &AccountKey,
    ) -> Result<Option<T>, StoreError> {
        match self.read(key).await {
            Err(StoreError::Damaged { file, why }) => {
                tracing::warn!(%file, %why, "this file is damaged; it is kept with the ending `.damaged`");
                self.set_aside::<T>(key).await?;
                Ok(None)
            }
            read => read,
        }
    }

    /// Gives a damaged file another name, so that a person can look at it and a sign-in is possible.
    async fn set_aside<T: DeserializeOwned>(&self, key: &AccountKey) -> Result<(), StoreError> {
        let (inner, key) = (self.inner.clone(), key.clone());
        run_blocking(move || {
            let Storage::Folder(folder) = &inner.storage else {
                return Ok(());
            };
            let (file, aside) = (file(folder, &key), aside(folder, &key));
            match std::fs::rename(&file, &aside) {
                Ok(()) => {}
                // Another process has done it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(inner.write_error(&key, error.to_string())),
            }
            let moved = private_file::read(&aside, MAX_BYTES).unwrap_or_default();
            let is_damaged = match sealed::open(&moved, key.as_str(), &*inner.key) {
                Ok(text) => serde_json::from_slice::<T>(&text).is_err(),
                Err(problem) => matches!(problem, sealed::Problem::Damaged(_)),
            };
            if !is_damaged {
                // Another process has replaced the damaged file meanwhile. A link fails if there is a newer one still.
                let _ = std::fs::hard_link(&aside, &file);
                let _ = std::fs::remove_file(&aside);
            }
            Ok(())
        })
        .await
    }
}

/// Where a damaged file is kept.
fn aside(folder: &Path, key: &AccountKey) -> PathBuf {
    folder.join(format!("{}.damaged", key.as_str()))
}
