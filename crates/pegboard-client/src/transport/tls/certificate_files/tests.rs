//! Files that are replaced, whole or in part.

use std::{fs, path::PathBuf};

use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::ring;
use tempfile::TempDir;

use super::*;

/// Certificates and their keys, in files that the test replaces.
struct Folder {
    folder: TempDir,
    tls: Tls,
}

struct Pair {
    cert: String,
    key: String,
}

fn pair() -> Pair {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let cert = params.self_signed(&key).unwrap().pem();
    Pair {
        cert,
        key: key.serialize_pem(),
    }
}

impl Folder {
    fn new(first: &Pair) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let tls = Tls {
            ca: Some(path("ca.pem")),
            client_cert: Some(ClientCert::new(path("me.pem"), path("me.key"))),
            ..Tls::default()
        };
        let made = Self { folder, tls };
        made.replace("ca.pem", &pair().cert);
        made.replace("me.pem", &first.cert);
        made.replace("me.key", &first.key);
        made
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn replace(&self, name: &str, text: &str) {
        private_file::replace(&self.path(name), text.as_bytes()).unwrap();
    }

    fn load(&self) -> CertificateFiles {
        CertificateFiles::load(&self.tls, Arc::new(ring::default_provider())).unwrap()
    }
}

fn shown(files: &CertificateFiles) -> Vec<u8> {
    files.resolve(&[], &[]).unwrap().cert[0].to_vec()
}

fn der(pair: &Pair) -> Vec<u8> {
    CertificateDer::from_pem_slice(pair.cert.as_bytes()).unwrap().to_vec()
}

#[test]
fn a_new_pair_is_used_once_both_files_are_there() {
    let (old, new) = (pair(), pair());
    let folder = Folder::new(&old);
    let files = folder.load();
    assert_eq!(files.check(), Check::Unchanged);
    assert_eq!(shown(&files), der(&old));

    folder.replace("me.pem", &new.cert);
    let Check::Kept(problem) = files.check() else {
        panic!("half a pair was used");
    };
    assert!(problem.contains("me.pem") && problem.contains("me.key"), "{problem}");
    assert_eq!(shown(&files), der(&old));

    folder.replace("me.key", &new.key);
    assert_eq!(files.check(), Check::Reloaded);
    assert_eq!(shown(&files), der(&new));
    assert_eq!(files.check(), Check::Unchanged);
}

#[test]
fn files_that_cannot_be_used_leave_the_old_ones_in_place() {
    let (old, new) = (pair(), pair());
    let folder = Folder::new(&old);
    let files = folder.load();
    for (name, text) in [
        ("me.pem", &new.cert[..new.cert.len() / 2]),
        ("me.pem", ""),
        ("me.key", "hello"),
        ("ca.pem", "hello"),
    ] {
        let before = fs::read_to_string(folder.path(name)).unwrap();
        folder.replace(name, text);
        assert!(
            matches!(files.check(), Check::Kept(problem) if problem.contains(name)),
            "{name}"
        );
        assert_eq!(shown(&files), der(&old));
        folder.replace(name, &before);
        assert_eq!(files.check(), Check::Reloaded, "{name}");
    }
    fs::remove_file(folder.path("me.key")).unwrap();
    assert!(matches!(files.check(), Check::Kept(_)));
    assert_eq!(shown(&files), der(&old));
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_swapped_by_a_link_is_noticed() {
    let (old, new) = (pair(), pair());
    let folder = tempfile::tempdir().unwrap();
    for (name, pair) in [("1", &old), ("2", &new)] {
        let place = folder.path().join(name);
        fs::create_dir(&place).unwrap();
        fs::write(place.join("me.pem"), &pair.cert).unwrap();
        fs::write(place.join("me.key"), &pair.key).unwrap();
    }
    let data = folder.path().join("data");
    std::os::unix::fs::symlink("1", &data).unwrap();
    let tls = Tls {
        client_cert: Some(ClientCert::new(data.join("me.pem"), data.join("me.key"))),
        ..Tls::default()
    };
    let files = CertificateFiles::load(&tls, Arc::new(ring::default_provider())).unwrap();
    assert_eq!(shown(&files), der(&old));

    let next = folder.path().join("next");
    std::os::unix::fs::symlink("2", &next).unwrap();
    fs::rename(&next, &data).unwrap();
    assert_eq!(files.check(), Check::Reloaded);
    assert_eq!(shown(&files), der(&new));
}

#[tokio::test(start_paused = true)]
async fn the_files_are_looked_at_once_per_second() {
    let folder = Folder::new(&pair());
    let files = Arc::new(folder.load());
    assert!(!files.begin_check());
    tokio::time::advance(CHECK_INTERVAL).await;
    assert!(files.begin_check());
    assert!(!files.begin_check());
    tokio::time::advance(CHECK_INTERVAL).await;
    assert!(!files.begin_check(), "the first look has not ended");
}
