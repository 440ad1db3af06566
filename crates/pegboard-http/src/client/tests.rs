use std::net::Ipv4Addr;

use hyper_util::client::proxy::matcher::Matcher;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use url::Url;

use super::*;

const EMPTY: &str = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";

fn settings() -> Settings {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    Settings::new(tls)
}

fn target(url: &str) -> Arc<Target> {
    Arc::new(Target::new(Url::parse(url).unwrap()).unwrap())
}

async fn server() -> (TcpListener, Arc<Target>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, target(&format!("http://127.0.0.1:{port}/mcp?a=b")))
}

/// A client whose connections go through a proxy at this address.
fn through(proxy: &str, target: &Target) -> Client {
    let mut connector = Connector::new(
        target,
        settings().tls,
        Resolver { pinned: None },
        Duration::from_secs(10),
        true,
    );
    connector.set_proxy(
        Matcher::builder()
            .all(proxy.to_owned())
            .build()
            .intercept(&target.absolute),
    );
    Client {
        connector: Arc::new(connector),
        pool: Pool::new(Duration::from_secs(3)),
    }
}

/// Reads until what was read ends like this.
async fn read_to(stream: &mut TcpStream, end: &[u8]) -> String {
    let mut read = Vec::new();
    while !read.ends_with(end) {
        assert_ne!(
            stream.read_buf(&mut read).await.unwrap(),
            0,
            "{:?}",
            String::from_utf8_lossy(&read)
        );
    }
    String::from_utf8(read).unwrap()
}

async fn post(client: &Client, target: &Arc<Target>, body: &'static str) -> Response {
    client.send(Method::POST, target, HeaderMap::new(), body).await.unwrap()
}

async fn read(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.unwrap() {
        body.extend_from_slice(&chunk);
    }
    body
}

#[tokio::test]
async fn a_request_has_what_its_server_needs_and_connections_are_used_again() {
    let (listener, target) = server().await;
    let client = Client::new(&target, settings());
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let first = read_to(&mut stream, b"one").await;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")
            .await
            .unwrap();
        read_to(&mut stream, b"two").await;
        stream.write_all(EMPTY.as_bytes()).await.unwrap();
        read_to(&mut stream, b"three").await;
        stream.write_all(EMPTY.as_bytes()).await.unwrap();
        first
    };
    let asking = async {
        assert_eq!(read(post(&client, &target, "one").await).await, b"hi");
        assert_eq!(post(&client, &target, "two").await.status(), 202);
        assert_eq!(post(&client, &target, "three").await.status(), 202);
    };
    let (first, ()) = tokio::join!(serving, asking);
    let host = format!("host: {}\r\n", target.host.to_str().unwrap());
    assert!(first.starts_with("POST /mcp?a=b HTTP/1.1\r\n"), "{first}");
    for part in [host.as_str(), "user-agent: pegboard/", "content-length: 3\r\n"] {
        assert!(first.contains(part), "{part}: {first}");
    }
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_replaced() {
    let (listener, target) = server().await;
    let client = Client::new(&target, settings());
    let serving = async {
        for message in ["one", "two"] {
            let (mut stream, _) = listener.accept().await.unwrap();
            read_to(&mut stream, message.as_bytes()).await;
            stream.write_all(EMPTY.as_bytes()).await.unwrap();
        }
    };
    let asking = async {
        post(&client, &target, "one").await;
        while let Some(connection) = client.pool.take().await {
            client.pool.keep(connection);
            tokio::task::yield_now().await;
        }
        post(&client, &target, "two").await;
    };
    tokio::join!(serving, asking);
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let (listener, target) = server().await;
    let client = Client::new(&target, settings());
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_to(&mut stream, b"one").await;
        stream.write_all(EMPTY.as_bytes()).await.unwrap();
        stream
    };
    let (mut stream, _) = tokio::join!(serving, post(&client, &target, "one"));
    tokio::time::pause();
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn what_is_left_of_a_finished_response_does_not_cost_its_connection() {
    let (listener, target) = server().await;
    let client = Client::new(&target, settings());
    let (read_on, wait) = tokio::sync::oneshot::channel();
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_to(&mut stream, b"one").await;
        let begin = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nevent\r\n";
        stream.write_all(begin.as_bytes()).await.unwrap();
        wait.await.unwrap();
        stream.write_all(b"0\r\n\r\n").await.unwrap();
        read_to(&mut stream, b"two").await;
        stream.write_all(EMPTY.as_bytes()).await.unwrap();
    };
    let asking = async {
        let mut response = post(&client, &target, "one").await;
        assert_eq!(response.chunk().await.unwrap().unwrap(), "event");
        response.finish();
        read_on.send(()).unwrap();
        while !client.pool.has_open() {
            tokio::task::yield_now().await;
        }
        post(&client, &target, "two").await;
    };
    tokio::join!(serving, asking);
}

#[tokio::test]
async fn a_response_that_is_dropped_closes_its_connection() {
    let (listener, target) = server().await;
    let client = Client::new(&target, settings());
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_to(&mut stream, b"one").await;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            .await
            .unwrap();
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
    };
    let asking = async { drop(post(&client, &target, "one").await) };
    tokio::join!(serving, asking);
}

#[tokio::test]
async fn a_proxy_gets_whole_urls_and_its_password() {
    let (listener, _) = server().await;
    let target = target("http://server.test/mcp");
    let client = through(&format!("http://me:pw@{}", listener.local_addr().unwrap()), &target);
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = read_to(&mut stream, b"one").await;
        stream.write_all(EMPTY.as_bytes()).await.unwrap();
        head
    };
    let (head, _) = tokio::join!(serving, post(&client, &target, "one"));
    assert!(head.starts_with("POST http://server.test/mcp HTTP/1.1\r\n"), "{head}");
    assert!(
        head.contains("host: server.test\r\n") && head.contains("proxy-authorization: Basic bWU6cHc=\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn encrypted_requests_go_through_a_tunnel_of_the_proxy() {
    let (listener, _) = server().await;
    let target = target("https://server.test/mcp");
    let client = through(&format!("http://me:pw@{}", listener.local_addr().unwrap()), &target);
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = read_to(&mut stream, b"\r\n\r\n").await;
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        (head, stream.read_u8().await.unwrap())
    };
    let asking = client.send(Method::POST, &target, HeaderMap::new(), "one");
    let ((head, record), failed) = tokio::join!(serving, asking);
    assert!(head.starts_with("CONNECT server.test:443 HTTP/1.1\r\n"), "{head}");
    assert!(
        head.to_ascii_lowercase()
            .contains("proxy-authorization: basic bwu6chc=\r\n"),
        "{head}"
    );
    // The first byte of a TLS handshake.
    assert_eq!(record, 0x16);
    assert!(failed.unwrap_err().is_connect());
}

#[tokio::test]
async fn a_socks_proxy_is_asked_for_the_host() {
    let (listener, _) = server().await;
    let target = target("http://server.test/mcp");
    let client = through(&format!("socks5h://{}", listener.local_addr().unwrap()), &target);
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut greeting = [0; 3];
        stream.read_exact(&mut greeting).await.unwrap();
        stream.write_all(&[5, 0]).await.unwrap();
        let mut wanted = [0; 18];
        stream.read_exact(&mut wanted).await.unwrap();
        stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
        let head = read_to(&mut stream, b"one").await;
        stream.write_all(EMPTY.as_bytes()).await.unwrap();
        (wanted, head)
    };
    let ((wanted, head), _) = tokio::join!(serving, post(&client, &target, "one"));
    assert_eq!(&wanted[5..], b"server.test\0\x50");
    assert!(head.starts_with("POST /mcp HTTP/1.1\r\n"), "{head}");
}

#[tokio::test]
async fn a_socks_proxy_is_asked_for_an_address_that_is_given() {
    let (listener, _) = server().await;
    let target = target("http://no-such-host.invalid:81/mcp");
    let pinned = Pinned::from(("no-such-host.invalid".to_owned(), vec!["10.1.2.3:81".parse().unwrap()]));
    let resolver = Resolver {
        pinned: Some(Arc::new(pinned)),
    };
    let mut connector = Connector::new(&target, settings().tls, resolver, Duration::from_secs(10), true);
    let proxy = format!("socks5://{}", listener.local_addr().unwrap());
    connector.set_proxy(Matcher::builder().all(proxy).build().intercept(&target.absolute));
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_exact(&mut [0; 3]).await.unwrap();
        stream.write_all(&[5, 0]).await.unwrap();
        let mut wanted = [0; 10];
        stream.read_exact(&mut wanted).await.unwrap();
        wanted
    };
    let (wanted, failed) = tokio::join!(serving, connector.connect());
    assert_eq!(wanted[3..], [1, 10, 1, 2, 3, 0, 81]);
    assert!(failed.is_err());
}

#[tokio::test]
async fn user_and_password_of_a_url_are_sent_unless_the_request_has_others() {
    let (listener, at) = server().await;
    let target = target(&at.url().as_str().replace("http://", "http://me:pw@"));
    let client = Client::new(&target, settings());
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut heads = Vec::new();
        for _ in 0..2 {
            heads.push(read_to(&mut stream, b"\r\n\r\n").await);
            stream.write_all(EMPTY.as_bytes()).await.unwrap();
        }
        heads
    };
    let own = HeaderMap::from_iter([(header::AUTHORIZATION, HeaderValue::from_static("Bearer x"))]);
    let asking = async {
        client.send(Method::GET, &target, HeaderMap::new(), "").await.unwrap();
        client.send(Method::GET, &target, own, "").await.unwrap();
    };
    let (heads, ()) = tokio::join!(serving, asking);
    assert!(
        heads[0].contains("authorization: Basic bWU6cHc=\r\n") && heads[0].contains("accept: */*\r\n"),
        "{heads:?}"
    );
    assert!(
        heads[1].contains("authorization: Bearer x\r\n") && !heads[1].contains("Basic"),
        "{heads:?}"
    );
}

#[tokio::test]
async fn a_proxy_of_an_unknown_kind_is_an_error() {
    let (listener, _) = server().await;
    let target = target("http://server.test/mcp");
    let client = through(&format!("socks4://{}", listener.local_addr().unwrap()), &target);
    let failed = client
        .send(Method::GET, &target, HeaderMap::new(), "")
        .await
        .unwrap_err();
    let why = std::error::Error::source(&failed).unwrap().to_string();
    assert!(why.contains("`socks4`") && failed.is_connect(), "{why}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_begin_tls_costs_a_bounded_time() {
    let (_listener, target) = server().await;
    let url = target.url().as_str().replace("http:", "https:");
    let target = tests::target(&url);
    let failed = Client::new(&target, settings())
        .send(Method::GET, &target, HeaderMap::new(), "")
        .await;
    let failed = failed.unwrap_err();
    assert!(failed.is_timeout(), "{failed:?}");
    assert_eq!(failed.to_string(), "no connection could be opened within 10 s");
}

#[tokio::test]
async fn an_unknown_host_is_told_from_one_that_does_not_answer() {
    let target = target("http://no-such-host.invalid/");
    let unknown = Client::new(&target, settings())
        .send(Method::GET, &target, HeaderMap::new(), "")
        .await
        .unwrap_err();
    assert!(unknown.is_connect() && unknown.is_lookup(), "{unknown:?}");
    let (listener, target) = server().await;
    drop(listener);
    let refused = Client::new(&target, settings())
        .send(Method::GET, &target, HeaderMap::new(), "")
        .await
        .unwrap_err();
    assert!(refused.is_connect() && !refused.is_lookup(), "{refused:?}");
}

#[tokio::test]
async fn nothing_is_looked_up_for_a_host_with_given_addresses() {
    let (listener, at) = server().await;
    let target = target(&format!("http://no-such-host.invalid:{}/", at.url().port().unwrap()));
    let settings = Settings {
        addresses: Some(vec![listener.local_addr().unwrap()]),
        ..settings()
    };
    let client = Client::new(&target, settings);
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_to(&mut stream, b"one").await;
        stream.write_all(EMPTY.as_bytes()).await.unwrap();
    };
    tokio::join!(serving, post(&client, &target, "one"));
}

#[tokio::test]
async fn requests_to_another_origin_are_refused() {
    let (_listener, at) = server().await;
    let elsewhere = target("http://elsewhere.test/");
    let refused = Client::new(&at, settings())
        .send(Method::GET, &elsewhere, HeaderMap::new(), "")
        .await;
    assert!(matches!(refused, Err(Error::OtherOrigin)));
}
