//! Reads config files and environment files, and refuses those whose content another user controls.

use std::{
    fs::{File, Metadata, OpenOptions},
    io::Read as _,
    path::Path,
};

use pegboard_base::{diagnosis::Code, private_file};

/// Whether a symbolic link at the end of a path is followed, and to what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// To any file, also a pipe: the person names it.
    FollowToAny,
    /// To a regular file.
    Follow,
    /// To a regular file whose content a person approves, so that its folder does not count.
    FollowApproved,
    Refuse,
}

/// Why a file is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileError {
    pub(super) message: String,
    pub(super) hint: Option<String>,
    pub(super) code: Code,
}

impl FileError {
    fn new(message: impl Into<String>, hint: Option<&str>) -> Self {
        Self {
            message: message.into(),
            hint: hint.map(str::to_owned),
            code: Code::ConfigUnreadable,
        }
    }
}

/// Reads at most one byte more than `max_bytes`, so that the caller sees that a file is too long.
pub(super) fn read(path: &Path, max_bytes: usize, links: Links) -> Result<String, FileError> {
    let unreadable = |error: std::io::Error| FileError::new(format!("cannot be read: {error}"), None);
    if links == Links::Refuse && path.is_symlink() {
        let hint = "name the file that it points to with `--config FILE`";
        return Err(FileError::new("is a symbolic link", Some(hint)));
    }
    let file = open(path, links).map_err(unreadable)?;
    let meta = file.metadata().map_err(unreadable)?;
    if links != Links::FollowToAny && !meta.is_file() {
        return Err(FileError::new("is not a regular file", None));
    }
    refuse_foreign(&meta)?;
    // A pipe or a terminal is not found in a folder where it could be replaced. A project file is approved by its content.
    if meta.is_file() && matches!(links, Links::Follow | Links::FollowToAny) {
        refuse_open_folders(path)?;
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut bytes).map_err(unreadable)?;
    String::from_utf8(bytes).map_err(|_| FileError::new("is not UTF-8 text", Some("save the file as UTF-8")))
}

fn open(path: &Path, links: Links) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    match links {
        Links::FollowToAny => {}
        Links::Follow | Links::FollowApproved => private_file::do_not_wait(&mut options),
        Links::Refuse => private_file::refuse_links(&mut options),
    }
    options.open(path)
}

/// Fails if another user than the superuser owns the file or may write to it.
///
/// The group may write to it if it is the user's private group: where every user has a group of his own, files are created that way.
#[cfg(unix)]
fn refuse_foreign(meta: &Metadata) -> Result<(), FileError> {
    if is_of_other(meta) {
        let hint = "`chown` it, or copy it";
        return Err(FileError::new("belongs to another user", Some(hint)));
    }
    // A pipe or a terminal has no content that could be changed beforehand.
    match meta.is_file() && is_open_to_others(meta) {
        true => Err(FileError {
            code: Code::ConfigWritable,
            ..FileError::new(
                "other users may write to it and so choose what is started",
                Some("`chmod go-w` it"),
            )
        }),
        false => Ok(()),
    }
}

/// The most links that are followed, as in the kernel.
#[cfg(unix)]
const MAX_LINKS: usize = 40;

/// Fails if another user may replace the file, or a link that leads to it. The folder above counts too: another one of the user's folders could be
/// put in the place of the folder.
#[cfg(unix)]
fn refuse_open_folders(path: &Path) -> Result<(), FileError> {
    let unreadable = |error: std::io::Error| FileError::new(format!("cannot be read: {error}"), None);
    let mut path = std::path::absolute(path).map_err(unreadable)?;
    for _ in 0..MAX_LINKS {
        for folder in path.ancestors().skip(1).take(2) {
            refuse_open_folder(folder)?;
        }
        let entry = path.symlink_metadata().map_err(unreadable)?;
        if !entry.is_symlink() {
            return Ok(());
        }
        if is_of_other(&entry) {
            let hint = "remove it, and name the file that it points to";
            return Err(FileError::new("is a symbolic link of another user", Some(hint)));
        }
        let target = path.read_link().map_err(unreadable)?;
        path = path.parent().unwrap_or(&path).join(target);
    }
    Err(FileError::new("is behind too many symbolic links", None))
}

/// Fails if another user may replace files in a folder. In one with the sticky bit, only the owner of a file may.
#[cfg(unix)]
fn refuse_open_folder(folder: &Path) -> Result<(), FileError> {
    use std::os::unix::fs::MetadataExt as _;

    let unreadable = |error: std::io::Error| FileError::new(format!("cannot be read: {error}"), None);
    let meta = folder.metadata().map_err(unreadable)?;
    let shown = folder.display();
    if is_of_other(&meta) {
        let message = format!("is in {shown}, a folder of another user, who could replace it");
        return Err(FileError::new(message, Some("move it to a folder of your own")));
    }
    let is_sticky = meta.mode() & 0o1000 != 0;
    if is_sticky || !is_open_to_others(&meta) || is_read_only(folder) {
        return Ok(());
    }
    let message = format!("is in {shown}, where other users may replace it and so choose what is started");
    Err(FileError::new(message, Some(&format!("`chmod go-w {shown}`"))))
}

#[cfg(not(unix))]
fn refuse_open_folders(_: &Path) -> Result<(), FileError> {
    Ok(())
}

/// Whether nobody can change anything in a folder, as in the volumes of a cluster, whose modes say nothing.
#[cfg(unix)]
fn is_read_only(folder: &Path) -> bool {
    let found = rustix::fs::statvfs(folder);
    found.is_ok_and(|found| found.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

/// Whether another user than the superuser owns a file.
#[cfg(unix)]
fn is_of_other(meta: &Metadata) -> bool {
    let owner = std::os::unix::fs::MetadataExt::uid(meta);
    owner != 0 && owner != rustix::process::geteuid().as_raw()
}

/// Whether other users may write to a file or folder.
#[cfg(unix)]
fn is_open_to_others(meta: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let is_private_group = meta.gid() == group.as_raw() && group.as_raw() == user.as_raw();
    meta.mode() & 0o002 != 0 || (meta.mode() & 0o020 != 0 && !is_private_group)
}

#[cfg(not(unix))]
fn refuse_foreign(_: &Metadata) -> Result<(), FileError> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn message(read: Result<String, FileError>) -> String {
        read.map_or_else(|error| error.message, |text| format!("read: {text}"))
    }

    #[test]
    fn a_file_that_others_may_write_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "text").unwrap();
        for (mode, is_read) in [
            (0o600, true),
            (0o644, true),
            (0o444, true),
            (0o666, false),
            (0o602, false),
        ] {
            fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
            let got = message(read(file.path(), 10, Links::Follow));
            assert_eq!(got == "read: text", is_read, "{mode:o}: {got}");
        }
    }

    #[test]
    fn the_group_may_write_only_if_it_is_the_users_own() {
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o660)).unwrap();
        let is_private = user.as_raw() == group.as_raw();
        assert_eq!(read(file.path(), 10, Links::Follow).is_ok(), is_private);
        if user.is_root() {
            std::os::unix::fs::chown(file.path(), None, Some(12_345)).unwrap();
            let got = message(read(file.path(), 10, Links::Follow));
            assert!(got.starts_with("other users may write"), "{got}");
        }
    }

    #[test]
    fn a_file_of_another_user_is_not_read() {
        // Only the superuser can create one.
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::os::unix::fs::chown(file.path(), Some(12_345), None).unwrap();
        assert_eq!(message(read(file.path(), 10, Links::Follow)), "belongs to another user");
    }

    #[test]
    fn a_file_in_a_folder_that_others_may_write_is_not_read() {
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("pegboard");
        fs::create_dir(&folder).unwrap();
        let file = folder.join("file");
        fs::write(&file, "text").unwrap();
        let chmod = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        for (mode, is_read) in [
            (0o700, true),
            (0o755, true),
            (0o1777, true),
            (0o777, false),
            (0o703, false),
        ] {
            chmod(&folder, mode);
            for links in [Links::Follow, Links::FollowToAny] {
                let got = message(read(&file, 10, links));
                assert_eq!(got == "read: text", is_read, "{mode:o}: {got}");
                assert!(is_read || got.contains("other users may replace it"), "{got}");
            }
            // The content of a project file is what a person approves.
            for links in [Links::Refuse, Links::FollowApproved] {
                assert_eq!(message(read(&file, 10, links)), "read: text");
            }
        }
        // Others could put another one of the user's folders in its place.
        chmod(&folder, 0o700);
        chmod(outer.path(), 0o777);
        assert!(read(&file, 10, Links::Follow).is_err());
    }

    #[test]
    fn a_link_leads_only_to_files_that_others_cannot_replace() {
        let folder = tempfile::tempdir().unwrap();
        let (open, link) = (folder.path().join("open"), folder.path().join("link"));
        fs::create_dir(&open).unwrap();
        fs::write(open.join("target"), "text").unwrap();
        std::os::unix::fs::symlink("open/target", &link).unwrap();
        assert_eq!(message(read(&link, 10, Links::Follow)), "read: text");
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        let got = message(read(&link, 10, Links::Follow));
        assert!(got.contains("other users may replace it"), "{got}");
        // Only the superuser can give a link away.
        if rustix::process::geteuid().is_root() {
            fs::set_permissions(&open, fs::Permissions::from_mode(0o700)).unwrap();
            std::os::unix::fs::lchown(&link, Some(12_345), None).unwrap();
            let got = message(read(&link, 10, Links::Follow));
            assert_eq!(got, "is a symbolic link of another user");
        }
    }

    #[test]
    fn a_link_is_followed_only_where_that_is_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        fs::write(&target, "text").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert_eq!(message(read(&link, 10, Links::Follow)), "read: text");
        assert_eq!(message(read(&link, 10, Links::Refuse)), "is a symbolic link");
        assert_eq!(message(read(&target, 10, Links::Refuse)), "read: text");
    }
}
