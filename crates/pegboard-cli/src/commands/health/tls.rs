//! TLS of a health check: whom it trusts.

use std::{io, path::PathBuf, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::commands::server_tls::Verifier;

/// Whom a health check trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ProbeTrust {
    /// The authorities that the system trusts.
    System,
    /// The certificate in a file, whatever its name and dates are: the file is that of the gateway itself, whose address is not its name.
    Only(PathBuf),
}

/// Shakes hands with a server of this name.
pub(super) async fn connect(stream: TcpStream, host: String, trust: &ProbeTrust) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(host).map_err(io::Error::other)?;
    let provider = Arc::new(default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let config = match trust {
        ProbeTrust::System => {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            config.with_root_certificates(roots).with_no_client_auth()
        }
        ProbeTrust::Only(file) => {
            let certificate = CertificateDer::from_pem_file(file)
                .map_err(|error| io::Error::other(format!("{} has no certificate: {error}", file.display())))?;
            let verifier = Verifier {
                only: Some(certificate),
                provider,
            };
            let config = config.dangerous().with_custom_certificate_verifier(Arc::new(verifier));
            config.with_no_client_auth()
        }
    };
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}
