//! Walks through a folder and searches its files. Symbolic links are not followed, so the walk cannot leave the
//! folder. Entries, files, depth, bytes, output and time are limited.

use std::fs::{self, DirEntry, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

/// Directory entries, including skipped ones.
const MAX_ENTRIES: usize = 50_000;
const MAX_FILES: usize = 5_000;
const MAX_DEPTH: usize = 32;
const MAX_FILE: u64 = 1024 * 1024;
const MAX_READ: u64 = 64 * 1024 * 1024;
const MAX_OUTPUT: usize = 64 * 1024;
/// Characters shown of a matching line.
const MAX_LINE: usize = 200;
/// Bounds the time of a call on a slow disk.
const MAX_TIME: Duration = Duration::from_secs(10);

/// Folders of dependencies and build output, whose matches would crowd out all others.
const SKIPPED: [&str; 2] = ["node_modules", "target"];

#[derive(Debug)]
pub(super) struct Query {
    text: String,
    ignore_case: bool,
    max_matches: usize,
}

/// The result of a walk.
#[derive(Debug, Default)]
pub(super) struct WalkResult {
    /// `path:line: text`, ordered by path.
    pub(super) lines: Vec<String>,
    /// Files read.
    pub(super) files: usize,
    /// Files that were binary, too large or unreadable.
    pub(super) skipped: usize,
    /// The limit that ended the walk early, if one did.
    pub(super) stopped_by: Option<&'static str>,
}

impl Query {
    pub(super) fn new(text: &str, ignore_case: bool, max_matches: usize) -> Self {
        let text = if ignore_case {
            text.to_lowercase()
        } else {
            text.to_owned()
        };
        Self {
            text,
            ignore_case,
            max_matches,
        }
    }

    fn matches(&self, line: &str) -> bool {
        if self.ignore_case {
            line.to_lowercase().contains(&self.text)
        } else {
            line.contains(&self.text)
        }
    }
}

/// Searches every file under `root`, which must be a canonical path.
pub(super) fn walk(root: &Path, query: &Query, is_cancelled: &dyn Fn() -> bool) -> WalkResult {
    let walk = Walk {
        root,
        query,
        is_cancelled,
        start: Instant::now(),
        found: WalkResult::default(),
    };
    walk.run()
}

struct Walk<'a> {
    root: &'a Path,
    query: &'a Query,
    is_cancelled: &'a dyn Fn() -> bool,
    start: Instant,
    found: WalkResult,
}

impl Walk<'_> {
    fn run(mut self) -> WalkResult {
        let (mut entries_left, mut bytes_left, mut output) = (MAX_ENTRIES, MAX_READ, 0);
        // Folders still to visit, with their depth.
        let mut folders = vec![(self.root.to_owned(), 0)];
        while let Some((folder, depth)) = folders.pop() {
            let (files, inner) = list(&folder, &mut entries_left);
            for path in files {
                if let Some(limit) = self.limit(entries_left, bytes_left, output) {
                    self.found.stopped_by = Some(limit);
                    return self.found;
                }
                self.file(&path, &mut bytes_left, &mut output);
            }
            if depth < MAX_DEPTH {
                folders.extend(inner.into_iter().rev().map(|folder| (folder, depth + 1)));
            }
            if let Some(limit) = self.limit(entries_left, bytes_left, output) {
                self.found.stopped_by = Some(limit);
                return self.found;
            }
        }
        self.found
    }

    fn limit(&self, entries_left: usize, bytes_left: u64, output: usize) -> Option<&'static str> {
        if (self.is_cancelled)() {
            Some("cancelled")
        } else if self.found.lines.len() >= self.query.max_matches {
            Some("`max_matches` reached")
        } else if output >= MAX_OUTPUT {
            Some("the result would be longer than 64 KiB")
        } else if entries_left == 0 || self.found.files >= MAX_FILES || bytes_left == 0 {
            Some("the folder is too large to be searched as a whole")
        } else if self.start.elapsed() >= MAX_TIME {
            Some("the search took longer than 10 s")
        } else {
            None
        }
    }

    fn file(&mut self, path: &Path, bytes_left: &mut u64, output: &mut usize) {
        let Some(content) = read(path) else {
            self.found.skipped += 1;
            return;
        };
        self.found.files += 1;
        *bytes_left = bytes_left.saturating_sub(content.len() as u64);
        let shown = path
            .strip_prefix(self.root)
            .unwrap_or(path)
            .display()
            .to_string()
            .replace('\\', "/");
        for (number, line) in content.lines().enumerate() {
            if !self.query.matches(line) {
                continue;
            }
            let line = format!("{shown}:{}: {}", number + 1, shorten(line));
            *output += line.len();
            self.found.lines.push(line);
            if self.found.lines.len() >= self.query.max_matches || *output >= MAX_OUTPUT {
                return;
            }
        }
    }
}

/// The regular files and the folders of a folder, each sorted by name. Links are left out.
fn list(folder: &Path, entries_left: &mut usize) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let (mut files, mut folders) = (Vec::new(), Vec::new());
    let Ok(entries) = fs::read_dir(folder) else {
        return (files, folders);
    };
    for entry in entries.flatten() {
        if *entries_left == 0 {
            break;
        }
        *entries_left -= 1;
        let Ok(kind) = entry.file_type() else { continue };
        if is_skipped(&entry) {
            continue;
        } else if kind.is_file() {
            files.push(entry.path());
        } else if kind.is_dir() {
            folders.push(entry.path());
        }
    }
    files.sort_unstable();
    folders.sort_unstable();
    (files, folders)
}

/// Skips hidden files, because they often contain secrets, and `.git` is noise.
fn is_skipped(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let name = name.to_string_lossy();
    name.starts_with('.') || SKIPPED.contains(&name.as_ref())
}

/// The text of a file, unless it is too large, binary or unreadable.
fn read(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    // Metadata of the open file and not of the path, which may name another file by now.
    let about = file.metadata().ok()?;
    if !about.is_file() || about.len() > MAX_FILE {
        return None;
    }
    let mut bytes = Vec::with_capacity(about.len() as usize);
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > MAX_FILE || bytes.contains(&0) {
        return None;
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Truncates a line for one line of output.
fn shorten(line: &str) -> String {
    let line = line.trim();
    let mut shown: String = line
        .chars()
        .take(MAX_LINE)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if line.chars().nth(MAX_LINE).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    fn search(folder: &TempDir, text: &str, ignore_case: bool, max_matches: usize) -> WalkResult {
        let root = folder.path().canonicalize().unwrap();
        walk(&root, &Query::new(text, ignore_case, max_matches), &|| false)
    }

    #[test]
    fn lines_are_found_with_path_and_number() {
        let folder = folder(&[("b.txt", b"one\r\n  needle here\nNEEDLE"), ("a/deep/c.md", b"needle")]);
        let found = search(&folder, "needle", false, 10);
        assert_eq!(found.lines, ["b.txt:2: needle here", "a/deep/c.md:1: needle"]);
        assert_eq!((found.files, found.skipped, found.stopped_by), (2, 0, None));
        assert_eq!(search(&folder, "Needle", true, 10).lines.len(), 3);
    }

    #[test]
    fn hidden_binary_large_and_foreign_files_are_skipped() {
        let large = vec![b'x'; MAX_FILE as usize + 1];
        let folder = folder(&[
            (".env", b"needle"),
            (".git/config", b"needle"),
            ("node_modules/a/index.js", b"needle"),
            ("target/debug/a.txt", b"needle"),
            ("binary.bin", b"needle\0"),
            ("large.txt", &large),
            ("latin1.txt", b"n\xe9e needle"),
        ]);
        let found = search(&folder, "needle", false, 10);
        assert_eq!(found.lines, ["latin1.txt:1: n\u{fffd}e needle"]);
        assert_eq!((found.files, found.skipped), (1, 2));
    }

    #[cfg(unix)]
    #[test]
    fn no_link_leads_out_of_the_folder() {
        let outside = folder(&[("secret.txt", b"needle")]);
        let inside = folder(&[("plain.txt", b"hay")]);
        std::os::unix::fs::symlink(outside.path(), inside.path().join("way-out")).unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret.txt"), inside.path().join("link.txt")).unwrap();
        std::os::unix::fs::symlink(inside.path(), inside.path().join("circle")).unwrap();
        let found = search(&inside, "needle", false, 10);
        assert_eq!(found.lines, [""; 0]);
        assert_eq!(found.files, 1);
    }

    #[test]
    fn matches_lines_and_cancellation_are_limits() {
        let long = "needle ".repeat(100);
        let folder = folder(&[("a.txt", long.as_bytes()), ("b.txt", b"needle\nneedle\nneedle")]);
        let found = search(&folder, "needle", false, 2);
        assert_eq!(
            (found.lines.len(), found.stopped_by),
            (2, Some("`max_matches` reached"))
        );
        assert!(found.lines[0].ends_with('…'));
        let root = folder.path().canonicalize().unwrap();
        let found = walk(&root, &Query::new("needle", false, 2), &|| true);
        assert_eq!((found.lines.len(), found.stopped_by), (0, Some("cancelled")));
    }
}
