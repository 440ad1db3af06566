//! [`StoreKey`]: the key that the files of the store are encrypted with.

use std::{fmt::Debug, fs::File, io::Read as _, path::PathBuf};

use pegboard_config::StateKey;

/// The largest file that is read as a key.
const MAX_KEY_FILE: u64 = 4096;

/// A key outside of the store, such as one in the keyring of the operating system.
pub trait StoreKey: Debug + Send + Sync + 'static {
    /// The key; `None` if there is none on this machine, so that the files are not encrypted. Called once for each file that is read or written,
    /// on a blocking thread. An error means that there is a key that cannot be had at the moment.
    fn key(&self) -> Result<Option<[u8; 32]>, String>;

    /// Whether there is a key already. It creates none. A file that is not encrypted is not taken then: another program may have written it.
    fn is_there(&self) -> Result<bool, String> {
        self.key().map(|key| key.is_some())
    }

    /// Whether files are encrypted. It creates no key: one that is made with the first file counts.
    fn encrypts(&self) -> Result<bool, String> {
        self.key().map(|key| key.is_some())
    }
}

/// No key: the files are protected by their permissions only.
#[derive(Debug, Clone, Copy)]
pub struct PlainText;

impl StoreKey for PlainText {
    fn key(&self) -> Result<Option<[u8; 32]>, String> {
        Ok(None)
    }
}

/// A key in a file: a secret that is mounted into a container, or a credential of systemd. The file is read each time, so it can be mounted
/// later, and one that is missing or wrong is an error and never a reason to write plain text.
#[derive(Debug, Clone)]
pub struct FileKey(pub PathBuf);

impl StoreKey for FileKey {
    fn key(&self) -> Result<Option<[u8; 32]>, String> {
        let path = self.0.display();
        let mut text = String::new();
        File::open(&self.0)
            .and_then(|file| file.take(MAX_KEY_FILE).read_to_string(&mut text))
            .map_err(|error| format!("the key of the token store, `{path}`, cannot be read: {error}"))?;
        let key = StateKey::parse(&text).map_err(|error| format!("the key of the token store, `{path}`, {error}"))?;
        Ok(Some(*key.expose()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_is_read_each_time_and_a_wrong_one_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let key = FileKey(folder.path().join("key"));
        assert!(key.key().unwrap_err().contains("cannot be read"));
        std::fs::write(&key.0, "short\n").unwrap();
        assert!(key.key().unwrap_err().contains("32 bytes in base64"));
        std::fs::write(&key.0, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n").unwrap();
        let bytes = std::array::from_fn(|n| u8::try_from(n).unwrap());
        assert_eq!(key.key(), Ok(Some(bytes)));
        assert_eq!(key.encrypts(), Ok(true));
    }
}
