//! The bounds of the folder that stores catalogs.

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use pegboard_base::private_file;

/// The most files that are kept: far more than a person configures servers.
const MAX_FILES: usize = 256;
/// The most bytes in all files together.
const MAX_TOTAL: u64 = 64 << 20;
/// The age at which the draft of a file has lost its writer.
const DRAFT: Duration = Duration::from_secs(3600);

/// A stored catalog.
struct Entry {
    path: PathBuf,
    modified: SystemTime,
    bytes: u64,
}

/// Removes the files that were written longest ago, except `newest`, until the others are within the bounds. Another process may do the same.
pub(super) fn remove_oldest(folder: &Path, newest: &Path) {
    private_file::remove_old_drafts(folder, DRAFT);
    let found = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut entries: Vec<Entry> = found.filter_map(|found| read_entry(found.path())).collect();
    entries.sort_by_key(|entry| (entry.path != newest, std::cmp::Reverse(entry.modified)));
    let mut total = 0_u64;
    for (at, entry) in entries.iter().enumerate() {
        total = total.saturating_add(entry.bytes);
        if at > 0 && (at >= MAX_FILES || total > MAX_TOTAL) {
            let _ = std::fs::remove_file(&entry.path);
        }
    }
}

fn read_entry(path: PathBuf) -> Option<Entry> {
    if path.extension().is_none_or(|extension| extension != "json") {
        return None;
    }
    let meta = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some(Entry {
        modified: meta.modified().ok()?,
        bytes: meta.len(),
        path,
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    fn write(folder: &Path, name: &str, bytes: u64, age: u64) -> PathBuf {
        let path = folder.join(name);
        let file = File::create(&path).unwrap();
        file.set_len(bytes).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
        path
    }

    #[test]
    fn of_too_many_files_the_oldest_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let number = MAX_FILES as u64;
        let files: Vec<PathBuf> = (0..number + 2)
            .map(|at| write(folder.path(), &format!("s{at}.json"), 1, 1 + at))
            .collect();
        let other = write(folder.path(), "notes.txt", 1, 1_000_000);
        // Even if its time is older than that of the others.
        let newest = write(folder.path(), "newest.json", 1, 1_000_000);
        remove_oldest(folder.path(), &newest);
        let left: Vec<&PathBuf> = files.iter().filter(|file| file.exists()).collect();
        assert_eq!(left, files[..MAX_FILES - 1].iter().collect::<Vec<_>>());
        assert!(newest.exists() && other.exists());
    }

    #[test]
    fn of_too_many_bytes_the_oldest_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let old = write(folder.path(), "old.json", MAX_TOTAL / 2, 20);
        let young = write(folder.path(), "young.json", MAX_TOTAL / 2 - 1, 10);
        let newest = write(folder.path(), "newest.json", MAX_TOTAL / 2, 0);
        remove_oldest(folder.path(), &newest);
        assert!(newest.exists() && young.exists() && !old.exists());
    }
}
