//! Reads the gateway's certificate and key, and warns of what is unsafe or will not work for long.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use pegboard::config::ServeTls;
use pegboard_gateway::Tls;

use crate::{exit::Exit, settings::Complaint};

/// The longest file of a certificate chain or a key.
const MAX_BYTES: u64 = 1 << 20;

/// A certificate that expires sooner than this is mentioned.
const SOON: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// A certificate, and what people should know of it.
pub(super) struct Loaded {
    pub(super) tls: Tls,
    pub(super) warnings: Vec<String>,
}

/// Reads the files of a certificate.
pub(super) fn load(files: &ServeTls) -> Result<Loaded, Complaint> {
    let chain = read(&files.cert)?;
    let key = read(&files.key)?;
    let tls = Tls::from_pem(&chain, &key).map_err(|error| {
        let (cert, key) = (files.cert.display(), files.key.display());
        complaint(format!("the certificate in {cert} with the key in {key}: {error}"))
    })?;
    let mut warnings = Vec::new();
    if is_readable_by_others(&files.key) {
        let key = files.key.display();
        warnings.push(format!(
            "the private key {key} can be read by other users: `chmod 600 {key}`"
        ));
    }
    warnings.extend(
        tls.expires()
            .and_then(|expires| expiry_warning(&files.cert, expires, SystemTime::now())),
    );
    Ok(Loaded { tls, warnings })
}

fn read(path: &Path) -> Result<Vec<u8>, Complaint> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    let read = read.and_then(|length| match length as u64 > MAX_BYTES {
        true => Err(io::Error::other("it is longer than 1 MiB")),
        false => Ok(()),
    });
    read.map_err(|error| complaint(format!("cannot read {}: {error}", path.display())))?;
    Ok(bytes)
}

fn complaint(message: String) -> Complaint {
    Complaint {
        message,
        hint: Some(
            "`[serve.tls]` names two PEM files: `cert` with the certificate chain, and `key` with its private key"
                .to_owned(),
        ),
        exit: Exit::Usage,
    }
}

#[cfg(unix)]
fn is_readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    std::fs::metadata(path)
        .is_ok_and(|metadata| is_exposed(path, metadata.mode(), metadata.uid(), credentials.as_deref()))
}

/// Whether a file of this mode and owner can be read by users that it is not meant for. The credentials that systemd passes to a service belong
/// to root and its group, with an access list that lets only the service's user read them.
#[cfg(unix)]
fn is_exposed(path: &Path, mode: u32, owner: u32, credentials: Option<&Path>) -> bool {
    let is_credential = owner == 0
        && mode & 0o037 == 0
        && credentials.is_some_and(|folder| folder.is_absolute() && path.parent() == Some(folder));
    mode & 0o077 != 0 && !is_credential
}

#[cfg(not(unix))]
fn is_readable_by_others(_: &Path) -> bool {
    false
}

fn expiry_warning(path: &Path, expires: SystemTime, now: SystemTime) -> Option<String> {
    let at = pegboard::Timestamp::from(expires);
    let path = path.display();
    match expires.duration_since(now) {
        Err(_) => Some(format!(
            "the certificate in {path} has expired at {at}: clients will refuse it"
        )),
        Ok(left) if left < SOON => Some(format!("the certificate in {path} expires at {at}")),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn only_credentials_of_systemd_may_be_readable_by_their_group() {
        let (key, folder) = (
            Path::new("/run/credentials/x.service/key"),
            "/run/credentials/x.service",
        );
        let folder = Some(Path::new(folder));
        assert!(!is_exposed(key, 0o100_440, 0, folder));
        assert!(!is_exposed(key, 0o100_400, 0, folder));
        assert!(is_exposed(key, 0o100_440, 0, None), "not a credential");
        assert!(is_exposed(key, 0o100_440, 1000, folder), "not from systemd");
        assert!(is_exposed(key, 0o100_444, 0, folder), "readable by all");
        assert!(is_exposed(key, 0o100_460, 0, folder), "writable by the group");
        let outside = Path::new("/run/credentials/x.service/../key");
        assert!(is_exposed(outside, 0o100_440, 0, folder));
        assert!(is_exposed(Path::new("/etc/key"), 0o100_440, 0, folder));
        assert!(!is_exposed(Path::new("/etc/key"), 0o100_600, 0, None));
    }

    #[test]
    fn a_certificate_that_has_expired_or_will_soon_is_mentioned() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
        let day = Duration::from_secs(24 * 60 * 60);
        let warning = |expires| expiry_warning(Path::new("c.pem"), expires, now);
        assert!(
            warning(now - day)
                .unwrap()
                .contains("has expired at 2001-09-08T01:46:40Z")
        );
        assert!(warning(now + 13 * day).unwrap().contains("expires at 2001-09-22"));
        assert_eq!(warning(now + 15 * day), None);
    }
}
