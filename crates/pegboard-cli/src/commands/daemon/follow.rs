//! [`LogTail`]: the lines of a log file, and those that are added to it.

use std::{
    fs::File,
    io::{Read as _, Seek as _, SeekFrom},
    path::{Path, PathBuf},
    time::Duration,
};

/// How often new lines are looked for.
const POLL: Duration = Duration::from_millis(200);

/// The most that is read at once. A daemon keeps its log shorter.
const MAX_READ: u64 = 8 * 1024 * 1024;

/// A log file, and how far it was read.
pub(super) struct LogTail {
    path: PathBuf,
    read: u64,
    /// The beginning of a line whose end is not written yet.
    partial: Vec<u8>,
}

impl LogTail {
    pub(super) fn open(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            read: 0,
            partial: Vec::new(),
        }
    }

    /// The lines since the last read; none if there is no file.
    pub(super) fn read_new(&mut self) -> Vec<String> {
        let Ok(mut file) = File::open(&self.path) else {
            return Vec::new();
        };
        let length = file.metadata().map_or(0, |found| found.len());
        if length < self.read {
            // It was emptied.
            self.read = 0;
            self.partial.clear();
        }
        self.read = self.read.max(length.saturating_sub(MAX_READ));
        let mut new = Vec::new();
        let read = file
            .seek(SeekFrom::Start(self.read))
            .and_then(|_| file.take(MAX_READ).read_to_end(&mut new));
        self.read += read.unwrap_or(0) as u64;
        self.partial.append(&mut new);
        let Some(end) = self.partial.iter().rposition(|byte| *byte == b'\n') else {
            return Vec::new();
        };
        let rest = self.partial.split_off(end + 1);
        let whole = std::mem::replace(&mut self.partial, rest);
        String::from_utf8_lossy(&whole).lines().map(str::to_owned).collect()
    }

    /// Waits for new lines.
    pub(super) async fn wait_for_new(&mut self) -> Vec<String> {
        loop {
            tokio::time::sleep(POLL).await;
            let lines = self.read_new();
            if !lines.is_empty() {
                return lines;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn lines_are_read_when_they_are_whole_and_again_after_the_file_was_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut tail = LogTail::open(&path);
        assert!(tail.read_new().is_empty());
        let mut file = File::options().append(true).create(true).open(&path).unwrap();
        write!(file, "one\ntwo").unwrap();
        assert_eq!(tail.read_new(), ["one"]);
        writeln!(file, " is longer").unwrap();
        assert_eq!(tail.read_new(), ["two is longer"]);
        assert!(tail.read_new().is_empty());
        file.set_len(0).unwrap();
        writeln!(file, "three").unwrap();
        assert_eq!(tail.read_new(), ["three"]);
    }
}
