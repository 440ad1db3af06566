//! What a secure connection trusts and shows, for HTTP and WebSocket alike.

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

use super::DialError;
use crate::config::Tls;

/// The system's certificate authorities. They are read once: that takes longer than most connections, and a hundred servers
/// would keep a hundred copies.
static SYSTEM: OnceLock<Arc<RootCertStore>> = OnceLock::new();

/// Reads what a connection to `url` needs from the disk, off the async threads and only once. Without this, the first
/// secure connection does it.
pub(super) async fn prepare(url: &Url) {
    // Not a lock: those who come second wait without a thread.
    static READ: tokio::sync::OnceCell<()> = tokio::sync::OnceCell::const_new();
    if matches!(url.scheme(), "https" | "wss") && SYSTEM.get().is_none() {
        let read = || async {
            // It fails only when the runtime ends, and then nothing is connected any more.
            let _ = tokio::task::spawn_blocking(|| drop(system())).await;
        };
        READ.get_or_init(read).await;
    }
}

/// The settings for connections to one server. A connection that is not secure costs nothing of what they stand for.
pub(super) fn client_config(tls: &Tls) -> Result<ClientConfig, DialError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| DialError::Tls(error.to_string()))?;
    let builder = if tls.insecure {
        tracing::warn!("the server's certificate is not checked, because its config says so");
        let verifier = Verifier {
            provider,
            is_checking: false,
        };
        builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
    } else if let Some(ca) = &tls.ca {
        builder.with_root_certificates(roots_and(ca)?)
    } else {
        let verifier = Verifier {
            provider,
            is_checking: true,
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

/// The system's certificate authorities. A system without any is no error: the connection will say so.
fn system() -> Arc<RootCertStore> {
    let read = || {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    };
    SYSTEM.get_or_init(read).clone()
}

/// The system's certificate authorities and those of a config.
fn roots_and(ca: &Path) -> Result<Arc<RootCertStore>, DialError> {
    let mut roots = system().as_ref().clone();
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

/// Trusts what the system trusts, which is looked up with the first certificate, or any certificate. Signatures are always
/// checked.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    is_checking: bool,
}

impl Verifier {
    /// Trusts what the system trusts; none if that is nothing.
    fn system(&self) -> Option<&'static WebPkiServerVerifier> {
        static SYSTEM: OnceLock<Option<Arc<WebPkiServerVerifier>>> = OnceLock::new();
        let build = || {
            WebPkiServerVerifier::builder_with_provider(system(), self.provider.clone())
                .build()
                .ok()
        };
        SYSTEM.get_or_init(build).as_deref()
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
        if !self.is_checking {
            return Ok(ServerCertVerified::assertion());
        }
        let verifier = self.system().ok_or(CertificateError::UnknownIssuer)?;
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
