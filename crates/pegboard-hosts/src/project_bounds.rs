//! Keeps what is written for a project inside of it: a repository may have links that lead to the user's own files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{
    host_error::{HostError, HostErrorKind},
    user_file::working_folder,
};

/// The most links that are followed, as in the kernel.
const MAX_LINKS: usize = 40;

/// Fails if a file of the project of the working folder is, after all links, outside of it.
pub(crate) fn check(file: &Path) -> Result<(), HostError> {
    check_in(file, &working_folder())
}

fn check_in(file: &Path, folder: &Path) -> Result<(), HostError> {
    let repository = || folder.ancestors().find(|folder| folder.join(".git").exists());
    // A project file may be in a folder above.
    let around = || folder.ancestors().find(|folder| file.starts_with(folder));
    let root = repository().or_else(around).unwrap_or(folder);
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    match resolve_links(file) {
        Some(real) if real.starts_with(&root) => Ok(()),
        real => {
            let target = real.map(|real| format!(" to {}", real.display())).unwrap_or_default();
            Err(HostError {
                message: format!(
                    "{} leads{target}, out of the project {}",
                    file.display(),
                    root.display()
                ),
                hint: Some(
                    "nothing was written; remove the symbolic link, or edit the file that it points to".to_owned(),
                ),
                kind: HostErrorKind::Refused,
            })
        }
    }
}

/// What a path names after all links, also if the file or folders of it do not exist yet.
fn resolve_links(file: &Path) -> Option<PathBuf> {
    let mut path = std::path::absolute(file).ok()?;
    'links: for _ in 0..MAX_LINKS {
        if let Ok(real) = path.canonicalize() {
            return Some(real);
        }
        for ancestor in path.ancestors() {
            let rest = path.strip_prefix(ancestor).ok()?.to_owned();
            if let Ok(target) = fs::read_link(ancestor) {
                path = ancestor.parent()?.join(target).join(rest);
                continue 'links;
            }
            if let Ok(real) = ancestor.canonicalize() {
                let is_plain = |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
                return rest.components().all(is_plain).then(|| real.join(rest));
            }
        }
        return None;
    }
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_out_of_the_project_is_not_written_through() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("repo");
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::create_dir_all(root.join("inner")).unwrap();
        fs::create_dir(outer.path().join("home")).unwrap();
        fs::write(outer.path().join("home/mcp.json"), "{}").unwrap();
        symlink("../home/mcp.json", root.join("file.json")).unwrap();
        symlink("../home/not-yet.json", root.join("dangling.json")).unwrap();
        symlink("../home", root.join(".cursor")).unwrap();
        symlink("../nowhere", root.join(".gone")).unwrap();
        symlink("plain.json", root.join("own.json")).unwrap();
        for (name, is_inside) in [
            ("plain.json", true),
            ("own.json", true),
            (".vscode/mcp.json", true),
            ("inner/../plain.json", true),
            ("file.json", false),
            ("dangling.json", false),
            (".cursor/mcp.json", false),
            (".gone/deep/mcp.json", false),
            ("../home/mcp.json", false),
        ] {
            for folder in [&root, &root.join("inner")] {
                let checked = check_in(&root.join(name), folder);
                assert_eq!(checked.is_ok(), is_inside, "{name}");
            }
        }
    }
}
