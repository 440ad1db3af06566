//! The file of `--out`, which gets what is for stdout.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::Path,
};

/// Finds out whether a file can be written, before there is anything to write. It stays as it is.
pub(crate) fn check_out(path: Option<&Path>) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    can_be_written(path).map_err(|error| format!("{} cannot be written: {error}", path.display()))
}

fn can_be_written(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(known) if known.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(known) if known.is_file() => OpenOptions::new().append(true).open(path).map(drop),
        // A pipe waits for its reader until it is opened.
        Ok(_) => Ok(()),
        Err(_) => {
            OpenOptions::new().append(true).create(true).open(path)?;
            // Also what a link to nowhere names is as it was.
            fs::remove_file(fs::canonicalize(path)?)
        }
    }
}

/// Writes a file whole, or leaves what is there as it is: a full disk must not take the old content too.
pub(super) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let known = match fs::metadata(path) {
        Ok(known) if known.is_file() => Some(known),
        // A pipe or a device cannot be replaced.
        Ok(_) => return fs::write(path, bytes),
        // A link to nowhere stays, and what it names is made.
        Err(_) if path.is_symlink() => return fs::write(path, bytes),
        Err(_) => None,
    };
    let target = match known {
        // A link stays, and what it names is replaced.
        Some(_) => fs::canonicalize(path)?,
        None => path.to_path_buf(),
    };
    let Some(name) = target.file_name() else {
        return fs::write(path, bytes);
    };
    let draft = target.with_file_name(format!(".{}.{}.draft", name.to_string_lossy(), std::process::id()));
    let Ok(mut file) = OpenOptions::new().write(true).create_new(true).open(&draft) else {
        // A file can be writable in a folder that is not, or have a name that is too long to be lengthened.
        return fs::write(path, bytes);
    };
    let is_like_it = known.is_none_or(|known| keep_owner_and_mode(&file, &known).is_ok());
    let written = match is_like_it {
        true => file.write_all(bytes).and_then(|()| fs::rename(&draft, &target)),
        false => fs::write(path, bytes),
    };
    if written.is_err() || !is_like_it {
        // What is left is a draft.
        let _ = fs::remove_file(&draft);
    }
    written
}

fn keep_owner_and_mode(file: &File, known: &fs::Metadata) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, fchown};

        let own = file.metadata()?;
        if (own.uid(), own.gid()) != (known.uid(), known.gid()) {
            fchown(file, Some(known.uid()), Some(known.gid()))?;
        }
    }
    file.set_permissions(known.permissions())
}
