//! The file of `--out`, which gets what is for stdout.

use std::{
    fs::{self, OpenOptions},
    io,
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
