//! TLS to a server.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use pegboard_store::{Key, Limits, RedisStore, Store, StoreAddress, StoreError};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

use super::{Server, connect, server::free_port};
use crate::fixture::{LONG, bytes, text};

struct Certificates {
    folder: tempfile::TempDir,
}

impl Certificates {
    /// Writes an authority, and a certificate for 127.0.0.1 that it has signed.
    fn write() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut authority = CertificateParams::new(Vec::<String>::new()).unwrap();
        // A certificate whose issuer has its own name would be taken for self-signed.
        authority.distinguished_name.push(DnType::CommonName, "authority");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let leaf = leaf.signed_by(&key, &authority).unwrap();
        let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text).unwrap();
        write("ca.pem", authority.pem());
        write("cert.pem", leaf.pem());
        write("key.pem", key.serialize_pem());
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

async fn serve(certificates: &Certificates, asks_clients: &str) -> (Server, u16) {
    let port = free_port();
    let path = |name| certificates.path(name).display().to_string();
    let server = Server::start(&[
        "--tls-port",
        &port.to_string(),
        "--tls-cert-file",
        &path("cert.pem"),
        "--tls-key-file",
        &path("key.pem"),
        "--tls-ca-cert-file",
        &path("ca.pem"),
        "--tls-auth-clients",
        asks_clients,
    ])
    .await;
    (server, port)
}

fn address(port: u16, ca: &Path) -> String {
    format!("rediss://127.0.0.1:{port}?ca={}", ca.display())
}

#[tokio::test]
async fn a_server_is_checked_with_the_given_certificates() {
    let certificates = Certificates::write();
    let (_server, port) = serve(&certificates, "no").await;
    let store = connect(&address(port, &certificates.path("ca.pem"))).await.unwrap();
    store.put(&Key::new("k", &[]), bytes("x"), LONG).await.unwrap();
    assert_eq!(text(&store, &Key::new("k", &[])).await.as_deref(), Some("x"));
    let others = Certificates::write();
    for address in [
        address(port, &others.path("ca.pem")),
        format!("rediss://127.0.0.1:{port}"),
    ] {
        let error = connect(&address).await.unwrap_err();
        assert!(matches!(&error, StoreError::Unreachable { .. }), "{error}");
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("certificate"), "{cause}");
    }
}

#[tokio::test]
async fn a_server_may_want_the_certificate_of_the_client() {
    let certificates = Certificates::write();
    let (_server, port) = serve(&certificates, "yes").await;
    let without = address(port, &certificates.path("ca.pem"));
    assert!(connect(&without).await.is_err());
    let (cert, key) = (certificates.path("cert.pem"), certificates.path("key.pem"));
    let with = format!("{without}&cert={}&key={}", cert.display(), key.display());
    connect(&with).await.unwrap();
}

#[tokio::test]
async fn a_server_without_tls_is_an_error_with_it_and_the_other_way_round() {
    let certificates = Certificates::write();
    let (server, port) = serve(&certificates, "no").await;
    let limits = Limits {
        time: Duration::from_millis(200),
        ..Limits::default()
    };
    for address in [
        // The server waits for the rest of what it takes for a command.
        address(server.port, &certificates.path("ca.pem")),
        format!("redis://127.0.0.1:{port}"),
    ] {
        let address = StoreAddress::parse(&address).unwrap();
        assert!(RedisStore::connect(&address, limits).await.is_err());
    }
}

#[tokio::test]
async fn a_file_without_certificates_is_an_error() {
    let certificates = Certificates::write();
    let none = certificates.path("none.pem");
    for ca in [&none, &certificates.path("key.pem")] {
        let error = connect(&address(1, ca)).await.unwrap_err();
        assert!(matches!(&error, StoreError::BadAddress { .. }), "{error}");
        assert!(error.to_string().contains(&ca.display().to_string()), "{error}");
    }
}
