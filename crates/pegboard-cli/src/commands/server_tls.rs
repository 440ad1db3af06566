//! TLS of requests that commands send to a configured server themselves, by the `tls` settings of that server.

use std::sync::Arc;

use pegboard::config::Tls;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{
        CryptoProvider, WebPkiSupportedAlgorithms, ring::default_provider, verify_tls12_signature,
        verify_tls13_signature,
    },
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
};

/// The TLS settings for connections to a server, or why there are none.
pub(super) fn client_config(tls: &Tls) -> Result<ClientConfig, String> {
    if tls.server_id.is_some() {
        return Err("`tls.server_id` of the server cannot be checked by this command".to_owned());
    }
    let provider = Arc::new(default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let builder = match tls.insecure {
        true => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Verifier { only: None, provider })),
        false => builder.with_root_certificates(roots(tls)?),
    };
    let Some(files) = &tls.client_cert else {
        return Ok(builder.with_no_client_auth());
    };
    let problem = |path: &std::path::Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect)
        .map_err(|error| problem(&files.cert, &error))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| problem(&files.key, &error))?;
    builder
        .with_client_auth_cert(chain, key)
        .map_err(|error| problem(&files.cert, &error))
}

/// The authorities of the system, and those of `tls.ca`.
fn roots(tls: &Tls) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(file) = &tls.ca {
        let problem = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let certificates = CertificateDer::pem_file_iter(file).map_err(|error| problem(&error))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| problem(&error))?;
            roots.add(certificate).map_err(|error| problem(&error))?;
        }
    }
    Ok(roots)
}

/// Checks a certificate in place of the authorities.
#[derive(Debug)]
pub(super) struct Verifier {
    /// The only certificate that is accepted, whatever its name and dates are; any if there is none.
    pub(super) only: Option<CertificateDer<'static>>,
    pub(super) provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        presented: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.only.as_ref().is_none_or(|only| only == presented) {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, self.algorithms())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, self.algorithms())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms().supported_schemes()
    }
}

impl Verifier {
    fn algorithms(&self) -> &WebPkiSupportedAlgorithms {
        &self.provider.signature_verification_algorithms
    }
}
