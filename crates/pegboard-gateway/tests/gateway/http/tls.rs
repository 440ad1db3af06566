//! HTTPS: real TLS clients on every wire, and what is not TLS.

use std::{sync::Arc, time::Duration};

use futures_util::{SinkExt, StreamExt};
use pegboard_gateway::Tls;
use rustls::{
    ClientConfig, ProtocolVersion, RootCertStore, SupportedProtocolVersion,
    crypto::ring::default_provider,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
    version::{TLS12, TLS13},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::Instant,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_tungstenite::{client_async, tungstenite::Message};

use crate::http::{
    client::{modern_call, modern_headers, text_of},
    service::{Running, start, start_with},
};

/// A self-signed certificate for `localhost`.
struct Made {
    cert: String,
    key: String,
}

fn made() -> Made {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    Made {
        cert: made.cert.pem(),
        key: made.signing_key.serialize_pem(),
    }
}

impl Made {
    fn tls(&self) -> Tls {
        Tls::from_pem(self.cert.as_bytes(), self.key.as_bytes()).unwrap()
    }

    /// A client that trusts this certificate only.
    fn client(&self, versions: &[&'static SupportedProtocolVersion]) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_slice(self.cert.as_bytes()).unwrap())
            .unwrap();
        let mut config = ClientConfig::builder_with_provider(default_provider().into())
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        TlsConnector::from(Arc::new(config))
    }

    async fn connect(&self, server: &Running) -> std::io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(server.address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        self.client(&[&TLS12, &TLS13]).connect(name, stream).await
    }
}

async fn serve(made: &Made) -> Running {
    let tls = made.tls();
    start_with(|builder| builder.tls(tls).drain_time(Duration::from_millis(300))).await
}

/// A modern call that closes the connection.
fn echo() -> String {
    let body = modern_call(1, "echo");
    let headers: Vec<String> = modern_headers("echo")
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .into();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{}content-length: {}\r\n\r\n{body}",
        headers.concat(),
        body.len()
    )
}

#[tokio::test]
async fn a_call_is_answered_over_both_versions_of_tls() {
    let made = made();
    let server = serve(&made).await;
    for (version, expected) in [(&TLS12, ProtocolVersion::TLSv1_2), (&TLS13, ProtocolVersion::TLSv1_3)] {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = made.client(&[version]).connect(name, stream).await.unwrap();
        let session = stream.get_ref().1;
        assert_eq!(session.protocol_version(), Some(expected));
        assert_eq!(session.alpn_protocol(), Some(&b"http/1.1"[..]));
        stream.write_all(echo().as_bytes()).await.unwrap();
        let mut response = String::new();
        // The end of the connection is announced, so that nothing can cut the response.
        stream.read_to_string(&mut response).await.unwrap();
        assert!(
            response.starts_with("HTTP/1.1 200") && response.contains("hello"),
            "{response}"
        );
    }
}

#[tokio::test]
async fn websocket_and_sse_work_over_tls() {
    let made = made();
    let server = serve(&made).await;
    let stream = made.connect(&server).await.unwrap();
    let (mut socket, _) = client_async("wss://localhost/mcp", stream).await.unwrap();
    socket.send(Message::text(modern_call(1, "big"))).await.unwrap();
    let Message::Text(text) = socket.next().await.unwrap().unwrap() else {
        panic!("no text");
    };
    assert_eq!(text_of(&serde_json::from_str(&text).unwrap()).len(), 8 * 1024 * 1024);
    let mut stream = made.connect(&server).await.unwrap();
    stream
        .write_all(b"GET /sse HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut read = String::new();
    while !read.contains("/messages?session=") {
        let mut bytes = [0; 1024];
        let length = stream.read(&mut bytes).await.unwrap();
        assert!(length > 0, "{read}");
        read.push_str(std::str::from_utf8(&bytes[..length]).unwrap());
    }
}

#[tokio::test]
async fn a_client_without_tls_is_told_and_its_connection_ends_cleanly() {
    let made = made();
    let server = serve(&made).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(echo().as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 400"), "{response}");
    assert!(response.contains("https://"), "{response}");
    // What is neither HTTP nor TLS ends too.
    for bytes in [&b"\x16\x03\x01\x00\x05hello"[..], b"\x00\x01\x02", b"\x16"] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(9), stream.read_to_end(&mut rest)).await;
        assert!(read.is_ok(), "{bytes:?}");
    }
    made.connect(&server).await.unwrap();
}

#[tokio::test]
async fn a_handshake_that_does_not_go_on_holds_a_place_and_no_more() {
    let made = made();
    let tls = made.tls();
    let server = start_with(|builder| builder.tls(tls).max_connections(1)).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    silent.write_all(b"\x16\x03\x01").await.unwrap();
    let waiting = tokio::time::timeout(Duration::from_millis(300), made.connect(&server)).await;
    assert!(waiting.is_err(), "a handshake counts as a connection");
    drop(silent);
    made.connect(&server).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn a_handshake_that_goes_on_too_slowly_is_cut_off_and_others_are_served() {
    let made = made();
    let tls = made.tls();
    let server = start_with(|builder| builder.tls(tls).max_connections(1)).await;
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    // A record of 512 bytes, of which one arrives each second.
    slow.write_all(b"\x16\x03\x01\x02\x00").await.unwrap();
    while server.gateway.traffic().open == 0 {
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    let started = Instant::now();
    let (mut reader, mut writer) = slow.split();
    let drip = async {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            if writer.write_all(b"\x01").await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    let mut byte = [0];
    let cut_off = tokio::select! {
        // It may be reset, because what it has sent is not read.
        read = reader.read(&mut byte) => read.unwrap_or(0),
        () = drip => unreachable!("it does not end"),
        () = tokio::time::sleep(Duration::from_secs(60)) => panic!("the connection stays open"),
    };
    assert_eq!(cut_off, 0, "nothing is sent to it");
    let took = started.elapsed();
    assert!((9..=12).contains(&took.as_secs()), "{took:?}");
    tokio::time::resume();
    // Its place is free.
    made.connect(&server).await.unwrap();
    server.stop().await;
}

#[tokio::test]
async fn a_new_certificate_is_used_by_new_connections_only() {
    let (before, after) = (made(), made());
    let server = serve(&before).await;
    let mut open = before.connect(&server).await.unwrap();
    assert!(server.gateway.set_tls(&after.tls()));
    assert!(before.connect(&server).await.is_err(), "it has another certificate");
    after.connect(&server).await.unwrap();
    open.write_all(echo().as_bytes()).await.unwrap();
    let mut response = String::new();
    open.read_to_string(&mut response).await.unwrap();
    assert!(response.contains("hello"), "{response}");
    let plain = start().await;
    assert!(!plain.gateway.set_tls(&after.tls()), "clients speak HTTP with it");
}
