//! [`Verifier`]: decides whether a server's certificate proves what the config asks for.

use std::sync::{Arc, OnceLock};

use rustls::{
    CertificateError, DigitallySignedStruct, OtherError, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_cert_signed_by_trust_anchor,
    },
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    server::ParsedCertificate,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::{certificate_files::CertificateFiles, proof::Proof, system_roots::system_roots};
use pegboard_config::SpiffeId;

/// Verifies server certificates. Signatures of handshakes are always verified.
#[derive(Debug)]
pub(super) struct Verifier {
    provider: Arc<CryptoProvider>,
    trust: Trust,
}

#[derive(Debug)]
enum Trust {
    /// The system's roots, which are loaded with the first certificate.
    System(OnceLock<Option<Arc<WebPkiServerVerifier>>>),
    /// The authorities in a file.
    Files(Arc<CertificateFiles>),
    /// Any certificate is accepted.
    Anything,
}

impl Verifier {
    pub(super) fn with_system_roots(provider: Arc<CryptoProvider>) -> Self {
        let trust = Trust::System(OnceLock::new());
        Self { provider, trust }
    }

    pub(super) fn with_files(provider: Arc<CryptoProvider>, files: Arc<CertificateFiles>) -> Self {
        let trust = Trust::Files(files);
        Self { provider, trust }
    }

    pub(super) fn accept_all(provider: Arc<CryptoProvider>) -> Self {
        let trust = Trust::Anything;
        Self { provider, trust }
    }
}

/// A verifier with the system's roots; `None` if there are none.
fn with_system_roots(provider: &Arc<CryptoProvider>) -> Option<Arc<WebPkiServerVerifier>> {
    WebPkiServerVerifier::builder_with_provider(system_roots(), provider.clone())
        .build()
        .ok()
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
        match &self.trust {
            Trust::Anything => Ok(ServerCertVerified::assertion()),
            Trust::System(verifier) => {
                let verifier = verifier.get_or_init(|| with_system_roots(&self.provider));
                let verifier = verifier.as_ref().ok_or(CertificateError::UnknownIssuer)?;
                verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
            Trust::Files(files) => match files.proof().ok_or(CertificateError::UnknownIssuer)? {
                Proof::HostName(verifier) => {
                    verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
                }
                Proof::Id(id, roots) => {
                    let algorithms = self.provider.signature_verification_algorithms.all;
                    let certificate = ParsedCertificate::try_from(end_entity)?;
                    verify_server_cert_signed_by_trust_anchor(&certificate, &roots, intermediates, now, algorithms)?;
                    verify_id(end_entity, &id)?;
                    Ok(ServerCertVerified::assertion())
                }
            },
        }
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

/// A certificate of a workload has exactly one URI, its id.
fn verify_id(certificate: &CertificateDer<'_>, id: &SpiffeId) -> Result<(), rustls::Error> {
    let parsed = webpki::EndEntityCert::try_from(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let found: Vec<&str> = parsed.valid_uri_names().take(2).collect();
    if found == [id.as_str()] {
        return Ok(());
    }
    let found = match found[..] {
        [] => "no id".to_owned(),
        [one] => format!("`{}`", one.chars().take(MAX_SHOWN).collect::<String>().escape_debug()),
        _ => "several ids".to_owned(),
    };
    let wrong = WrongId {
        wanted: id.clone(),
        found,
    };
    Err(CertificateError::Other(OtherError(Arc::new(wrong))).into())
}

/// How much of another server's id is shown.
const MAX_SHOWN: usize = 200;

/// The certificate is trusted, and is that of another workload.
#[derive(thiserror::Error)]
#[error("wanted `{wanted}`, found {found}")]
pub(in crate::transport) struct WrongId {
    wanted: SpiffeId,
    found: String,
}

/// As errors of TLS show it.
impl std::fmt::Debug for WrongId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}
