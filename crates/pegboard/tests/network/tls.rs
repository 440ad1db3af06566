//! TLS: server certificates, client certificates, and the errors when either fails.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use pegboard::{
    Kind, ServerConfig, State,
    config::{ClientCert, Endpoint, Tls, Transport},
};
use pegboard_base::sync::Mutex;
use pegboard_testkit::Era;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::{
    RootCertStore, ServerConfig as TlsSettings, crypto::ring, pki_types::PrivateKeyDer, server::WebPkiClientVerifier,
};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncWriteExt, copy_bidirectional},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{fixtures::*, support::*};

/// A certificate authority, with its certificate in a file.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: rcgen::Certificate,
    folder: TempDir,
}

/// A certificate with its key.
pub(crate) struct Identity {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), certificate.pem()).unwrap();
        Self {
            issuer: Issuer::new(params, key),
            certificate,
            folder,
        }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    pub(crate) fn signs(&self, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let mut params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity { certificate, key }
    }

    /// Files with a client certificate that this authority signed.
    pub(crate) fn client(&self) -> ClientCert {
        let identity = self.signs(|_| {});
        let (cert, key) = (self.folder.path().join("me.pem"), self.folder.path().join("me.key"));
        std::fs::write(&cert, identity.certificate.pem()).unwrap();
        std::fs::write(&key, identity.key.serialize_pem()).unwrap();
        ClientCert::new(cert, key)
    }
}

impl Identity {
    pub(crate) fn certificate_pem(&self) -> String {
        self.certificate.pem()
    }

    pub(crate) fn certificate_der(&self) -> Vec<u8> {
        self.certificate.der().to_vec()
    }

    pub(crate) fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// The TLS settings of a server with this identity; with `clients` it requires certificates of that authority.
    pub(crate) fn settings(&self, clients: Option<&Authority>) -> TlsSettings {
        let provider = Arc::new(ring::default_provider());
        let builder = TlsSettings::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add(authority.certificate.der().clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
        };
        let key = PrivateKeyDer::try_from(self.key.serialize_der()).unwrap();
        builder
            .with_single_cert(vec![self.certificate.der().clone()], key)
            .unwrap()
    }
}

/// A TLS listener. It stops when this is dropped.
pub(crate) struct Front {
    address: SocketAddr,
    /// The ALPN protocol of each connection.
    protocols: Arc<Mutex<Vec<Option<String>>>>,
    _guard: DropGuard,
}

impl Front {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self, scheme: &str, host: &str, path: &str) -> String {
        format!("{scheme}://{host}:{}{path}", self.address.port())
    }
}

/// Accepts TLS connections and hands each to `serve`.
pub(crate) async fn front<F>(
    settings: TlsSettings,
    serve: impl Fn(TlsStream<TcpStream>) -> F + Send + Sync + 'static,
) -> Front
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let ended = CancellationToken::new();
    let guard = ended.clone().drop_guard();
    let protocols: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
    let (agreed, serve) = (protocols.clone(), Arc::new(serve));
    let acceptor = TlsAcceptor::from(Arc::new(settings));
    tokio::spawn(ended.clone().run_until_cancelled_owned(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, agreed, serve) = (acceptor.clone(), agreed.clone(), serve.clone());
            let serving = async move {
                match acceptor.accept(stream).into_fallible().await {
                    Ok(stream) => {
                        let protocol = stream.get_ref().1.alpn_protocol();
                        let protocol = protocol.map(|name| String::from_utf8_lossy(name).into_owned());
                        agreed.lock().push(protocol);
                        serve(stream).await;
                    }
                    // The client reads the alert only if the connection is then closed cleanly.
                    Err((_, mut stream)) => {
                        let _ = stream.shutdown().await;
                        let mut rest = Vec::new();
                        let _ = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut rest).await;
                    }
                }
            };
            tokio::spawn(ended.clone().run_until_cancelled_owned(serving));
        }
    }));
    Front {
        address,
        protocols,
        _guard: guard,
    }
}

/// Terminates TLS in front of a plain server.
pub(crate) async fn pass_to(settings: TlsSettings, address: SocketAddr) -> Front {
    front(settings, move |mut stream| async move {
        if let Ok(mut other) = TcpStream::connect(address).await {
            let _ = copy_bidirectional(&mut stream, &mut other).await;
        }
    })
    .await
}

pub(crate) fn secured(url: &str, tls: Tls) -> Endpoint {
    let mut endpoint = endpoint(url);
    endpoint.tls = tls;
    endpoint
}

pub(crate) fn trusting(authority: &Authority) -> Tls {
    let mut tls = Tls::default();
    tls.ca = Some(authority.file());
    tls
}

/// The call is rejected because of the certificate, and the hint names the setting.
async fn check_refused(transport: Transport, what: &str) -> String {
    let board = board(ServerConfig::new(transport));
    let reply = tokio::time::timeout(PATIENCE, hello(&board.toolset()))
        .await
        .expect("bounded");
    let text = refused(&reply, Kind::Unavailable);
    let hint = reply.outcome.hint().unwrap_or_default();
    assert!(
        hint.contains("certificate") && hint.contains("tls.ca"),
        "{what}: {text}, {hint:?}"
    );
    assert_eq!(status(&board).state, State::Down);
    text
}

#[tokio::test]
async fn a_server_of_a_trusted_authority_is_reached_on_every_wire() {
    let authority = Authority::new();
    for era in BOTH_ERAS {
        let fake = fake(era).serve_http().await.unwrap();
        let front = pass_to(authority.signs(|_| {}).settings(None), fake.address()).await;
        for host in ["localhost", "127.0.0.1"] {
            let url = front.url("https", host, "/mcp");
            let board = board(ServerConfig::new(Transport::auto(secured(&url, trusting(&authority)))));
            assert_greets(&board.toolset(), &url).await;
            board.shutdown().await;
        }
    }
    let old = fake(Era::Legacy).serve_sse().await.unwrap();
    let front = pass_to(authority.signs(|_| {}).settings(None), old.address()).await;
    let endpoint = secured(&front.url("https", "localhost", "/sse"), trusting(&authority));
    assert_greets(&board(ServerConfig::new(Transport::sse(endpoint))).toolset(), "sse").await;
    let socket = fake(Era::Legacy).serve_ws().await.unwrap();
    let front = pass_to(authority.signs(|_| {}).settings(None), socket.address()).await;
    let endpoint = secured(&front.url("wss", "localhost", "/mcp"), trusting(&authority));
    assert_greets(
        &board(ServerConfig::new(Transport::websocket(endpoint))).toolset(),
        "wss",
    )
    .await;
}

#[tokio::test]
async fn a_certificate_that_proves_nothing_is_refused_on_every_wire() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let fake = fake(Era::Modern).serve_http().await.unwrap();
    let self_signed = {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec!["localhost".to_owned()])
            .unwrap()
            .self_signed(&key)
            .unwrap();
        Identity { certificate, key }
    };
    let cases = [
        ("unknown authority", stranger.signs(|_| {})),
        ("self-signed", self_signed),
        (
            "expired",
            authority.signs(|params| {
                params.not_before = date_time_ymd(2001, 1, 1);
                params.not_after = date_time_ymd(2002, 1, 1);
            }),
        ),
        (
            "not yet valid",
            authority.signs(|params| {
                params.not_before = date_time_ymd(2090, 1, 1);
                params.not_after = date_time_ymd(2091, 1, 1);
            }),
        ),
        (
            "other host",
            authority.signs(|params| {
                *params = CertificateParams::new(vec!["example.com".to_owned()]).unwrap();
            }),
        ),
        ("no host", authority.signs(|params| params.subject_alt_names.clear())),
        (
            "for clients only",
            authority.signs(|params| {
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            }),
        ),
    ];
    for (what, identity) in cases {
        let front = pass_to(identity.settings(None), fake.address()).await;
        let secure = |scheme: &str| secured(&front.url(scheme, "localhost", "/mcp"), trusting(&authority));
        let words = match what {
            "unknown authority" | "self-signed" => "an authority that is not trusted here",
            "expired" => "its certificate has expired",
            "not yet valid" => "its certificate is not valid yet",
            "other host" | "no host" => "its certificate is for another host name",
            _ => "",
        };
        for transport in [
            Transport::http(secure("https")),
            Transport::auto(secure("https")),
            Transport::sse(secure("https")),
            Transport::websocket(secure("wss")),
        ] {
            let text = check_refused(transport, what).await;
            assert!(text.contains(words), "{what}: {text}");
        }
    }
    assert!(fake.requests().is_empty());
}

#[tokio::test]
async fn a_server_may_be_trusted_without_a_proof_when_the_config_says_so() {
    let stranger = Authority::new();
    let mut tls = Tls::default();
    tls.insecure = true;
    let web = fake(Era::Modern).serve_http().await.unwrap();
    let front = pass_to(stranger.signs(|_| {}).settings(None), web.address()).await;
    let endpoint = secured(&front.url("https", "localhost", "/mcp"), tls.clone());
    assert_greets(
        &board(ServerConfig::new(Transport::http(endpoint))).toolset(),
        "insecure",
    )
    .await;
    let socket = fake(Era::Legacy).serve_ws().await.unwrap();
    let front = pass_to(stranger.signs(|_| {}).settings(None), socket.address()).await;
    let endpoint = secured(&front.url("wss", "127.0.0.1", "/mcp"), tls);
    assert_greets(
        &board(ServerConfig::new(Transport::websocket(endpoint))).toolset(),
        "insecure",
    )
    .await;
}

#[tokio::test]
async fn a_server_that_asks_who_we_are_is_shown_our_certificate() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let web = fake(Era::Legacy).serve_http().await.unwrap();
    let socket = fake(Era::Legacy).serve_ws().await.unwrap();
    let identity = authority.signs(|_| {});
    let web_front = pass_to(identity.settings(Some(&authority)), web.address()).await;
    let socket_front = pass_to(identity.settings(Some(&authority)), socket.address()).await;
    let (url, socket_url) = (
        web_front.url("https", "localhost", "/mcp"),
        socket_front.url("wss", "localhost", "/mcp"),
    );
    let showing = |ours: Option<ClientCert>| {
        let mut tls = trusting(&authority);
        tls.client_cert = ours;
        tls
    };
    for (what, ours) in [("nothing shown", None), ("a stranger's", Some(stranger.client()))] {
        check_refused(Transport::http(secured(&url, showing(ours.clone()))), what).await;
        check_refused(Transport::websocket(secured(&socket_url, showing(ours))), what).await;
    }
    assert!(web.requests().is_empty() && socket.requests().is_empty());
    let tls = showing(Some(authority.client()));
    assert_greets(
        &board(ServerConfig::new(Transport::http(secured(&url, tls.clone())))).toolset(),
        "mTLS",
    )
    .await;
    assert_greets(
        &board(ServerConfig::new(Transport::websocket(secured(&socket_url, tls)))).toolset(),
        "mTLS",
    )
    .await;
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named() {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let with_authority = |ca: PathBuf| {
        let mut tls = Tls::default();
        tls.ca = Some(ca);
        tls
    };
    let mut without_key = Tls::default();
    without_key.client_cert = Some(ClientCert::new(authority.client().cert, folder.path().join("gone.key")));
    let cases = [
        ("gone.pem", with_authority(folder.path().join("gone.pem"))),
        ("empty.pem", with_authority(file("empty.pem", ""))),
        ("text.pem", with_authority(file("text.pem", "hello"))),
        ("gone.key", without_key),
    ];
    for (name, tls) in cases {
        for transport in [
            Transport::auto(secured("https://localhost:1/mcp", tls.clone())),
            Transport::websocket(secured("wss://localhost:1/mcp", tls.clone())),
        ] {
            let reply = hello(&board(ServerConfig::new(transport)).toolset()).await;
            let text = refused(&reply, Kind::Unavailable);
            assert!(text.contains(name), "{name}: {text}");
            assert!(reply.outcome.hint().unwrap().contains("tls"), "{name}");
        }
    }
}

#[tokio::test]
async fn plain_text_on_a_secure_port_is_a_matter_of_trust_too() {
    let fake = fake(Era::Legacy).serve_http().await.unwrap();
    let url = fake.url().replace("http:", "https:");
    check_refused(Transport::auto(endpoint(&url)), "plain text").await;
    assert!(fake.requests().is_empty());
}

/// Answers one request like a modern server with the one tool `hello`.
pub(crate) async fn answer_h2(
    request: http::Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<bytes::Bytes>,
) {
    let mut body = request.into_body();
    let mut whole = Vec::new();
    while let Some(Ok(part)) = body.data().await {
        let _ = body.flow_control().release_capacity(part.len());
        whole.extend_from_slice(&part);
    }
    let message: serde_json::Value = serde_json::from_slice(&whole).unwrap_or_default();
    let result = match message["method"].as_str() {
        Some("server/discover") => json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}),
        Some("tools/list") => json!({"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]}),
        _ => json!({"content": [{"type": "text", "text": "hi"}]}),
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    let head = http::Response::builder().header("content-type", "application/json");
    if let Ok(mut out) = respond.send_response(head.body(()).unwrap(), false) {
        let _ = out.send_data(answer.to_string().into(), true);
    }
}

#[tokio::test]
async fn http_2_is_spoken_where_the_server_offers_it() {
    let authority = Authority::new();
    let identity = authority.signs(|_| {});
    let mut settings = identity.settings(None);
    settings.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let newer = front(settings, |stream| async move {
        let Ok(mut connection) = h2::server::handshake(stream).await else {
            return;
        };
        while let Some(Ok((request, respond))) = connection.accept().await {
            tokio::spawn(answer_h2(request, respond));
        }
    })
    .await;
    let url = newer.url("https", "localhost", "/mcp");
    let board = board(limited(
        ServerConfig::new(Transport::auto(secured(&url, trusting(&authority)))),
        |limits| limits.max_in_flight = 100,
    ));
    let tools = board.toolset();
    assert_greets(&tools, "over HTTP/2").await;
    let replies = futures_util::future::join_all((0..100).map(|_| hello(&tools))).await;
    assert!(replies.iter().all(|reply| reply.text() == "hi"));
    // All of them share one connection.
    assert_eq!(*newer.protocols.lock(), [Some("h2".to_owned())]);

    let web = fake(Era::Modern).serve_http().await.unwrap();
    let mut settings = identity.settings(None);
    settings.alpn_protocols = vec![b"http/1.1".to_vec()];
    let older = pass_to(settings, web.address()).await;
    let url = older.url("https", "localhost", "/mcp");
    let tools =
        crate::support::board(ServerConfig::new(Transport::auto(secured(&url, trusting(&authority))))).toolset();
    assert_greets(&tools, "over HTTP/1.1").await;
    assert_eq!(older.protocols.lock()[0].as_deref(), Some("http/1.1"));

    let socket = fake(Era::Legacy).serve_ws().await.unwrap();
    let mut settings = identity.settings(None);
    settings.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let both = pass_to(settings, socket.address()).await;
    let endpoint = secured(&both.url("wss", "localhost", "/mcp"), trusting(&authority));
    let tools = crate::support::board(ServerConfig::new(Transport::websocket(endpoint))).toolset();
    assert_greets(&tools, "WebSockets are not spoken over HTTP/2").await;
    assert_eq!(*both.protocols.lock(), [None]);
}

#[tokio::test]
async fn a_url_with_the_scheme_of_another_port_says_so() {
    let plain = fake(Era::Modern).serve_http().await.unwrap();
    let url = plain.url().replace("http://", "https://");
    let text = check_refused(Transport::http(secured(&url, Tls::default())), "https to http").await;
    assert!(
        text.contains("does not speak TLS") && text.contains("`http://`"),
        "{text}"
    );

    let authority = Authority::new();
    let front = pass_to(authority.signs(|_| {}).settings(None), plain.address()).await;
    let endpoint = secured(&front.url("http", "localhost", "/mcp"), Tls::default());
    let board = board(ServerConfig::new(Transport::http(endpoint)));
    let reply = hello(&board.toolset()).await;
    let text = reply.text();
    assert!(text.contains("expects TLS") && text.contains("`https://`"), "{text}");
}
