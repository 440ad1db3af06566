//! TLS to a server.

use std::{path::Path, sync::Arc};

use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use tokio_rustls::TlsConnector;

use crate::{address::TlsFiles, error::StoreError};

/// Reads the certificates that servers are checked with, and those of this client.
pub(super) fn connector(files: &TlsFiles) -> Result<TlsConnector, StoreError> {
    build(files).map_err(|reason| StoreError::BadAddress { reason })
}

fn build(files: &TlsFiles) -> Result<TlsConnector, String> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots(files.ca.as_deref())?);
    let config = match &files.client {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let shown = key.display();
            let chain = read_certificates(certificate)?;
            let key =
                PrivateKeyDer::from_pem_file(key).map_err(|error| format!("`{shown}` is no key in PEM: {error}"))?;
            let wrong = |error| format!("the client's certificate and key cannot be used: {error}");
            builder.with_client_auth_cert(chain, key).map_err(wrong)?
        }
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

fn roots(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match file {
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Some(file) => {
            for certificate in read_certificates(file)? {
                let wrong = |error| format!("a certificate in `{}` cannot be used: {error}", file.display());
                roots.add(certificate).map_err(wrong)?;
            }
        }
    }
    Ok(roots)
}

fn read_certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let wrong = |error| format!("`{}` has no certificates in PEM: {error}", file.display());
    let certificates = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = certificates.map_err(wrong)?;
    match certificates.is_empty() {
        true => Err(format!("`{}` has no certificates in PEM", file.display())),
        false => Ok(certificates),
    }
}
