//! What a secure connection trusts and shows, for HTTP and WebSocket alike.

use std::{
    path::Path,
    sync::{Arc, OnceLock},
};

use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject};

use super::DialError;
use crate::config::Tls;

/// The settings for connections to one server.
pub(super) fn client_config(tls: &Tls) -> Result<ClientConfig, DialError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| DialError::Tls(error.to_string()))?;
    let builder = if tls.insecure {
        tracing::warn!("the server's certificate is not checked, because its config says so");
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Unchecked(provider)))
    } else {
        builder.with_root_certificates(roots(tls)?)
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

/// The system's certificate authorities and those of the config. A system without any is no error: the connection will say so.
fn roots(tls: &Tls) -> Result<Arc<RootCertStore>, DialError> {
    // They are read once: that takes longer than most connections, and a hundred servers would keep a hundred copies.
    static SYSTEM: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let system = SYSTEM.get_or_init(|| {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    });
    let Some(ca) = &tls.ca else {
        return Ok(system.clone());
    };
    let mut roots = system.as_ref().clone();
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

/// Takes any certificate. Signatures are still checked.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
