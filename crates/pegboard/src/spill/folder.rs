//! The private folder of one toolset. It is removed with everything in it when it is dropped.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use pegboard_base::private_file::{foreign_control, refuse_links};

/// The name prefix of all such folders, by which those of killed programs are found.
const PREFIX: &str = "pegboard-outputs-";
/// The most folders that one cleanup inspects.
const MAX_INSPECTED: usize = 1000;

/// A private folder, removed on drop.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Creates a new folder in `parent`. Removes folders of killed programs there that are older than `stale`.
    pub(super) fn create(parent: Option<&Path>, stale: Duration) -> io::Result<Self> {
        handle_file_size_signal();
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
        remove_stale(&parent, stale);
        let mut number = [0; 16];
        getrandom::fill(&mut number).map_err(|error| io::Error::other(error.to_string()))?;
        let path = parent.join(format!("{PREFIX}{:032x}", u128::from_le_bytes(number)));
        private_folder().recursive(false).create(&path).or_else(|error| {
            // A missing parent is created; the folder itself must be new.
            if error.kind() != io::ErrorKind::NotFound {
                return Err(error);
            }
            private_folder().recursive(true).create(&parent)?;
            private_folder().create(&path)
        })?;
        let folder = Self(path);
        // Who may rename entries of the parent can put a folder of their own in this one's place.
        match foreign_control(&fs::metadata(&parent)?) {
            None => Ok(folder),
            Some(problem) => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("{} is not safe for outputs: {problem}", parent.display()),
            )),
        }
    }

    /// Writes a new file that only the owner can read.
    pub(super) fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let path = self.0.join(name);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options.open(&path).and_then(|mut file| file.write_all(content));
        if written.is_err() {
            let _ = fs::remove_file(&path);
        }
        written
    }

    /// Renames the file `old` to `name` and overwrites its content.
    pub(super) fn overwrite(&self, old: &str, name: &str, content: &[u8]) -> io::Result<()> {
        let path = self.0.join(name);
        if fs::rename(self.0.join(old), &path).is_err() {
            // It may still exist, for example held open by another program.
            let _ = fs::remove_file(self.0.join(old));
            return self.write(name, content);
        }
        let mut options = OpenOptions::new();
        options.write(true);
        refuse_links(&mut options);
        let written = options.open(&path).and_then(|mut file| {
            file.write_all(content)?;
            file.set_len(u64::try_from(content.len()).unwrap_or(u64::MAX))
        });
        if written.is_err() {
            let _ = fs::remove_file(&path);
        }
        written
    }

    /// Reads the first `bytes` bytes of a file.
    pub(super) fn read(&self, name: &str, bytes: usize) -> io::Result<String> {
        let mut options = OpenOptions::new();
        options.read(true);
        refuse_links(&mut options);
        let mut text = String::with_capacity(bytes);
        // Any further bytes were not written by us.
        let limit = u64::try_from(bytes).unwrap_or(u64::MAX);
        options.open(self.0.join(name))?.take(limit).read_to_string(&mut text)?;
        Ok(text)
    }

    pub(super) fn remove(&self, name: &str) {
        // If this fails, it is removed with the folder.
        let _ = fs::remove_file(self.0.join(name));
    }

    #[cfg(test)]
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Installs a handler for SIGXFSZ, so that a write beyond `RLIMIT_FSIZE` fails with `EFBIG` and does not kill the program.
///
/// The handler stays for the life of the process. A handler that the program has set is still called.
#[cfg(unix)]
fn handle_file_size_signal() {
    use tokio::{
        runtime::Handle,
        signal::unix::{SignalKind, signal},
    };
    static HANDLED: std::sync::Once = std::sync::Once::new();
    if Handle::try_current().is_err() {
        return;
    }
    HANDLED.call_once(|| {
        let kind = SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw());
        // `signal` panics in a runtime without I/O, which cannot handle signals.
        let handled = std::panic::catch_unwind(|| signal(kind).map(drop));
        if !matches!(handled, Ok(Ok(()))) {
            tracing::debug!("SIGXFSZ is not handled: a file that exceeds the limit of the process will end it");
        }
    });
}

#[cfg(not(unix))]
fn handle_file_size_signal() {}

fn private_folder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

/// Removes folders whose outputs have all expired. Their programs were killed.
fn remove_stale(parent: &Path, stale: Duration) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let is_ours = |entry: &fs::DirEntry| entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
    for entry in entries.flatten().filter(is_ours).take(MAX_INSPECTED) {
        let Ok(meta) = entry.metadata() else { continue };
        let age = meta
            .modified()
            .ok()
            .and_then(|at| SystemTime::now().duration_since(at).ok());
        // `metadata` of an entry does not follow links.
        if meta.is_dir() && age.is_some_and(|age| age > stale) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_folders_are_removed_and_younger_ones_are_not() {
        let parent = tempfile::tempdir().unwrap();
        let old = parent.path().join(format!("{PREFIX}old"));
        fs::create_dir(&old).unwrap();
        fs::write(old.join("out"), "x").unwrap();
        let other = parent.path().join("somebody-elses");
        fs::create_dir(&other).unwrap();
        let folder = Folder::create(Some(parent.path()), Duration::from_secs(60)).unwrap();
        assert!(old.exists() && folder.path().exists());
        let next = Folder::create(Some(parent.path()), Duration::ZERO).unwrap();
        assert!(!old.exists() && other.exists() && next.path().exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_parent_in_which_others_may_replace_the_folder_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;

        let parent = tempfile::tempdir().unwrap();
        let create = || Folder::create(Some(parent.path()), Duration::MAX);
        let set_mode = |mode| fs::set_permissions(parent.path(), fs::Permissions::from_mode(mode)).unwrap();
        for (mode, is_safe) in [
            (0o700, true),
            (0o755, true),
            (0o1777, true),
            (0o777, false),
            (0o770, false),
        ] {
            set_mode(mode);
            assert_eq!(create().is_ok(), is_safe, "{mode:o}");
        }
        assert_eq!(
            fs::read_dir(parent.path()).unwrap().count(),
            0,
            "nothing is left behind"
        );
        set_mode(0o700);
        // Only root can give a folder away.
        if std::os::unix::fs::chown(parent.path(), Some(65534), None).is_ok() {
            assert!(create().is_err());
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_the_owner_can_read_folder_and_files() {
        use std::os::unix::fs::PermissionsExt as _;

        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::create(Some(&parent.path().join("made/for/it")), Duration::MAX).unwrap();
        folder.write("out", b"text").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(folder.path()), 0o700);
        assert_eq!(mode(&folder.path().join("out")), 0o600);
        assert_eq!(folder.read("out", 4).unwrap(), "text");
        assert!(folder.write("out", b"again").is_err(), "a file is written once");
        folder.overwrite("out", "next", b"abc").unwrap();
        assert!(folder.read("out", 4).is_err(), "its file was overwritten");
        assert_eq!(folder.read("next", 100).unwrap(), "abc");
        assert_eq!(mode(&folder.path().join("next")), 0o600);
        folder.overwrite("never there", "new", b"abcdef").unwrap();
        assert_eq!(folder.read("new", 100).unwrap(), "abcdef");
        std::os::unix::fs::symlink("/etc/hostname", folder.path().join("link")).unwrap();
        assert!(folder.read("link", 100).is_err(), "links are not followed");
        assert!(
            folder.overwrite("link", "there", b"abc").is_err(),
            "nor written through"
        );
        assert!(folder.read("there", 100).is_err());
    }
}
