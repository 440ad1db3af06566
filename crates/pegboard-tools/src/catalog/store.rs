//! Stores catalogs on disk, so that a server's tools can be listed before the server has started.
//!
//! Losing a file costs only time: a file that cannot be read counts as absent.

mod file_format;
mod folder;
mod stored;

pub use stored::{Freshness, Stored};

use std::{collections::BTreeMap, io, path::PathBuf, sync::Arc, time::Duration};

use file_format::CatalogFile;
use pegboard_base::{name::ServerName, private_file, timestamp::Timestamp};
use sha2::{Digest, Sha256};

/// The largest file that is written or read: the default size limit of a server's message.
const MAX_BYTES: usize = 8 << 20;
/// How long a catalog is kept after the server was listed last.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 3600);

/// A folder with one file for each server and each of its configs. The files that were written longest ago are removed when there are too many.
#[derive(Debug, Clone)]
pub struct CatalogStore {
    folder: PathBuf,
    /// A part of the fingerprints of these servers.
    rules: Arc<BTreeMap<ServerName, String>>,
}

/// Why a catalog could not be stored.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The catalog exceeds the size limit of a file.
    #[error("the catalogue of server `{server}` has {bytes} bytes as a file, and {MAX_BYTES} are kept")]
    TooLarge {
        /// The server whose catalog it is.
        server: ServerName,
        /// The size that the file would have.
        bytes: usize,
    },
    /// The file could not be written.
    #[error("the catalogue of a server could not be written to {}; check that the folder is writable", .file.display())]
    Io {
        /// The path of the file.
        file: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
}

impl CatalogStore {
    /// Creates a store in `folder`, which is created with the first file.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            rules: Arc::default(),
        }
    }

    /// Keeps the catalogs of these servers apart from what was stored under other rules, such as those of the program that passes them on.
    #[must_use]
    pub fn under(self, rules: BTreeMap<ServerName, String>) -> Self {
        let rules = Arc::new(rules);
        Self { rules, ..self }
    }

    /// Stores a catalog in place of the previous one of the same server and fingerprint.
    ///
    /// The fingerprint must cover everything that decides what the server would list: how it is reached and, since listings can be private,
    /// with which credentials.
    pub fn save(&self, server: &ServerName, fingerprint: &str, stored: &Stored) -> Result<(), StoreError> {
        let fingerprint = self.digest(server, fingerprint);
        let file = self.file(server, &fingerprint);
        let record = CatalogFile::new(&fingerprint, stored);
        let written = serde_json::to_vec(&record).map_err(io::Error::from).and_then(|text| {
            if text.len() <= MAX_BYTES {
                let is_new = !file.exists();
                private_file::replace(&file, &text)?;
                if is_new {
                    folder::remove_oldest(&self.folder, &file);
                }
            }
            Ok(text.len())
        });
        match written {
            Ok(bytes) if bytes > MAX_BYTES => Err(StoreError::TooLarge {
                server: server.clone(),
                bytes,
            }),
            Ok(_) => Ok(()),
            Err(source) => Err(StoreError::Io { file, source }),
        }
    }

    /// Loads the server's catalog, if one was stored under the same fingerprint in the last 30 days and can be read.
    pub fn load(&self, server: &ServerName, fingerprint: &str) -> Option<Stored> {
        let fingerprint = self.digest(server, fingerprint);
        let file = self.file(server, &fingerprint);
        match private_file::read(&file, MAX_BYTES) {
            Ok(text) => match serde_json::from_slice::<CatalogFile>(&text) {
                Ok(record) => {
                    let stored = record.into_stored(server, &fingerprint)?;
                    let age = Timestamp::now().checked_duration_since(stored.saved_at);
                    // If the clock was set back, its age is unknown.
                    age.is_none_or(|age| age < MAX_AGE).then_some(stored)
                }
                Err(error) => {
                    tracing::debug!(%error, file = %file.display(), "a stored catalogue cannot be read");
                    None
                }
            },
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::debug!(%error, file = %file.display(), "a stored catalogue cannot be read");
                }
                None
            }
        }
    }

    /// Removes the catalog that is stored under a fingerprint, if there is one.
    pub fn remove(&self, server: &ServerName, fingerprint: &str) {
        let file = self.file(server, &self.digest(server, fingerprint));
        if let Err(error) = std::fs::remove_file(&file)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::debug!(%error, file = %file.display(), "a stored catalogue cannot be removed");
        }
    }

    /// The fingerprint under the rules of this store.
    fn digest(&self, server: &ServerName, fingerprint: &str) -> String {
        let rules = self.rules.get(server).map_or("", String::as_str);
        let mut hash = Sha256::new();
        hash.update((rules.len() as u64).to_le_bytes());
        hash.update(rules);
        hash.update(fingerprint);
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// A server's name consists of letters, digits, `_` and `-`, so it cannot leave the folder.
    fn file(&self, server: &ServerName, digest: &str) -> PathBuf {
        self.folder.join(format!("{server}.{}.json", &digest[..16]))
    }
}

#[cfg(test)]
mod tests;
