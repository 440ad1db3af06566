//! TLS settings of HTTP and WebSocket connections: trusted roots and client certificates.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject};
use url::Url;

use super::dial_error::DialError;
use crate::config::Tls;

/// The system's root certificates. They are loaded once per process: loading takes longer than most connections, and a hundred servers
/// would hold a hundred copies.
static SYSTEM_ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();

/// Loads the system's root certificates on a blocking thread, if `url` needs TLS. Otherwise the first TLS handshake would load them on an
/// async thread.
pub(super) async fn prepare(url: &Url) {
    // An async cell: tasks that wait for the load do not block a thread.
    static LOADED: tokio::sync::OnceCell<()> = tokio::sync::OnceCell::const_new();
    if matches!(url.scheme(), "https" | "wss") && SYSTEM_ROOTS.get().is_none() {
        let load = || async {
            // Fails only when the runtime shuts down.
            let _ = tokio::task::spawn_blocking(|| drop(system_roots())).await;
        };
        LOADED.get_or_init(load).await;
    }
}

/// The TLS settings for connections to one server. Creating them does not load the system's roots unless `tls.ca` is set.
pub(super) fn client_config(tls: &Tls) -> Result<ClientConfig, DialError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| DialError::Tls(error.to_string()))?;
    let builder = if tls.insecure {
        tracing::warn!("the server's certificate is not checked, because its config says so");
        let verifier = Verifier {
            provider,
            verifies: false,
        };
        builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
    } else if let Some(ca) = &tls.ca {
        builder.with_root_certificates(roots_with(ca)?)
    } else {
        let verifier = Verifier {
            provider,
            verifies: true,
        };
        builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
    };
    match &tls.client_cert {
        None => Ok(builder.with_no_client_auth()),
        Some(ours) => builder
            .with_client_auth_cert(certificates(&ours.cert)?, key(&ours.key)?)
            .map_err(|error| {
                DialError::Tls(format!(
                    "the certificate {} cannot be used: {error}",
                    ours.cert.display()
                ))
            }),
    }
}

/// The system's root certificates. A system without any is not an error here, but makes the handshake fail.
fn system_roots() -> Arc<RootCertStore> {
    let load = || {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    };
    SYSTEM_ROOTS.get_or_init(load).clone()
}

/// The system's root certificates and those of the file `ca`.
fn roots_with(ca: &Path) -> Result<Arc<RootCertStore>, DialError> {
    let mut roots = system_roots().as_ref().clone();
    for certificate in certificates(ca)? {
        roots
            .add(certificate)
            .map_err(|error| DialError::Tls(format!("a certificate in {} cannot be used: {error}", ca.display())))?;
    }
    Ok(Arc::new(roots))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, DialError> {
    let read = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(certificates) if certificates.is_empty() => {
            Err(DialError::Tls(format!("{} holds no certificate", file.display())))
        }
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(DialError::Tls(format!(
            "certificates cannot be read from {}: {error}",
            file.display()
        ))),
    }
}

fn key(file: &Path) -> Result<PrivateKeyDer<'static>, DialError> {
    PrivateKeyDer::from_pem_file(file)
        .map_err(|error| DialError::Tls(format!("a private key cannot be read from {}: {error}", file.display())))
}

/// Verifies server certificates against the system's roots, or accepts any certificate. It loads the roots with the first certificate.
/// Signatures are always verified.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    verifies: bool,
}

impl Verifier {
    /// A verifier with the system's roots; `None` if there are none.
    fn system_verifier(&self) -> Option<&'static WebPkiServerVerifier> {
        static VERIFIER: OnceLock<Option<Arc<WebPkiServerVerifier>>> = OnceLock::new();
        let build = || {
            WebPkiServerVerifier::builder_with_provider(system_roots(), self.provider.clone())
                .build()
                .ok()
        };
        VERIFIER.get_or_init(build).as_deref()
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if !self.verifies {
            return Ok(ServerCertVerified::assertion());
        }
        let verifier = self.system_verifier().ok_or(CertificateError::UnknownIssuer)?;
        verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
