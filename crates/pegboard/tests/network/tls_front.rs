//! A TLS proxy in front of a plain server, for HTTP/2 and for client certificates.

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use rcgen::{CertificateParams, KeyPair};
use rustls::{
    RootCertStore, ServerConfig as TlsSettings,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer},
    server::WebPkiClientVerifier,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The clients that the proxy accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clients {
    Anyone,
    /// Only clients with a certificate, which no client of this test has.
    Certified,
}

/// One certificate for all servers: the clients of this test do not verify it.
fn identity() -> &'static (CertificateDer<'static>, Vec<u8>) {
    static IDENTITY: OnceLock<(CertificateDer<'static>, Vec<u8>)> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap();
        (certificate.der().clone(), key.serialize_der())
    })
}

fn settings(clients: Clients) -> TlsSettings {
    let (certificate, key) = identity();
    let provider = Arc::new(ring::default_provider());
    let builder = TlsSettings::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients {
        Clients::Anyone => builder.with_no_client_auth(),
        Clients::Certified => {
            let mut roots = RootCertStore::empty();
            roots.add(certificate.clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let key = PrivateKeyDer::try_from(key.clone()).unwrap();
    builder.with_single_cert(vec![certificate.clone()], key).unwrap()
}

/// Terminates TLS and forwards each connection to a server. With `http_2` it negotiates only that protocol.
pub(crate) async fn front(to: SocketAddr, clients: Clients, http_2: bool) -> (SocketAddr, DropGuard) {
    let mut settings = settings(clients);
    if http_2 {
        settings.alpn_protocols = vec![b"h2".to_vec()];
    }
    let acceptor = TlsAcceptor::from(Arc::new(settings));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let ended = CancellationToken::new();
    let guard = ended.clone().drop_guard();
    tokio::spawn(ended.clone().run_until_cancelled_owned(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(ended.clone().run_until_cancelled_owned(async move {
                match acceptor.accept(stream).into_fallible().await {
                    Ok(mut stream) => {
                        let Ok(mut server) = TcpStream::connect(to).await else {
                            return;
                        };
                        // A reset by the server must not look like an orderly end.
                        if copy_bidirectional(&mut stream, &mut server).await.is_err() {
                            let _ = stream.get_ref().0.set_zero_linger();
                        }
                    }
                    // The client reads the alert only if the connection is then closed cleanly.
                    Err((_, mut stream)) => {
                        let _ = stream.shutdown().await;
                        let _ = stream.read_to_end(&mut Vec::new()).await;
                    }
                }
            }));
        }
    }));
    (address, guard)
}
