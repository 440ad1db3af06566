//! A package cache for a server that a package runner downloads and starts. It belongs to that server alone: one that could write the cache
//! of the user could change the packages of other servers.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::DirBuilder,
    os::unix::{ffi::OsStrExt as _, fs::DirBuilderExt as _},
    path::{Path, PathBuf},
    time::Duration,
};

use sha2::{Digest as _, Sha256};

use crate::shim::folder_lock::{FolderLock, remove_unlocked};
use pegboard_config::Command;

/// The package runners, and the variables that name their caches with folders for these.
const RUNNERS: &[(&str, &[(&str, &str)])] = &[("npm", NPM), ("npx", NPM), ("uv", UV), ("uvx", UV)];
const NPM: &[(&str, &str)] = &[("npm_config_cache", "npm")];
const UV: &[(&str, &str)] = &[("UV_CACHE_DIR", "uv"), ("UV_TOOL_DIR", "uv-tools")];

/// The name prefix of all caches.
const PREFIX: &str = "server-";
/// How long a cache is kept after the last start of its server.
const STALE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// A package cache in use.
#[derive(Debug)]
pub(crate) struct PackageCache {
    folder: PathBuf,
    variables: &'static [(&'static str, &'static str)],
    /// Keeps other programs from removing it.
    _lock: FolderLock,
}

impl PackageCache {
    /// The cache of a command that starts a package runner. Servers with the same command line and working directory share it.
    ///
    /// `None` if the command starts another program or names a cache itself, or if the folder cannot be created.
    pub(crate) fn find(command: &Command, cwd: &Path, home: Option<&Path>) -> Option<Self> {
        let program = Path::new(&command.program).file_name()?;
        let (_, variables) = RUNNERS.iter().find(|(name, _)| OsStr::new(name) == program)?;
        if variables.iter().any(|(name, _)| command.env.contains_key(*name)) {
            return None;
        }
        let caches = env::var_os("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        let caches = caches.or_else(|| Some(home?.join(".cache")))?;
        Self::open(&caches.join("pegboard/packages"), &key(command, cwd), variables)
    }

    fn open(base: &Path, key: &str, variables: &'static [(&'static str, &'static str)]) -> Option<Self> {
        let folder = base.join(format!("{PREFIX}{key}"));
        DirBuilder::new().mode(0o700).recursive(true).create(&folder).ok()?;
        let lock = FolderLock::hold(&folder).ok()?;
        let base = base.to_owned();
        // On a thread of its own, because the server must not wait. If none can be started, the next start removes them.
        let _ = std::thread::Builder::new().spawn(move || remove_unlocked(&base, PREFIX, STALE));
        Some(Self {
            folder,
            variables,
            _lock: lock,
        })
    }

    /// The folder that the server may write.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The variables that the server needs to find it.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (OsString, OsString)> {
        let variable = |(name, inner): &(&str, &str)| ((*name).into(), self.folder.join(inner).into());
        self.variables.iter().map(variable)
    }
}

/// A name for the command line. It is a hash, because arguments may be secrets.
fn key(command: &Command, cwd: &Path) -> String {
    let args = command.args.iter().map(|arg| arg.expose().as_bytes());
    let mut hash = Sha256::new();
    for part in [command.program.as_bytes(), cwd.as_os_str().as_bytes()]
        .into_iter()
        .chain(args)
    {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.finalize()
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_line_has_a_cache_of_its_own() {
        let cwd = Path::new("/srv");
        let key_of = |args: &[&str]| key(&Command::new("npx").args(args.iter().copied()), cwd);
        assert_eq!(key_of(&["-y", "a"]), key_of(&["-y", "a"]));
        assert_ne!(key_of(&["-y", "a"]), key_of(&["-ya"]));
        assert_ne!(key_of(&["a"]), key(&Command::new("npx").args(["a"]), Path::new("/")));
        assert_ne!(key_of(&["a"]), key(&Command::new("uvx").args(["a"]), cwd));
    }

    #[test]
    fn a_cache_is_private_and_named_by_variables() {
        use std::os::unix::fs::PermissionsExt as _;

        let base = tempfile::tempdir().unwrap();
        let cache = PackageCache::open(&base.path().join("made/for/it"), "k", UV).unwrap();
        let mode = cache.folder().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let variables: Vec<_> = cache.variables().collect();
        let folder = |name| OsString::from(cache.folder().join(name));
        assert_eq!(
            variables,
            [
                ("UV_CACHE_DIR".into(), folder("uv")),
                ("UV_TOOL_DIR".into(), folder("uv-tools"))
            ]
        );
    }

    #[test]
    fn other_programs_and_those_with_a_cache_in_their_config_have_none() {
        let home = tempfile::tempdir().unwrap();
        let of = |command: &Command| PackageCache::find(command, Path::new("/"), Some(home.path())).is_some();
        assert!(!of(&Command::new("node")));
        assert!(!of(&Command::new("npx").env("npm_config_cache", "/srv/cache")));
    }
}
