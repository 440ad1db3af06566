//! [`TokenFile`]: a bearer token in a file that another program replaces, such as the projected token of a Kubernetes service account.

use std::{
    fs::OpenOptions,
    future::Future,
    io::{self, Read as _},
    path::{Path, PathBuf},
    pin::Pin,
    time::Duration,
};

use crate::credential::{Credential, CredentialError, CredentialRequest, Credentials, Remedy};
use pegboard_base::private_file;

/// How long a token is used before the file is read again.
const REUSE: Duration = Duration::from_secs(1);
/// When a file that could not be used is read again: who replaces it may be about to write it.
const RETRY: Duration = Duration::from_secs(1);
/// The longest token.
const MAX_TOKEN: u64 = 16 << 10;

/// Reads the token from a file, at most once per second, and again when the server refuses it.
#[derive(Debug)]
pub(super) struct TokenFile {
    path: PathBuf,
}

impl TokenFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path }
    }
}

impl Credentials for TokenFile {
    fn credential<'a>(
        &'a self,
        _: CredentialRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<Credential, CredentialError>> + Send + 'a>> {
        let path = self.path.clone();
        Box::pin(async move {
            let shown = path.display().to_string();
            let read = tokio::task::spawn_blocking(move || read(&path)).await;
            let token = read.unwrap_or_else(|failure| Err(io::Error::other(failure)));
            let token = token.map_err(|error| {
                let hint = format!("write a token to `{shown}`, or correct `auth.bearer_file` of the server");
                CredentialError::new(format!("the token file `{shown}` cannot be used: {error}")).with_remedy(
                    Remedy::Wait {
                        after: RETRY,
                        hint: Some(hint),
                    },
                )
            })?;
            Ok(Credential::bearer(token).valid_for(REUSE))
        })
    }
}

fn read(path: &Path) -> io::Result<String> {
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what);
    let mut options = OpenOptions::new();
    options.read(true);
    private_file::do_not_wait(&mut options);
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(bad("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_TOKEN + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_TOKEN {
        return Err(bad("it is longer than 16 KiB"));
    }
    let text = String::from_utf8(bytes).map_err(|_| bad("it is not text"))?;
    match text.trim() {
        "" => Err(bad("it is empty")),
        token if token.chars().any(|c| c.is_control() || c.is_whitespace()) => {
            Err(bad("it has more than one line or word"))
        }
        token => Ok(token.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_token_and_its_last_line_end_does_not_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        for (content, expected) in [
            (&b"t0ken"[..], "t0ken"),
            (b"t0ken\r\n", "t0ken"),
            (b"", "it is empty"),
            (b" \n", "it is empty"),
            (b"a\nb", "it has more than one line or word"),
            (b"\xff", "it is not text"),
            (&vec![b'x'; 16_385], "it is longer than 16 KiB"),
        ] {
            std::fs::write(&path, content).unwrap();
            let got = read(&path).unwrap_or_else(|error| error.to_string());
            assert_eq!(got, expected);
        }
        assert_eq!(read(folder.path()).unwrap_err().to_string(), "it is not a regular file");
        assert!(read(&folder.path().join("missing")).is_err());
    }
}
