//! Reading and replacing config files.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use super::lock::EditLock;

/// The largest file that is read. Hosts keep more than settings in some of theirs.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// As many links as Linux follows.
const MAX_LINKS: usize = 40;

/// The content of a file, `None` if it does not exist.
pub(super) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut options = OpenOptions::new();
    options.read(true);
    // Opening a pipe waits until another process writes to it.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0),
    );
    let file = match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut content = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("it is larger than 64 MB"));
    }
    Ok(Some(content))
}

/// Replaces a file that still has the content `before`, or makes one where there was none.
pub(super) fn write(path: &Path, before: Option<&[u8]>, content: &[u8]) -> io::Result<()> {
    let target = target(path)?;
    let folder = folder(&target);
    let known = match fs::metadata(&target) {
        Ok(meta) => Some(meta),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    refuse_read_only(known.as_ref())?;
    if known.is_none() {
        create_folder(folder)?;
    }
    let _lock = EditLock::take(folder)?;
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let draft = folder.join(format!(".{name}.{}.tmp", std::process::id()));
    let written = create(&draft).and_then(|mut file| {
        file.write_all(content)?;
        if let Some(known) = &known {
            keep_owner_and_mode(&file, known)?;
        }
        file.sync_all()?;
        // As late as possible, so that little time is left for a change by another process.
        if read(&target)?.as_deref() != before {
            return Err(io::Error::other(
                "another process has changed the file meanwhile; try again",
            ));
        }
        fs::rename(&draft, &target)
    });
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written?;
    // The name is stored with the folder. Some file systems cannot sync it, and the file is replaced already.
    #[cfg(unix)]
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Keeps other processes from editing a file, and makes the folder that it is to be in. There is no lock on what cannot be written anyway.
pub(super) fn lock(path: &Path) -> io::Result<EditLock> {
    let Ok(target) = target(path) else {
        return Ok(EditLock::NONE);
    };
    let folder = folder(&target);
    if check_writable(path).is_err() || create_folder(folder).is_err() {
        return Ok(EditLock::NONE);
    }
    EditLock::take(folder)
}

/// Says whether a file can be replaced, without a change to anything.
pub(super) fn check_writable(path: &Path) -> io::Result<()> {
    let target = target(path)?;
    refuse_read_only(fs::metadata(&target).ok().as_ref())?;
    // The nearest folder that is there: the others would be made in it.
    #[cfg(unix)]
    if let Some(folder) = folder(&target).ancestors().find(|folder| folder.is_dir()) {
        use rustix::fs::{Access, access};

        access(folder, Access::WRITE_OK | Access::EXEC_OK)
            .map_err(|error| io::Error::other(format!("its folder cannot be written to: {error}")))?;
    }
    Ok(())
}

fn refuse_read_only(known: Option<&fs::Metadata>) -> io::Result<()> {
    match known.is_some_and(|meta| meta.permissions().readonly()) {
        true => Err(io::Error::other("the file is read-only")),
        false => Ok(()),
    }
}

/// Writes a copy beside the file.
pub(super) fn back_up(path: &Path, content: &[u8]) -> io::Result<PathBuf> {
    let target = target(path)?;
    let time = jiff::Zoned::now().strftime("%Y%m%d-%H%M%S").to_string();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // A second change within one second has a backup of its own.
    for number in 1..100 {
        let suffix = if number == 1 {
            String::new()
        } else {
            format!("-{number}")
        };
        let copy = path.with_file_name(format!("{name}.bak-{time}{suffix}"));
        let mut file = match create(&copy) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            created => created?,
        };
        file.write_all(content)?;
        keep_owner_and_mode(&file, &fs::metadata(&target)?)?;
        file.sync_all()?;
        return Ok(copy);
    }
    Err(io::Error::other("there are too many"))
}

/// What the path names, after all symbolic links; also of a link to a file that does not exist.
fn target(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&target) {
            Ok(next) => target = folder(&target).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Creates a folder that only its owner may read: config files may hold secrets.
fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(unix)]
fn keep_owner_and_mode(file: &File, known: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, fchown};

    let new = file.metadata()?;
    if (new.uid(), new.gid()) != (known.uid(), known.gid()) {
        fchown(file, Some(known.uid()), Some(known.gid()))
            .map_err(|error| io::Error::new(error.kind(), format!("its owner cannot be kept: {error}")))?;
    }
    file.set_permissions(known.permissions())
}

#[cfg(not(unix))]
fn keep_owner_and_mode(file: &File, known: &fs::Metadata) -> io::Result<()> {
    file.set_permissions(known.permissions())
}
