//! The names of files, for a value that is read from one.

use std::{fs, path::Path};

use super::candidate::Candidate;

/// The most entries of a folder that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// The files and folders whose path begins like this, with `before` in front. A folder ends in `/`. Hidden ones are offered once their dot
/// is typed, as shells do.
pub(super) fn beginning_with(before: &str, path: &str) -> Vec<Candidate> {
    let (folder, begun) = path
        .rsplit_once('/')
        .map_or(("", path), |(_, begun)| (&path[..path.len() - begun.len()], begun));
    let read = fs::read_dir(if folder.is_empty() {
        Path::new(".")
    } else {
        Path::new(folder)
    });
    let mut found: Vec<Candidate> = Vec::new();
    // A folder that cannot be read only costs candidates.
    for entry in read.into_iter().flatten().flatten().take(MAX_ENTRIES) {
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| name.starts_with(begun)) else {
            continue;
        };
        if name.starts_with('.') && !begun.starts_with('.') {
            continue;
        }
        let end = if entry.path().is_dir() { "/" } else { "" };
        found.push(Candidate::new(format!("{before}{folder}{name}{end}"), ""));
    }
    found.sort_by(|a, b| a.value.cmp(&b.value));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_end_in_a_slash_and_hidden_names_need_their_dot() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_str().unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        for name in ["day one.txt", ".dark", "other"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = |begun: &str| -> Vec<String> {
            let found = beginning_with("a=@", &format!("{root}/{begun}"));
            found.into_iter().map(|one| one.value.replace(root, "")).collect()
        };
        assert_eq!(found("da"), ["a=@/data/", "a=@/day one.txt"]);
        assert_eq!(found(".d"), ["a=@/.dark"]);
        assert_eq!(found("").len(), 3);
        assert_eq!(found("missing/x").len(), 0);
    }
}
