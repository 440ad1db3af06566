//! Catalogues on disk, so that a server's tools can be listed before the server has been started.
//!
//! Losing a file costs time and nothing else: whatever cannot be read is as good as absent.

mod record;

use std::{
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Catalog;
use crate::name::ServerName;
use record::Record;

/// The largest file that is written or read: as large as the largest message a server may send by default.
const MAX_BYTES: usize = 8 << 20;
/// The longest time for which a server's word about its own freshness is taken.
const MAX_TTL: Duration = Duration::from_secs(24 * 3600);

/// A folder with one file for each server.
#[derive(Debug, Clone)]
pub(crate) struct CatalogStore {
    folder: PathBuf,
}

/// A catalogue as it was when it was stored.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stored {
    pub(crate) catalog: Catalog,
    pub(crate) freshness: Freshness,
    pub(crate) saved_at: Timestamp,
}

/// What a server says about keeping its listings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Freshness {
    /// How long they can be used without asking again; at most a day. It is not said when not set.
    pub(crate) ttl: Option<Duration>,
    /// Who may see them.
    pub(crate) scope: CacheScope,
}

/// Who may see a kept listing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CacheScope {
    /// Whoever asked for it, with the same credentials. This is what silence means.
    #[default]
    Private,
    /// Everybody.
    Public,
}

impl Freshness {
    /// Reads `ttlMs` and `cacheScope` of one page of a listing.
    pub(crate) fn read(page: &Value) -> Self {
        let ttl = page.get("ttlMs").and_then(Value::as_u64);
        Self {
            ttl: ttl.map(|millis| Duration::from_millis(millis).min(MAX_TTL)),
            scope: match page.get("cacheScope").and_then(Value::as_str) {
                Some("public") => CacheScope::Public,
                _ => CacheScope::Private,
            },
        }
    }

    /// What holds for both of two listings: the shorter time, the smaller circle.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            ttl: self.ttl.zip(other.ttl).map(|(one, two)| one.min(two)),
            scope: if self.scope == other.scope {
                self.scope
            } else {
                CacheScope::Private
            },
        }
    }
}

impl Stored {
    /// Whether the server need not be asked again yet. A catalogue from the future is of no use: the clock was set back.
    pub(crate) fn is_fresh(&self, now: Timestamp) -> bool {
        let age = now.duration_since(self.saved_at);
        match (self.freshness.ttl, Duration::try_from(age)) {
            (Some(ttl), Ok(age)) => age < ttl,
            _ => false,
        }
    }
}

/// Why a catalogue could not be stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error("the catalogue of server `{server}` has {bytes} bytes as a file, and {MAX_BYTES} are kept")]
    TooLarge { server: ServerName, bytes: usize },
    #[error("the catalogue of a server could not be written to {}; check that the folder is writable", .file.display())]
    Io { file: PathBuf, source: io::Error },
}

impl CatalogStore {
    /// Catalogues in `folder`, which is made when the first one is stored.
    pub(crate) fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Stores a catalogue in place of the server's last one.
    ///
    /// The fingerprint must cover everything that decides what the server would list: how it is reached and, since listings can be
    /// private, with which credentials.
    pub(crate) fn save(&self, server: &ServerName, fingerprint: &str, stored: &Stored) -> Result<(), StoreError> {
        let file = self.file(server);
        let record = Record::of(fingerprint, stored);
        let written = serde_json::to_vec(&record).map_err(io::Error::from).and_then(|text| {
            if text.len() <= MAX_BYTES {
                write(&self.folder, &file, &text)?;
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

    /// The server's catalogue, if one was stored under the same fingerprint and can be read.
    pub(crate) fn load(&self, server: &ServerName, fingerprint: &str) -> Option<Stored> {
        let file = self.file(server);
        match read(&file) {
            Ok(text) => match serde_json::from_slice::<Record>(&text) {
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

    /// A server's name is made of letters, digits, `_` and `-`, so it cannot lead out of the folder.
    fn file(&self, server: &ServerName) -> PathBuf {
        self.folder.join(format!("{server}.json"))
    }
}

fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    let limit = MAX_BYTES as u64 + 1;
    std::fs::File::open(file)?.take(limit).read_to_end(&mut text)?;
    if text.len() > MAX_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "it is larger than any that we write",
        ));
    }
    Ok(text)
}

/// Writes the file in one step, so that a reader never sees half of it, and for our own eyes only.
fn write(folder: &Path, file: &Path, text: &[u8]) -> io::Result<()> {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    make_folder(folder)?;
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let draft = file.with_extension(format!("{}-{number}.tmp", std::process::id()));
    let result = create(&draft)
        .and_then(|mut out| out.write_all(text))
        .and_then(|()| std::fs::rename(&draft, file));
    if result.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    result
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// A new file. One that is there already was left behind by a program that had our number and is gone.
fn create(draft: &Path) -> io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(draft) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(draft)?;
            options.open(draft)
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests;
