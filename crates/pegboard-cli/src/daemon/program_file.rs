//! [`ProgramFile`]: which build of the program a process runs, so that a command notices a daemon whose program was replaced.

use std::{
    fs::Metadata,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::output::serialize_path;

/// A program's file, and what tells it from the one that takes its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ProgramFile {
    #[serde(serialize_with = "serialize_path")]
    pub(super) path: PathBuf,
    /// Its inode, length and time of change.
    stamp: String,
}

impl ProgramFile {
    /// The file of this process; `None` if it was removed or replaced meanwhile.
    pub(super) fn current() -> Option<Self> {
        Self::stat(&std::env::current_exe().ok()?)
    }

    fn stat(path: &Path) -> Option<Self> {
        let stamp = |found: Metadata| {
            let (changed, nanos) = (found.mtime(), found.mtime_nsec());
            format!("{}-{}-{changed}.{nanos}", found.ino(), found.len())
        };
        Some(Self {
            path: path.to_owned(),
            stamp: stamp(path.metadata().ok()?),
        })
    }

    /// Whether `newer`, which was looked at later, has taken the place of this file. Files at other paths never have, so that two installed
    /// programs do not replace each other's daemons in turn.
    pub(super) fn was_replaced_by(&self, newer: &Self) -> bool {
        self.path == newer.path && self.stamp != newer.stamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_by_another_at_its_path_only() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("pegboard"), folder.path().join("other"));
        std::fs::write(&path, "old").unwrap();
        std::fs::write(&other, "another").unwrap();
        let old = ProgramFile::stat(&path).unwrap();
        assert!(!old.was_replaced_by(&ProgramFile::stat(&path).unwrap()));
        assert!(!old.was_replaced_by(&ProgramFile::stat(&other).unwrap()));
        std::fs::rename(&other, &path).unwrap();
        assert!(old.was_replaced_by(&ProgramFile::stat(&path).unwrap()));
    }
}
