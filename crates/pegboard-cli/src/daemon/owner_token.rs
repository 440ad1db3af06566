//! The user's own token for the gateways that the user runs. It is made at the first start of one, and the user's commands find it by themselves.
//!
//! It is in the folder of the sockets, which only the user can enter, and which a sandboxed server cannot read.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rustix::fs::OFlags;

use super::folder::{self, FolderError, user};

/// The name of the file.
const FILE: &str = "owner.token";
/// How tokens of Pegboard begin, so that people and scanners recognise them.
const PREFIX: &str = "pgb_";
/// Random bytes of a token: 256 bits.
const RANDOM: usize = 32;
/// Longer than any token.
const MAX_BYTES: u64 = 1024;
/// How often the file is looked for again while others replace it.
const MAX_ATTEMPTS: usize = 10;

/// The token, and where it is.
#[derive(Debug)]
pub(crate) struct OwnerToken {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

impl OwnerToken {
    /// The user's token, which is made if there is none.
    pub(crate) fn open_or_create() -> Result<Self, String> {
        let folder = folder::open(true).map_err(|error| match error {
            FolderError::Missing(why) | FolderError::Unsafe(why) => why,
        })?;
        let path = folder.join(FILE);
        let failed = |error: io::Error| format!("{} cannot be used: {error}", path.display());
        for _ in 0..MAX_ATTEMPTS {
            if let Ok(text) = read(&path) {
                return Ok(Self { path, text });
            }
            create(&folder, &path).map_err(failed)?;
        }
        Err(failed(io::ErrorKind::AlreadyExists.into()))
    }

    /// The user's token, if a gateway has made one.
    pub(super) fn find() -> Option<String> {
        read(&folder::open(false).ok()?.join(FILE)).ok()
    }
}

/// A new token.
pub(crate) fn generate() -> Result<String, getrandom::Error> {
    let mut bytes = [0; RANDOM];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(bytes)))
}

/// Reads a token that only the user can have written and read.
fn read(path: &Path) -> io::Result<String> {
    let file = options().read(true).open(path)?;
    let found = file.metadata()?;
    let is_private = found.is_file() && found.uid() == user() && found.mode() & 0o077 == 0;
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text)?;
    match text.trim() {
        token if is_private && token.len() > PREFIX.len() && token.starts_with(PREFIX) => Ok(token.to_owned()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Writes a new token, whole or not at all. One that cannot be used is replaced; of two that are made at once, the first stays.
fn create(folder: &Path, path: &Path) -> io::Result<()> {
    let is_unusable = path.symlink_metadata().is_ok() && read(path).is_err();
    let token = generate().map_err(io::Error::other)?;
    let new = folder.join(format!("{FILE}.{}", std::process::id()));
    let _ = fs::remove_file(&new);
    let written = write(&new, &token).and_then(|()| match is_unusable {
        true => fs::rename(&new, path),
        false => match fs::hard_link(&new, path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        },
    });
    let _ = fs::remove_file(&new);
    written
}

fn write(path: &Path, token: &str) -> io::Result<()> {
    let mut file: File = options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(format!("{token}\n").as_bytes())?;
    file.sync_all()
}

/// Follows no link, and does not wait for the other end of a pipe.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    options.custom_flags(flags);
    options
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_token_is_made_once_and_only_its_user_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        create(folder.path(), &path).unwrap();
        let token = read(&path).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        create(folder.path(), &path).unwrap();
        assert_eq!(read(&path).unwrap(), token);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_token_that_others_may_know_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        create(folder.path(), &path).unwrap();
        let token = read(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(read(&path).is_err());
        create(folder.path(), &path).unwrap();
        assert_ne!(read(&path).unwrap(), token);

        let elsewhere = folder.path().join("elsewhere");
        fs::rename(&path, &elsewhere).unwrap();
        symlink(&elsewhere, &path).unwrap();
        assert!(read(&path).is_err());
        create(folder.path(), &path).unwrap();
        assert!(!path.is_symlink() && read(&path).is_ok());
        fs::write(&path, "").unwrap();
        create(folder.path(), &path).unwrap();
        assert!(read(&path).is_ok());
    }

    #[test]
    fn tokens_have_a_prefix_and_are_never_the_same() {
        let (first, second) = (generate().unwrap(), generate().unwrap());
        assert!(first.starts_with(PREFIX));
        assert_eq!(first.len(), PREFIX.len() + 43);
        assert_ne!(first, second);
    }
}
