//! [`Tls`]: the certificate with which a gateway speaks HTTPS, and the handshake of a connection.

use std::{fmt, sync::Arc, time::Duration, time::SystemTime};

use rustls::{
    ServerConfig,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::certificate;
use crate::cryptography;

/// How long a handshake may take.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// How long a client that speaks HTTP may take to read that it must not.
const REFUSAL_TIME: Duration = Duration::from_millis(500);

/// The first byte of a TLS handshake.
const HANDSHAKE: u8 = 0x16;

/// The longest certificate chain.
const MAX_CHAIN: usize = 16;

/// The response to a request without TLS.
const REFUSAL: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 32\r\nconnection: close\r\n\r\n\
    This is HTTPS: use https:// URLs";

/// A certificate chain with its private key. TLS 1.2 and 1.3 are spoken, with HTTP/1.1.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    expires: Option<SystemTime>,
}

/// Why a certificate or its key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The PEM text has no certificate.
    #[error("there is no certificate in it: a PEM block `CERTIFICATE` is needed")]
    NoCertificate,
    /// The PEM text has too many certificates.
    #[error("there are more than {MAX_CHAIN} certificates in it: only the gateway's own chain belongs there")]
    LongChain,
    /// The certificates are no valid PEM.
    #[error("the certificate cannot be read: {0}")]
    Certificate(#[source] pem::Error),
    /// The key is missing or no valid PEM.
    #[error("the private key cannot be read: {0}")]
    Key(#[source] pem::Error),
    /// The key is of another certificate, or of a kind that is not supported.
    #[error("the certificate and its key cannot be used: {0}")]
    Unusable(#[source] rustls::Error),
}

impl Tls {
    /// Reads a certificate chain, the gateway's own certificate first, and its private key from PEM text.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).take(MAX_CHAIN + 1).collect();
        let chain = chain.map_err(TlsError::Certificate)?;
        match chain.len() {
            0 => return Err(TlsError::NoCertificate),
            length if length > MAX_CHAIN => return Err(TlsError::LongChain),
            _ => {}
        }
        let key = PrivateKeyDer::from_pem_slice(key).map_err(TlsError::Key)?;
        let expires = chain.iter().filter_map(|one| certificate::expiry(one)).min();
        let builder = ServerConfig::builder_with_provider(cryptography::provider());
        let mut config = builder
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Unusable)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(TlsError::Unusable)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            config: Arc::new(config),
            expires,
        })
    }

    /// When the first certificate of the chain expires; `None` if that cannot be read.
    pub fn expires(&self) -> Option<SystemTime> {
        self.expires
    }

    pub(super) fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

/// Shakes hands with a client that has sent something. Returns `None` if that fails or takes too long.
pub(super) async fn accept(stream: Option<TcpStream>, tls: Arc<ServerConfig>) -> Option<TlsStream<TcpStream>> {
    let mut stream = stream?;
    let mut first = [0];
    stream.peek(&mut first).await.ok()?;
    if first != [HANDSHAKE] {
        // A client that does not read is not waited for.
        let _ = timeout(REFUSAL_TIME, refuse(&mut stream)).await;
        return None;
    }
    match timeout(HANDSHAKE_TIME, TlsAcceptor::from(tls).accept(stream)).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            tracing::debug!(%error, "TLS handshake failed");
            None
        }
        Err(_) => None,
    }
}

/// Answers a client that speaks HTTP. What it has sent is read, because closing with unread data would send a reset.
async fn refuse(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(REFUSAL).await?;
    stream.shutdown().await?;
    let mut unread = [0; 4096];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn a_certificate_and_its_key_are_read() {
        let (cert, key) = pair();
        assert!(Tls::from_pem(cert.as_bytes(), key.as_bytes()).is_ok());
    }

    #[test]
    fn what_cannot_be_used_is_an_error_that_says_why() {
        let ((cert, key), (_, other)) = (pair(), pair());
        let broken = cert.replace("-----END", "-----");
        let long = cert.repeat(MAX_CHAIN + 1);
        for (chain, key, expected) in [
            ("", key.as_str(), "no certificate"),
            ("no PEM at all", &key, "no certificate"),
            (&key, &key, "no certificate"),
            (&broken, &key, "cannot be read"),
            (&long, &key, "more than 16"),
            (&cert, "", "the private key cannot be read"),
            (&cert, &cert, "the private key cannot be read"),
            (&cert, &other, "cannot be used"),
        ] {
            let error = Tls::from_pem(chain.as_bytes(), key.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error} is not about: {expected}");
        }
    }

    #[test]
    fn the_refusal_of_plain_http_has_its_length() {
        let text = std::str::from_utf8(REFUSAL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("content-length: {}\r\n", body.len())),
            "{}",
            body.len()
        );
    }
}
