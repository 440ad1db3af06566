//! Stores the pins of servers: one file for each server in a folder of the user, or in memory.

use std::{
    collections::HashMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use super::{
    identity::ServerIdentity,
    pinned_server::{PinFile, PinMarks, PinnedServer},
};
use pegboard_base::private_file;
use pegboard_base::sync::Mutex;

/// The largest file that is written or read.
const MAX_BYTES: usize = 8 << 20;
/// The most files that [`PinStore::servers`] reads.
const MAX_FILES: usize = 10_000;

/// The pins of all servers, in a folder. The files belong to the user alone: links are not followed, and files that others may write are
/// refused.
#[derive(Debug, Clone)]
pub struct PinStore(PinStorage);

#[derive(Debug, Clone)]
enum PinStorage {
    Folder(PathBuf),
    Memory(Arc<Mutex<HashMap<String, Arc<PinnedServer>>>>),
}

/// Identifies the content of a file, to detect a change by another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp(Option<(SystemTime, u64)>);

/// Why pins could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PinError {
    /// A file or the folder could not be read.
    #[error("the pins in {} cannot be read: {source}; move the file away only if you no longer trust what it pins", .file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("the pins cannot be written to {}: {source}; check that the folder is writable and belongs to you alone", .file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl PinStore {
    /// Creates a store in `folder`, which is created with the first file.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(PinStorage::Folder(folder.into()))
    }

    /// Creates a store that ends with the program.
    pub(crate) fn in_memory() -> Self {
        Self(PinStorage::Memory(Arc::default()))
    }

    /// The pins of all servers, ordered by name. A file that cannot be read is an error.
    pub fn servers(&self) -> Result<Vec<PinnedServer>, PinError> {
        let mut servers: Vec<PinnedServer> = match &self.0 {
            PinStorage::Memory(servers) => servers.lock().values().map(|pinned| (**pinned).clone()).collect(),
            PinStorage::Folder(folder) => {
                let mut servers = Vec::new();
                for file in files(folder)? {
                    servers.extend(read::<PinnedServer>(&file)?);
                }
                servers
            }
        };
        servers.sort_by(|a, b| (&a.server, &a.identity).cmp(&(&b.server, &b.identity)));
        Ok(servers)
    }

    /// Removes all pins of a server, by its identity. Returns whether there were any.
    pub fn forget(&self, identity: &str) -> Result<bool, PinError> {
        match &self.0 {
            PinStorage::Memory(servers) => Ok(servers.lock().remove(identity).is_some()),
            PinStorage::Folder(folder) => {
                let file = file_of(folder, identity);
                match std::fs::remove_file(&file) {
                    Ok(()) => Ok(true),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                    Err(source) => Err(PinError::Write { file, source }),
                }
            }
        }
    }

    /// The pins of a server; `None` if it has none.
    pub(crate) fn load(&self, identity: &ServerIdentity) -> Result<Option<Arc<PinnedServer>>, PinError> {
        match &self.0 {
            PinStorage::Memory(servers) => Ok(servers.lock().get(&identity.hash).cloned()),
            PinStorage::Folder(folder) => Ok(read(&file_of(folder, &identity.hash))?.map(Arc::new)),
        }
    }

    /// The pins of a server without their texts; `None` if it has none.
    pub(crate) fn load_marks(&self, identity: &ServerIdentity) -> Result<Option<PinMarks>, PinError> {
        match &self.0 {
            PinStorage::Memory(_) => Ok(self.load(identity)?.map(|pinned| PinMarks::from(&*pinned))),
            PinStorage::Folder(folder) => read(&file_of(folder, &identity.hash)),
        }
    }

    /// Changes the pins of a server. They are read again first, because another process may have changed them.
    pub(crate) fn update(
        &self,
        identity: &ServerIdentity,
        change: impl FnOnce(&mut PinnedServer),
    ) -> Result<(), PinError> {
        let change = |pinned: &mut PinnedServer| {
            change(pinned);
            pinned.shown.clone_from(&identity.shown);
        };
        match &self.0 {
            PinStorage::Memory(servers) => {
                let mut servers = servers.lock();
                let new = || Arc::new(PinnedServer::new(identity));
                change(Arc::make_mut(servers.entry(identity.hash.clone()).or_insert_with(new)));
                Ok(())
            }
            PinStorage::Folder(folder) => {
                let file = file_of(folder, &identity.hash);
                let mut pinned = read(&file)?.unwrap_or_else(|| PinnedServer::new(identity));
                change(&mut pinned);
                write(&file, &pinned)
            }
        }
    }

    /// Fails if the pins of a server cannot be read, or pins could not be written.
    pub(crate) fn check(&self, identity: &ServerIdentity) -> Result<(), PinError> {
        self.load(identity)?;
        if let PinStorage::Folder(folder) = &self.0 {
            let file = folder.join("writable");
            private_file::replace(&file, b"").map_err(|source| PinError::Write { file, source })?;
        }
        Ok(())
    }

    /// Identifies the content of a server's file.
    pub(crate) fn stamp(&self, identity: &ServerIdentity) -> Stamp {
        let PinStorage::Folder(folder) = &self.0 else {
            return Stamp(None);
        };
        let meta = std::fs::symlink_metadata(file_of(folder, &identity.hash));
        Stamp(meta.ok().and_then(|meta| Some((meta.modified().ok()?, meta.len()))))
    }
}

/// An identity consists of hexadecimal digits, so it cannot leave the folder. Others can come from callers of [`PinStore::forget`].
fn file_of(folder: &Path, identity: &str) -> PathBuf {
    let name: String = identity.chars().filter(char::is_ascii_hexdigit).collect();
    folder.join(format!("{name}.json"))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, PinError> {
    let failed = |source| PinError::Read {
        file: folder.to_owned(),
        source,
    };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(failed(source)),
    };
    let mut files = Vec::new();
    for entry in entries.take(MAX_FILES) {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    Ok(files)
}

fn read<T: PinFile>(file: &Path) -> Result<Option<T>, PinError> {
    let failed = |source| PinError::Read {
        file: file.to_owned(),
        source,
    };
    let text = match private_file::read(file, MAX_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(failed(source)),
    };
    let pinned: T = serde_json::from_slice(&text).map_err(|error| failed(error.into()))?;
    if !file.file_stem().is_some_and(|stem| pinned.is_of(stem)) {
        // A file of a later version, or of another server, must not count as "never seen".
        let error = io::Error::new(io::ErrorKind::InvalidData, "it is not a file of pins of this version");
        return Err(failed(error));
    }
    Ok(Some(pinned))
}

fn write(file: &Path, pinned: &PinnedServer) -> Result<(), PinError> {
    let failed = |source| PinError::Write {
        file: file.to_owned(),
        source,
    };
    let text = serde_json::to_vec(pinned).map_err(|error| failed(error.into()))?;
    if text.len() > MAX_BYTES {
        let error = io::Error::new(io::ErrorKind::FileTooLarge, "the server has too many tools to pin");
        return Err(failed(error));
    }
    private_file::replace(file, &text).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pin::Pin;
    use pegboard_tools::catalog::DefinitionHash;

    fn identity(name: &str) -> ServerIdentity {
        ServerIdentity::in_process(&name.parse().unwrap())
    }

    fn pinned(store: &PinStore, of: &ServerIdentity, tool: &str) {
        let pin = Pin::new(DefinitionHash::compute(tool), Some(tool.to_owned()), false, &mut 100);
        store
            .update(of, |pins| drop(pins.tools.insert(tool.to_owned(), pin)))
            .unwrap();
    }

    #[test]
    fn pins_are_kept_for_each_server_and_updates_add_to_them() {
        let folder = tempfile::tempdir().unwrap();
        for store in [PinStore::new(folder.path().join("pins")), PinStore::in_memory()] {
            let (a, b) = (identity("a"), identity("b"));
            store.check(&a).unwrap();
            assert!(store.load(&a).unwrap().is_none() && store.load_marks(&a).unwrap().is_none());
            pinned(&store, &a, "one");
            // Another process.
            pinned(&store.clone(), &a, "two");
            pinned(&store, &b, "three");
            let tools = |of: &ServerIdentity| {
                store
                    .load(of)
                    .unwrap()
                    .unwrap()
                    .tools
                    .keys()
                    .cloned()
                    .collect::<Vec<_>>()
            };
            assert_eq!(
                (tools(&a), tools(&b)),
                (vec!["one".into(), "two".into()], vec!["three".into()])
            );
            assert_eq!(store.servers().unwrap().len(), 2);
            assert!(store.forget(&a.hash).unwrap());
            assert!(!store.forget(&a.hash).unwrap() && !store.forget("../../etc/passwd").unwrap());
            assert!(store.load(&a).unwrap().is_none() && store.load_marks(&a).unwrap().is_none());
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_an_error_and_not_a_new_server() {
        let folder = tempfile::tempdir().unwrap();
        let (store, a, b) = (PinStore::new(folder.path()), identity("a"), identity("b"));
        pinned(&store, &b, "x");
        let (of_a, of_b) = (file_of(folder.path(), &a.hash), file_of(folder.path(), &b.hash));
        let good = std::fs::read_to_string(&of_b).unwrap();
        let newer = good.replace("\"version\":1", "\"version\":99");
        for bad in ["", "{}", "not json", &good, &newer] {
            private_file::replace(&of_a, bad.as_bytes()).unwrap();
            assert!(
                store.load(&a).is_err() && store.load_marks(&a).is_err() && store.check(&a).is_err(),
                "{bad}"
            );
            assert!(store.update(&a, |_| ()).is_err(), "{bad}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_and_files_of_others_are_refused_and_ours_are_private() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let (store, a, b) = (PinStore::new(folder.path()), identity("a"), identity("b"));
        pinned(&store, &a, "x");
        let (of_a, of_b) = (file_of(folder.path(), &a.hash), file_of(folder.path(), &b.hash));
        assert_eq!(std::fs::metadata(&of_a).unwrap().permissions().mode() & 0o777, 0o600);
        std::os::unix::fs::symlink(&of_a, &of_b).unwrap();
        assert!(store.load(&b).is_err());
        std::fs::set_permissions(&of_a, std::fs::Permissions::from_mode(0o666)).unwrap();
        assert!(store.load(&a).is_err());
    }
}
