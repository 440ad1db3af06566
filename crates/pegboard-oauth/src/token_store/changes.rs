//! [`Changes`]: which accounts of a store have changed, and when, so that nobody has to read those that have not.

use std::{collections::HashMap, path::Path, time::SystemTime};

use pegboard_base::sync::Mutex;
use tokio::sync::watch;

/// The most accounts whose changes are told apart. Beyond, every change counts for all.
const MAX_NOTED: usize = 20_000;

/// The changes of a store, numbered.
#[derive(Debug, Default)]
pub(super) struct Changes {
    number: watch::Sender<u64>,
    noted: Mutex<Noted>,
}

#[derive(Debug, Default)]
struct Noted {
    /// The last change of each account, by the name of its file without the ending.
    last: HashMap<String, u64>,
    /// Up to this change, all accounts count as changed.
    all: u64,
    /// The files at the last look.
    seen: Option<Files>,
}

/// The files of accounts, by their names without the ending.
pub(super) type Files = HashMap<String, Stamp>;

/// Differs when a file is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
    number: u64,
}

impl Changes {
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.number.subscribe()
    }

    /// The number of the last change.
    pub(super) fn last(&self) -> u64 {
        *self.number.borrow()
    }

    /// Whether an account may have changed after the change with this number.
    pub(super) fn has_changed_since(&self, name: &str, number: u64) -> bool {
        let noted = self.noted.lock();
        noted.all > number || noted.last.get(name).is_some_and(|last| *last > number)
    }

    /// Notes the change of an account.
    pub(super) fn note(&self, name: &str) {
        let mut noted = self.noted.lock();
        let number = self.last() + 1;
        noted.note(name.to_owned(), number);
        self.number.send_replace(number);
    }

    /// Takes the first look at the files. What has changed before is not known, so that all accounts count as changed once.
    pub(super) fn begin(&self, files: Option<Files>) {
        let mut noted = self.noted.lock();
        if noted.seen.is_none() {
            let number = self.last() + 1;
            noted.seen = Some(files.unwrap_or_default());
            noted.all = number;
            // Nobody has to look: this is no change.
            self.number.send_if_modified(|last| {
                *last = number;
                false
            });
        }
    }

    /// Notes what has changed since the last look.
    pub(super) fn look(&self, files: Option<Files>) {
        let mut noted = self.noted.lock();
        let number = self.last() + 1;
        match (files, noted.seen.take()) {
            (Some(files), Some(seen)) => {
                let is_new = |(name, stamp): &(&String, &Stamp)| seen.get(*name) != Some(stamp);
                let new = files.iter().filter(is_new).map(|(name, _)| name.clone());
                let gone = seen.keys().filter(|name| !files.contains_key(*name)).cloned();
                let changed: Vec<String> = new.chain(gone).collect();
                noted.seen = Some(files);
                if changed.is_empty() {
                    return;
                }
                changed.into_iter().for_each(|name| noted.note(name, number));
            }
            (files, _) => {
                noted.seen = files;
                noted.all = number;
            }
        }
        self.number.send_replace(number);
    }
}

impl Noted {
    fn note(&mut self, name: String, number: u64) {
        if self.last.len() >= MAX_NOTED && !self.last.contains_key(&name) {
            self.last.clear();
            self.all = number;
        }
        self.last.insert(name, number);
    }
}

/// The files of accounts in a folder; `None` if there are too many.
pub(super) fn files_in(folder: &Path) -> Option<Files> {
    let mut files = Files::new();
    // Without the folder there are none.
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".json")) else {
            continue;
        };
        if files.len() >= MAX_NOTED {
            return None;
        }
        if let Ok(meta) = entry.metadata() {
            let stamp = Stamp {
                modified: meta.modified().ok(),
                length: meta.len(),
                number: number_of(&meta),
            };
            files.insert(name.to_owned(), stamp);
        }
    }
    Some(files)
}

#[cfg(unix)]
fn number_of(meta: &std::fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(meta)
}

#[cfg(not(unix))]
fn number_of(_: &std::fs::Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, u64)]) -> Option<Files> {
        let stamp = |number| Stamp {
            modified: None,
            length: 1,
            number,
        };
        Some(
            list.iter()
                .map(|(name, number)| ((*name).to_owned(), stamp(*number)))
                .collect(),
        )
    }

    #[test]
    fn a_look_at_the_folder_tells_which_accounts_have_changed() {
        let changes = Changes::default();
        let mut waiting = changes.subscribe();
        changes.begin(files(&[("a", 1), ("b", 2)]));
        assert!(!waiting.has_changed().unwrap());
        assert!(
            changes.has_changed_since("a", 0),
            "what was before the first look is not known"
        );
        let first = changes.last();
        changes.look(files(&[("a", 1), ("b", 2)]));
        assert!(!waiting.has_changed().unwrap());
        changes.look(files(&[("a", 3), ("c", 4)]));
        assert!(waiting.has_changed().unwrap());
        waiting.mark_unchanged();
        let changed = |name, since| changes.has_changed_since(name, since);
        assert!(changed("a", first) && changed("b", first) && changed("c", first));
        assert!(!changed("d", first) && !changed("a", changes.last()));
        let second = changes.last();
        changes.note("d");
        assert!(waiting.has_changed().unwrap());
        assert!(changed("d", second) && !changed("a", second));
        changes.look(None);
        assert!(changed("a", second + 1), "too many files to tell them apart");
    }

    #[test]
    fn the_number_of_accounts_that_are_told_apart_is_bounded() {
        let changes = Changes::default();
        for number in 0..=MAX_NOTED {
            changes.note(&number.to_string());
        }
        assert!(changes.noted.lock().last.len() <= MAX_NOTED);
        assert!(changes.has_changed_since("other", 1));
        let last = changes.last();
        assert!(!changes.has_changed_since("other", last));
    }
}
