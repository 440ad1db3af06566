//! [`Sweeper`]: removes expired files, a few at a time.

use std::{
    fs::{self, ReadDir},
    io::Read as _,
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use pegboard_base::{private_file, sync::Mutex};

use super::{
    folder::{Folder, Sort},
    record,
};

/// One change in so many sweeps.
const INTERVAL: u32 = 8;

/// How many files one step looks at, more than are made between two steps.
const FILES: usize = 32;

/// How many folders one step goes through, most of which do not exist in a small store.
const FOLDERS: usize = 64;

/// The age at which the draft of a file belongs to a process that was killed.
const DRAFT_AGE: Duration = Duration::from_hours(1);

/// Goes through all files of a store in small steps, beside the changes that make more of them.
#[derive(Debug, Default)]
pub(super) struct Sweeper {
    changes: AtomicU32,
    /// Where the last step ended; `None` while another thread takes a step.
    walk: Mutex<Option<Walk>>,
    has_begun: std::sync::atomic::AtomicBool,
}

/// A place in the folders of a store.
#[derive(Debug)]
struct Walk {
    folder: usize,
    files: Option<ReadDir>,
}

impl Sweeper {
    /// Takes a step, if enough has changed since the last one.
    pub(super) fn step(&self, folder: &Folder, now_micros: u64) {
        if !self.changes.fetch_add(1, Ordering::Relaxed).is_multiple_of(INTERVAL) {
            return;
        }
        let is_first = !self.has_begun.swap(true, Ordering::Relaxed);
        let begin = Walk {
            // Processes begin at different places, so that together they see more.
            folder: usize::try_from(std::process::id()).unwrap_or_default().wrapping_mul(37),
            files: None,
        };
        let walk = if is_first { Some(begin) } else { self.walk.lock().take() };
        if let Some(mut walk) = walk {
            walk.go_on(folder, now_micros);
            *self.walk.lock() = Some(walk);
        }
    }
}

impl Walk {
    fn go_on(&mut self, folder: &Folder, now_micros: u64) {
        let (mut files, mut folders) = (0, 0);
        while files < FILES && folders < FOLDERS {
            match self.files.as_mut().and_then(Iterator::next) {
                Some(Ok(file)) => {
                    files += 1;
                    remove_expired(folder, &file.path(), now_micros);
                }
                Some(Err(_)) | None => {
                    folders += 1;
                    self.folder = (self.folder + 1) % (256 * Sort::ALL.len());
                    self.files = fs::read_dir(folder.shelf(self.folder)).ok();
                }
            }
        }
    }
}

fn remove_expired(folder: &Folder, path: &Path, now_micros: u64) {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return;
    };
    if name.ends_with(".tmp") {
        let modified = path.symlink_metadata().and_then(|meta| meta.modified()).ok();
        let age = modified.and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age > DRAFT_AGE) {
            let _ = fs::remove_file(path);
        }
        return;
    }
    if !is_expired(path, now_micros) {
        return;
    }
    // Under the lock, it is the file that was looked at, or a newer one.
    let Some(_lock) = folder.try_lock_file(name) else {
        return;
    };
    if is_expired(path, now_micros) {
        let _ = fs::remove_file(path);
    }
}

fn is_expired(path: &Path, now_micros: u64) -> bool {
    let mut head = [0; record::HEAD];
    let read = private_file::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && record::expiry(&head).is_some_and(|expires| expires <= now_micros)
}
