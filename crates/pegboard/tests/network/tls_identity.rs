//! Client certificates that are replaced while a server is in use, and servers that are known by their SPIFFE id.

use std::{fs, net::SocketAddr, sync::Arc, time::Duration};

use futures_util::future::join_all;
use pegboard::{
    Config, Env, Format, Kind, Pegboard, ServerConfig, Toolset,
    config::{ClientCert, SpiffeId, Tls, Transport},
};
use pegboard_base::sync::Mutex;
use pegboard_testkit::{Era, Tool};
use rcgen::SanType;
use serde_json::json;
use tokio::{io::copy_bidirectional, net::TcpStream};

use crate::{
    fixtures::*,
    support::*,
    tls::{Authority, Front, front, pass_to, secured, trusting},
};

/// The client certificate of each connection.
type Clients = Arc<Mutex<Vec<Vec<u8>>>>;

/// Passes connections to a plain server, if they have a client certificate.
async fn recording(authority: &Authority, address: SocketAddr) -> (Front, Clients) {
    let clients = Clients::default();
    let seen = clients.clone();
    let settings = authority.signs(|_| {}).settings(Some(authority));
    let front = front(settings, move |mut stream| {
        let certificate = stream.get_ref().1.peer_certificates().map(|chain| chain[0].to_vec());
        seen.lock().push(certificate.unwrap_or_default());
        async move {
            if let Ok(mut other) = TcpStream::connect(address).await {
                let _ = copy_bidirectional(&mut stream, &mut other).await;
            }
        }
    })
    .await;
    (front, clients)
}

/// A board whose server is behind `front`.
fn board_behind(front: &Front, authority: &Authority, files: &ClientCert) -> Pegboard {
    let mut tls = trusting(authority);
    tls.client_cert = Some(files.clone());
    let endpoint = secured(&front.url("https", "localhost", "/mcp"), tls);
    let config = ServerConfig::new(Transport::http(endpoint));
    board(limited(config, |limits| limits.max_in_flight = 1000))
}

/// Writes a new pair to the files of a client certificate. Returns the certificate.
fn renew(authority: &Authority, files: &ClientCert) -> Vec<u8> {
    let identity = authority.signs(|_| {});
    fs::write(&files.cert, identity.certificate_pem()).unwrap();
    fs::write(&files.key, identity.key_pem()).unwrap();
    identity.certificate_der()
}

/// Opens connections until `is_enough`. Every call is answered.
async fn connect_until(tools: &Toolset, clients: &Clients, is_enough: impl Fn(&[Vec<u8>]) -> bool) {
    let connecting = async {
        for calls in 2.. {
            // More calls at once than before need another connection.
            let replies = join_all((0..calls).map(|_| hello(tools))).await;
            assert!(replies.iter().all(|reply| reply.text() == "hi"));
            if is_enough(&clients.lock()) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, connecting)
        .await
        .expect("the files are looked at");
}

#[tokio::test]
async fn a_client_certificate_is_replaced_while_the_server_is_in_use() {
    let authority = Authority::new();
    let files = authority.client();
    let first = renew(&authority, &files);
    let web = fake(Era::Modern).serve_http().await.unwrap();
    let (front, clients) = recording(&authority, web.address()).await;
    let board = board_behind(&front, &authority, &files);
    let tools = board.toolset();
    assert_greets(&tools, "with the first certificate").await;
    assert_eq!(clients.lock()[0], first);

    let second = renew(&authority, &files);
    connect_until(&tools, &clients, |shown| shown.contains(&second)).await;

    // Half of a pair is not used.
    let half = authority.signs(|_| {});
    fs::write(&files.cert, half.certificate_pem()).unwrap();
    let before = clients.lock().len();
    connect_until(&tools, &clients, |shown| shown.len() >= before + 5).await;
    assert!(clients.lock()[before..].iter().all(|shown| *shown == second));

    fs::write(&files.key, half.key_pem()).unwrap();
    connect_until(&tools, &clients, |shown| shown.contains(&half.certificate_der())).await;
    board.shutdown().await;
}

#[tokio::test]
async fn a_call_that_runs_is_not_ended_by_a_new_certificate() {
    let authority = Authority::new();
    let files = authority.client();
    let slow = Tool::new("slow").answers_text("done").waits_at("gate");
    let web = fake(Era::Modern).tool(slow).serve_http().await.unwrap();
    let (front, clients) = recording(&authority, web.address()).await;
    let board = board_behind(&front, &authority, &files);
    let tools = board.toolset();
    assert_greets(&tools, "before").await;
    let replace = async {
        // Other connections use the new certificate while the call waits.
        let second = renew(&authority, &files);
        connect_until(&tools, &clients, |shown| shown.contains(&second)).await;
        web.open_gate("gate");
    };
    let (reply, ()) = tokio::join!(call(&tools, "fx.slow", json!({})), replace);
    assert_eq!(reply.text(), "done");
    board.shutdown().await;
}

#[tokio::test]
async fn a_server_is_known_by_its_spiffe_id_and_not_by_its_host() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let web = fake(Era::Modern).serve_http().await.unwrap();
    let socket = fake(Era::Legacy).serve_ws().await.unwrap();
    let id = "spiffe://example.org/ns/tools/sa/search";
    let uris = |uris: &[&str]| -> Vec<SanType> {
        let uri = |uri: &&str| SanType::URI((*uri).try_into().unwrap());
        uris.iter().map(uri).collect()
    };
    let with_names =
        |authority: &Authority, names: Vec<SanType>| authority.signs(|params| params.subject_alt_names = names);
    let mut named_too = uris(&[id]);
    named_too.push(SanType::DnsName("localhost".try_into().unwrap()));
    let cases = [
        ("the id", with_names(&authority, uris(&[id])), true),
        ("the id and a name", with_names(&authority, named_too), true),
        ("the host name only", authority.signs(|_| {}), false),
        (
            "another id",
            with_names(&authority, uris(&["spiffe://example.org/ns/tools/sa/other"])),
            false,
        ),
        (
            "a longer id",
            with_names(&authority, uris(&[&format!("{id}/x")])),
            false,
        ),
        (
            "two ids",
            with_names(&authority, uris(&[id, "spiffe://example.org/x"])),
            false,
        ),
        ("another trust domain", with_names(&stranger, uris(&[id])), false),
    ];
    for (what, identity, is_reached) in cases {
        let mut tls = trusting(&authority);
        tls.server_id = Some(SpiffeId::parse(id).unwrap());
        let web_front = pass_to(identity.settings(None), web.address()).await;
        let socket_front = pass_to(identity.settings(None), socket.address()).await;
        for transport in [
            Transport::http(secured(&web_front.url("https", "127.0.0.1", "/mcp"), tls.clone())),
            Transport::websocket(secured(&socket_front.url("wss", "localhost", "/mcp"), tls)),
        ] {
            let reply = hello(&board(ServerConfig::new(transport)).toolset()).await;
            assert_eq!(!reply.is_error(), is_reached, "{what}: {}", reply.text());
            if !is_reached {
                let text = refused(&reply, Kind::Unavailable);
                let is_explained = match what {
                    "another trust domain" => text.contains("`tls.ca`"),
                    _ => text.contains("`tls.server_id`") && text.contains(id),
                };
                assert!(is_explained, "{what}: {text}");
            }
        }
    }
}

#[tokio::test]
async fn the_id_of_a_server_is_read_from_the_config() {
    let authority = Authority::new();
    let ca = authority.file();
    let ca = ca.display();
    let web = fake(Era::Modern).serve_http().await.unwrap();
    let id = "spiffe://example.org/search";
    let identity = authority.signs(|params| params.subject_alt_names = vec![SanType::URI(id.try_into().unwrap())]);
    let front = pass_to(identity.settings(None), web.address()).await;
    let url = front.url("https", "localhost", "/mcp");
    let loaded = |url: &str, tls: &str| {
        let text = format!("[servers.fx]\nurl = '{url}'\ntls = {{ {tls} }}\n");
        Config::from_text(&text, Format::Toml, &Env::new(|_| None))
    };
    for (tls, is_reached) in [
        (format!("ca = '{ca}', server_id = '{id}'"), true),
        (format!("ca = '{ca}', server_id = 'spiffe://example.org/other'"), false),
        (format!("ca = '{ca}'"), false),
    ] {
        let config = loaded(&url, &tls);
        assert_eq!(config.errors().count(), 0, "{tls}");
        let reply = hello(&Pegboard::open(config.config).toolset()).await;
        assert_eq!(!reply.is_error(), is_reached, "{tls}: {}", reply.text());
    }
    for (url, tls, problem) in [
        (&*url, format!("server_id = '{id}'"), "needs `tls.ca`"),
        (
            &url,
            format!("ca = '{ca}', insecure = true, server_id = '{id}'"),
            "cannot be checked with `insecure`",
        ),
        (
            &url,
            format!("ca = '{ca}', server_id = 'example.org/search'"),
            "is no SPIFFE id",
        ),
        (
            "http://localhost/mcp",
            format!("ca = '{ca}', server_id = '{id}'"),
            "needs a URL with https://",
        ),
    ] {
        let config = loaded(url, &tls);
        let found: Vec<String> = config.errors().map(ToString::to_string).collect();
        assert!(found.iter().any(|text| text.contains(problem)), "{tls}: {found:?}");
    }
}

#[test]
fn an_id_without_authorities_is_refused_in_code_too() {
    let mut tls = Tls::default();
    tls.server_id = Some(SpiffeId::parse("spiffe://example.org/search").unwrap());
    let endpoint = secured("https://localhost:1/mcp", tls);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let reply = hello(&board(ServerConfig::new(Transport::http(endpoint))).toolset()).await;
        let text = refused(&reply, Kind::Unavailable);
        assert!(text.contains("`tls.server_id` needs `tls.ca`"), "{text}");
    });
}
