//! TLS in front of a plain server: it can be stopped, and started again with another certificate at the same address.

use std::{net::SocketAddr, path::Path, sync::Arc, time::Duration};

use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer};
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// A certificate authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    pub(crate) fn write(&self, file: &Path) {
        std::fs::write(file, &self.pem).unwrap();
    }

    /// The TLS settings of a server at this address.
    pub(crate) fn identity(&self, address: SocketAddr) -> Arc<ServerConfig> {
        let mut params = CertificateParams::new(vec![address.ip().to_string()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        Arc::new(config)
    }
}

/// Accepts TLS connections and passes them on to a plain server, until it is stopped.
pub(crate) struct Front {
    pub(crate) address: SocketAddr,
    behind: SocketAddr,
    open: Option<CancellationToken>,
}

impl Front {
    /// A front that is not open yet. No other program uses ports of this address, so its port stays free while the front is stopped.
    pub(crate) async fn new(number: u8, behind: SocketAddr) -> Self {
        let listener = TcpListener::bind(format!("127.77.{number}.1:0")).await.unwrap();
        Self {
            address: listener.local_addr().unwrap(),
            behind,
            open: None,
        }
    }

    /// Refuses connections, and ends those that are open.
    pub(crate) fn stop(&mut self) {
        if let Some(open) = self.open.take() {
            open.cancel();
        }
    }

    /// Accepts connections with this certificate. Those that were open before are ended.
    pub(crate) async fn open(&mut self, identity: Arc<ServerConfig>) {
        self.stop();
        let listener = loop {
            // The listener from before is dropped by its task.
            match TcpListener::bind(self.address).await {
                Ok(listener) => break listener,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        };
        let open = CancellationToken::new();
        self.open = Some(open.clone());
        let (acceptor, behind) = (TlsAcceptor::from(identity), self.behind);
        tokio::spawn(open.clone().run_until_cancelled_owned(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(open.clone().run_until_cancelled_owned(async move {
                    if let Ok(mut stream) = acceptor.accept(stream).await
                        && let Ok(mut plain) = TcpStream::connect(behind).await
                    {
                        let _ = copy_bidirectional(&mut stream, &mut plain).await;
                    }
                }));
            }
        }));
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.stop();
    }
}
