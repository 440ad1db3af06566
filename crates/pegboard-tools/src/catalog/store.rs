//! Stores catalogs on disk, so that a server's tools can be listed before the server has started.
//!
//! Losing a file costs only time: a file that cannot be read counts as absent.

mod file_format;
mod stored;

pub use stored::{Freshness, Stored};

use std::{io, path::PathBuf};

use file_format::CatalogFile;
use pegboard_base::{name::ServerName, private_file};

/// The largest file that is written or read: the default size limit of a server's message.
const MAX_BYTES: usize = 8 << 20;
/// A folder with one file for each server.
#[derive(Debug, Clone)]
pub struct CatalogStore {
    folder: PathBuf,
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
        Self { folder: folder.into() }
    }

    /// Stores a catalog in place of the server's previous one.
    ///
    /// The fingerprint must cover everything that decides what the server would list: how it is reached and, since listings can be private,
    /// with which credentials.
    pub fn save(&self, server: &ServerName, fingerprint: &str, stored: &Stored) -> Result<(), StoreError> {
        let file = self.file(server);
        let record = CatalogFile::new(fingerprint, stored);
        let written = serde_json::to_vec(&record).map_err(io::Error::from).and_then(|text| {
            if text.len() <= MAX_BYTES {
                private_file::replace(&file, &text)?;
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

    /// Loads the server's catalog, if one was stored under the same fingerprint and can be read.
    pub fn load(&self, server: &ServerName, fingerprint: &str) -> Option<Stored> {
        let file = self.file(server);
        match private_file::read(&file, MAX_BYTES) {
            Ok(text) => match serde_json::from_slice::<CatalogFile>(&text) {
                Ok(record) => record.into_stored(server, fingerprint),
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

    /// A server's name consists of letters, digits, `_` and `-`, so it cannot leave the folder.
    fn file(&self, server: &ServerName) -> PathBuf {
        self.folder.join(format!("{server}.json"))
    }
}

#[cfg(test)]
mod tests;
