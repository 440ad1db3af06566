//! Files that only the user may read or change: stored catalogues, remembered protocol eras, the audit log.
//!
//! A symbolic link is never followed, and a file that another user owns or may write is refused: its content would be that user's choice.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Read, Write},
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

/// Reads a file of at most `max_bytes`.
pub fn read(path: &Path, max_bytes: usize) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let mut content = Vec::new();
    let limit = u64::try_from(max_bytes).unwrap_or(u64::MAX).saturating_add(1);
    file.take(limit).read_to_end(&mut content)?;
    if content.len() > max_bytes {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "it is larger than any that we write",
        ));
    }
    Ok(content)
}

/// Opens a file for reading.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// Opens a file for reading and appending. Creates the file and its folder if needed.
pub fn append(path: &Path) -> io::Result<File> {
    create_folder(parent(path))?;
    open_with(path, OpenOptions::new().read(true).append(true).create(true))
}

/// Opens a file for reading and writing. Creates the file and its folder if needed.
pub fn edit(path: &Path) -> io::Result<File> {
    create_folder(parent(path))?;
    open_with(
        path,
        OpenOptions::new().read(true).write(true).create(true).truncate(false),
    )
}

fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    // In a folder of others, another file of the user could be put in its place.
    if let Ok(folder) = parent(path).metadata() {
        refuse_foreign(&folder)?;
    }
    readable_by_owner(options);
    refuse_links(options);
    let file = options.open(path)?;
    let meta = file.metadata()?;
    // A pipe or a device would block, or do anything else.
    if !meta.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
    }
    refuse_foreign(&meta)?;
    Ok(file)
}

/// Replaces a file atomically: readers see the old content or the new one. Creates the folder if needed.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    write_and_rename(path, content, |_| Ok(()))
}

/// Like [`replace`], and the new content outlives a loss of power.
pub fn replace_durably(path: &Path, content: &[u8]) -> io::Result<()> {
    write_and_rename(path, content, File::sync_all)?;
    // The name of the file is stored with its folder. Some file systems cannot do that, and the file is replaced already.
    #[cfg(unix)]
    let _ = File::open(parent(path)).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Removes drafts of files in a folder whose writers were killed: those that are older than `age`.
pub fn remove_old_drafts(folder: &Path, age: std::time::Duration) {
    let is_old = |path: &Path| {
        let modified = path.symlink_metadata().and_then(|meta| meta.modified()).ok();
        modified
            .and_then(|time| time.elapsed().ok())
            .is_some_and(|since| since > age)
    };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "tmp") && is_old(&path) {
            let _ = std::fs::remove_file(&path);
        }
    }
}

fn write_and_rename(path: &Path, content: &[u8], finish: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    static DRAFTS: AtomicU64 = AtomicU64::new(0);
    create_folder(parent(path))?;
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    let draft = path.with_extension(format!("{}-{number}.tmp", std::process::id()));
    let result = create_new(&draft)
        .and_then(|mut file| file.write_all(content).and_then(|()| finish(&file)))
        .and_then(|()| std::fs::rename(&draft, path));
    if result.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    result
}

fn parent(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Creates the folder if needed, and refuses one in which another user may replace files.
fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    refuse_foreign(&folder.metadata()?)
}

/// Creates the file. One that exists was left behind by an earlier process with our process id.
fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    readable_by_owner(&mut options);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            std::fs::remove_file(path)?;
            options.open(path)
        }
        opened => opened,
    }
}

#[cfg(unix)]
fn readable_by_owner(options: &mut OpenOptions) {
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
}

#[cfg(not(unix))]
fn readable_by_owner(_: &mut OpenOptions) {}

/// Makes `open` fail on a symbolic link, and not wait for the other end of a pipe.
#[cfg(unix)]
pub fn refuse_links(options: &mut OpenOptions) {
    use rustix::fs::OFlags;

    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, i32::try_from(flags.bits()).unwrap_or(0));
}

#[cfg(not(unix))]
pub(crate) fn refuse_links(_: &mut OpenOptions) {}

/// Whether every user of this machine may read the file.
#[cfg(unix)]
pub fn is_readable_by_all(meta: &std::fs::Metadata) -> bool {
    std::os::unix::fs::MetadataExt::mode(meta) & 0o004 != 0
}

#[cfg(not(unix))]
pub(crate) fn is_readable_by_all(_: &std::fs::Metadata) -> bool {
    false
}

/// Makes `open` return at once for a pipe that has no writer.
#[cfg(unix)]
pub fn do_not_wait(options: &mut OpenOptions) {
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags);
}

#[cfg(not(unix))]
pub(crate) fn do_not_wait(_: &mut OpenOptions) {}

/// Fails if another user owns the file or folder, or may write to it.
#[cfg(unix)]
fn refuse_foreign(meta: &std::fs::Metadata) -> io::Result<()> {
    match foreign_control(meta) {
        None => Ok(()),
        Some(problem) => Err(io::Error::new(io::ErrorKind::PermissionDenied, problem)),
    }
}

#[cfg(not(unix))]
fn refuse_foreign(_: &std::fs::Metadata) -> io::Result<()> {
    Ok(())
}

/// Why another user controls the content of a file or folder, if one does. The superuser controls everything and does not count.
#[cfg(unix)]
pub fn foreign_control(meta: &std::fs::Metadata) -> Option<&'static str> {
    use std::os::unix::fs::MetadataExt as _;

    let owner = meta.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Some("it belongs to another user");
    }
    // Others may create files in a directory with the sticky bit, but not replace ours.
    let is_shared_directory = meta.is_dir() && meta.mode() & 0o1000 != 0;
    (meta.mode() & 0o022 != 0 && !is_shared_directory).then_some("other users may write to it")
}

#[cfg(not(unix))]
pub(crate) fn foreign_control(_: &std::fs::Metadata) -> Option<&'static str> {
    None
}

#[cfg(all(any(test, feature = "test-util"), unix))]
pub mod attacks;
#[cfg(test)]
mod tests;
