//! Finds the symbolic links that a path leads through.

use std::path::{Component, Path, PathBuf};

/// The most links that the kernel follows.
const MAX_LINKS: usize = 40;

/// The symbolic links that an absolute path leads through, with their targets.
pub(super) fn links_on(path: &Path) -> Vec<(PathBuf, PathBuf)> {
    let mut links = Vec::new();
    let mut path = normalize(path);
    while links.len() < MAX_LINKS {
        let ancestors: Vec<&Path> = path.ancestors().collect();
        // The outermost one first: the folders above it are no links.
        let first = ancestors.into_iter().rev().find_map(|link| {
            let target = link.read_link().ok()?;
            Some((link.to_owned(), target))
        });
        let Some((link, target)) = first else { break };
        let around = link.parent().unwrap_or(Path::new("/"));
        let rest = path.strip_prefix(&link).unwrap_or(Path::new(""));
        path = normalize(&around.join(&target).join(rest));
        links.push((link, target));
    }
    links
}

/// The path without `..`, which is right only for those whose folders before `..` are no links.
fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn each_link_on_the_way_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/real")).unwrap();
        fs::create_dir_all(root.join("b")).unwrap();
        symlink("../a/inner", root.join("b/outer")).unwrap();
        symlink(root.join("a/real"), root.join("a/inner")).unwrap();
        let links = links_on(&root.join("b/outer/file"));
        let expected = [
            (root.join("b/outer"), PathBuf::from("../a/inner")),
            (root.join("a/inner"), root.join("a/real")),
        ];
        assert_eq!(links, expected);
        assert_eq!(links_on(&root.join("a/real")), []);
    }

    #[test]
    fn a_circle_of_links_ends() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().canonicalize().unwrap().join("link");
        symlink(&link, &link).unwrap();
        assert_eq!(links_on(&link).len(), MAX_LINKS);
    }
}
