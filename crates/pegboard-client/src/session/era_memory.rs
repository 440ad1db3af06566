//! Remembers on disk which protocol era each server spoke, so that the next start need not probe for it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use pegboard_base::private_file;
use pegboard_base::sync::Mutex;
use pegboard_config::{Command, EraChoice, Transport};

/// The most servers that are remembered. Each change rewrites the whole file, so it must stay small.
const MAX_ENTRIES: usize = 1000;
/// The largest file that is read: well above [`MAX_ENTRIES`] entries.
const MAX_BYTES: usize = 256 << 10;

/// The era and transport of a server's last handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RememberedEra {
    /// Without a handshake.
    Modern,
    /// With a handshake.
    Legacy,
    /// With a handshake over HTTP+SSE, at a URL whose transport the config leaves open.
    Sse,
    /// None: its process answered no request. It may have hung on the handshake, so the newest era is tried first.
    Silent,
}

/// The remembered eras, by fingerprint. Losing them costs only time, so errors are only logged.
#[derive(Debug, Default)]
pub struct EraMemory {
    file: Option<PathBuf>,
    known: Mutex<Option<BTreeMap<String, RememberedEra>>>,
}

impl EraMemory {
    /// Creates a memory in `file`, or one that lasts as long as the process.
    pub fn new(file: Option<PathBuf>) -> Self {
        Self {
            file,
            known: Mutex::default(),
        }
    }

    pub(super) fn recall(&self, fingerprint: &str) -> Option<RememberedEra> {
        let mut known = self.known.lock();
        let known = known.get_or_insert_with(|| self.file.as_deref().and_then(read).unwrap_or_default());
        known.get(fingerprint).copied()
    }

    pub(super) fn remember(&self, fingerprint: &str, era: RememberedEra) {
        self.replace(fingerprint, Some(era));
    }

    pub(super) fn forget(&self, fingerprint: &str) {
        self.replace(fingerprint, None);
    }

    fn replace(&self, fingerprint: &str, era: Option<RememberedEra>) {
        let mut known = self.known.lock();
        let before = known.as_ref().and_then(|known| known.get(fingerprint));
        if before == era.as_ref() {
            return;
        }
        // Another process may have written the file meanwhile; its entries are kept.
        let mut now = self
            .file
            .as_deref()
            .and_then(read)
            .or_else(|| known.clone())
            .unwrap_or_default();
        if now.len() >= MAX_ENTRIES {
            now.clear();
        }
        match era {
            Some(era) => now.insert(fingerprint.to_owned(), era),
            None => now.remove(fingerprint),
        };
        if let Some(file) = &self.file
            && let Err(error) = write(file, &now)
        {
            tracing::debug!(%error, file = %file.display(), "the eras of servers could not be remembered");
        }
        *known = Some(now);
    }
}

fn read(file: &Path) -> Option<BTreeMap<String, RememberedEra>> {
    serde_json::from_slice(&private_file::read(file, MAX_BYTES).ok()?).ok()
}

fn write(file: &Path, known: &BTreeMap<String, RememberedEra>) -> std::io::Result<()> {
    private_file::replace(file, &serde_json::to_vec(known)?)
}

/// Hashes what identifies a server: its program, arguments and their modification time, or its URL. An entry whose config names an era has a
/// memory of its own: what it is made to speak says nothing about what the server would speak with others.
pub(super) fn fingerprint(transport: &Transport, era: &EraChoice) -> String {
    let mut hash = Sha256::new();
    let mut add = |part: &[u8]| {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    };
    add(transport.kind().as_bytes());
    if era.is_firm() {
        add(format!("{era:?}").as_bytes());
    }
    match transport {
        Transport::Stdio(command) => {
            add(command.program.as_bytes());
            for arg in &command.args {
                add(arg.expose().as_bytes());
            }
            add(&modified_at(command).to_le_bytes());
        }
        Transport::Remote { endpoint, .. } => {
            add(endpoint.url.expose().as_str().as_bytes());
        }
    }
    let digest = hash.finalize();
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the latest modification time of the program and of the files among its arguments, in milliseconds.
fn modified_at(command: &Command) -> u64 {
    let files = std::iter::once(command.program.as_str()).chain(command.args.iter().map(|arg| arg.expose()));
    let times = files.filter(|file| file.contains('/')).filter_map(|file| {
        let time = std::fs::metadata(file).ok()?.modified().ok()?;
        let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
        u64::try_from(since.as_millis()).ok()
    });
    times.max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_era_is_remembered_by_the_next_process() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep/eras.json");
        let first = EraMemory::new(Some(file.clone()));
        assert_eq!(first.recall("a"), None);
        first.remember("a", RememberedEra::Legacy);
        EraMemory::new(Some(file.clone())).remember("b", RememberedEra::Sse);
        let next = EraMemory::new(Some(file));
        assert_eq!(
            (next.recall("a"), next.recall("b")),
            (Some(RememberedEra::Legacy), Some(RememberedEra::Sse))
        );
    }

    #[test]
    fn a_broken_file_counts_as_missing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("eras.json");
        std::fs::write(&file, "not json").unwrap();
        let memory = EraMemory::new(Some(file));
        assert_eq!(memory.recall("a"), None);
        memory.remember("a", RememberedEra::Modern);
        assert_eq!(memory.recall("a"), Some(RememberedEra::Modern));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_another_user_could_have_written_counts_as_missing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state/eras.json");
        EraMemory::new(Some(file.clone())).remember("a", RememberedEra::Modern);
        private_file::attacks::assert_refused(&file, || EraMemory::new(Some(file.clone())).recall("a").is_some());
    }

    #[test]
    fn another_argument_means_another_server() {
        let of = |args: &[&str]| {
            let transport = Transport::Stdio(Command::new("x").args(args.iter().copied()));
            fingerprint(&transport, &EraChoice::Auto)
        };
        assert_eq!(of(&["a"]), of(&["a"]));
        assert_ne!(of(&["a", "b"]), of(&["ab"]));
    }

    #[test]
    fn a_named_era_is_remembered_apart() {
        let transport = Transport::Stdio(Command::new("x"));
        let of = |era: EraChoice| fingerprint(&transport, &era);
        assert_eq!(of(EraChoice::Auto), of(EraChoice::Probe));
        assert_ne!(of(EraChoice::Auto), of(EraChoice::Legacy));
        assert_ne!(of(EraChoice::Modern), of(EraChoice::Legacy));
    }
}
