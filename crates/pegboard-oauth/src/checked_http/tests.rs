//! Which requests are made, and that refused ones do not connect to anything.

use std::{
    collections::HashMap,
    future::Future,
    io,
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use axum::{Router, body::Bytes, http::StatusCode, response::IntoResponse, routing::get};
use pegboard_base::sync::Mutex;
use tokio::net::TcpListener;

use super::*;
use crate::account::OAuthAccount;

/// Answers with the next of several lists of addresses, and repeats the last one.
#[derive(Default)]
struct FakeDns {
    names: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    asked: AtomicUsize,
}

impl FakeDns {
    fn new(names: &[(&str, &[&[&str]])]) -> Arc<Self> {
        let parse = |list: &&[&str]| {
            list.iter()
                .map(|address| address.parse().unwrap())
                .collect::<Vec<IpAddr>>()
        };
        let names = names.iter().map(|(name, lists)| {
            let mut lists: Vec<_> = lists.iter().map(parse).collect();
            lists.reverse();
            ((*name).to_owned(), lists)
        });
        Arc::new(Self {
            names: Mutex::new(names.collect()),
            asked: AtomicUsize::new(0),
        })
    }
}

impl Resolver for FakeDns {
    fn resolve<'a>(&'a self, name: &'a str) -> Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send + 'a>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut names = self.names.lock();
        let found = names.get_mut(name).map(|lists| match lists.len() {
            1 => lists[0].clone(),
            _ => lists.pop().unwrap(),
        });
        Box::pin(async move { found.ok_or_else(|| io::Error::other("no such name")) })
    }
}

fn account(url: &str) -> OAuthAccount {
    OAuthAccount::new("fx".parse().unwrap(), Url::parse(url).unwrap(), Arc::default())
}

/// Checks a URL for a server. `Ok` has the addresses that would be connected to.
async fn checked(dns: &Arc<FakeDns>, server: &str, url: &str) -> Result<Option<Vec<SocketAddr>>, HttpError> {
    let account = account(server);
    let mut http = CheckedHttp::with_resolver(dns.clone());
    http.reached = Some(vec!["mcp.corp".to_owned(), "split.corp".to_owned()]);
    http.check(&ConfiguredOrigins::new(&account), &Url::parse(url).unwrap())
        .await
}

#[tokio::test]
async fn a_public_server_that_is_known_by_its_address_cannot_name_private_ones() {
    let (dns, inside) = (FakeDns::new(&[]), "https://10.0.0.1/");
    assert!(checked(&dns, "https://93.184.216.34/mcp", inside).await.is_err());
    assert!(checked(&dns, "https://10.0.0.7/mcp", inside).await.is_ok());
}

#[tokio::test]
async fn a_public_server_cannot_name_addresses_of_other_networks() {
    let dns = FakeDns::new(&[
        ("mcp.example", &[&["93.184.216.34"]]),
        ("good.example", &[&["93.184.216.35", "2606:4700::1111"]]),
        ("mixed.example", &[&["93.184.216.35", "10.0.0.1"]]),
        ("localhost", &[&["127.0.0.1"]]),
        ("inside.example", &[&["fd00::1"]]),
        ("metadata.example", &[&["169.254.169.254"]]),
    ]);
    assert!(
        checked(&dns, "https://mcp.example/mcp", "https://good.example/token")
            .await
            .is_ok()
    );
    for url in [
        "http://good.example/",
        "ftp://good.example/",
        "https://user@good.example/",
        "https://mixed.example/",
        "https://localhost/",
        "https://inside.example/",
        "https://metadata.example/latest/meta-data/",
        "https://127.0.0.1/",
        "https://127.1/",
        "https://2130706433/",
        "https://0177.0.0.1/",
        "https://0x7f000001/",
        "https://10.0.0.1/",
        "https://172.16.5.5/",
        "https://192.168.0.1/",
        "https://100.64.0.1/",
        "https://169.254.169.254/",
        "https://0.0.0.0/",
        "https://224.0.0.1/",
        "https://[::1]/",
        "https://[::]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:a9fe:a9fe]/",
        "https://[64:ff9b::a9fe:a9fe]/",
        "https://[fc00::1]/",
        "https://[fe80::1]/",
    ] {
        let error = checked(&dns, "https://mcp.example/mcp", url).await.unwrap_err();
        assert!(matches!(error, HttpError::Refused { .. }), "{url}: {error}");
    }
}

#[tokio::test]
async fn a_server_may_name_addresses_of_its_own_network() {
    let dns = FakeDns::new(&[
        ("mcp.corp", &[&["10.1.1.1"]]),
        ("sso.corp", &[&["10.1.1.2"]]),
        ("localhost", &[&["127.0.0.1"]]),
        ("split.corp", &[&["10.1.1.1", "93.184.216.34"]]),
        ("rebound.example", &[&["10.1.1.1"]]),
    ]);
    for (server, url) in [
        ("https://mcp.corp/mcp", "https://sso.corp/token"),
        ("https://10.1.1.1/mcp", "https://192.168.3.3/token"),
        ("http://localhost:1/mcp", "http://localhost:2/token"),
        ("http://127.0.0.1:1/mcp", "http://[::1]:2/token"),
        // The server's own origin is reached as the config says.
        (
            "http://mcp.corp/mcp",
            "http://mcp.corp/.well-known/oauth-protected-resource",
        ),
    ] {
        assert!(checked(&dns, server, url).await.is_ok(), "{server} {url}");
    }
    for (server, url) in [
        ("https://mcp.corp/mcp", "https://127.0.0.1/token"),
        ("https://mcp.corp/mcp", "http://sso.corp/token"),
        ("https://split.corp/mcp", "https://sso.corp/token"),
        // Whoever owns the name says that it is private, but the server is not there.
        ("https://rebound.example/mcp", "https://sso.corp/token"),
        ("http://mcp.corp/mcp", "https://sso.corp/token"),
        ("http://localhost:1/mcp", "https://sso.corp/token"),
        ("http://localhost:1/mcp", "http://169.254.169.254/"),
        ("http://169.254.1.1/mcp", "https://169.254.169.254/"),
    ] {
        assert!(checked(&dns, server, url).await.is_err(), "{server} {url}");
    }
}

#[tokio::test]
async fn an_origin_that_the_config_names_may_be_on_a_private_network() {
    let dns = FakeDns::new(&[("sso.corp", &[&["10.1.1.2"]]), ("mcp.example", &[&["93.184.216.34"]])]);
    let mut account = account("https://mcp.example/mcp");
    account.settings = Arc::new(pegboard_config::OAuthConfig {
        issuer: Some("https://sso.corp/realm".to_owned()),
        ..pegboard_config::OAuthConfig::default()
    });
    let http = CheckedHttp::with_resolver(dns);
    let trust = ConfiguredOrigins::new(&account);
    for (url, is_allowed) in [
        ("https://sso.corp/token", true),
        ("https://sso.corp:8443/token", false),
        ("http://sso.corp/token", false),
    ] {
        let checked = http.check(&trust, &Url::parse(url).unwrap()).await;
        assert_eq!(checked.is_ok(), is_allowed, "{url}");
    }
}

/// A name that is public when it is checked, and this machine when it is resolved again.
#[tokio::test]
async fn a_name_that_only_a_proxy_knows_is_used_if_the_config_names_it() {
    let dns = FakeDns::new(&[
        ("known.example", &[&["93.184.216.34"]]),
        ("inside.example", &[&["10.0.0.1"]]),
    ]);
    let mut http = CheckedHttp::with_resolver(dns);
    http.has_proxy = true;
    let mut account = account("https://mcp.example/mcp");
    let settings = pegboard_config::OAuthConfig {
        issuer: Some("https://login.example/tenant".to_owned()),
        ..pegboard_config::OAuthConfig::default()
    };
    account.settings = Arc::new(settings);
    let trust = ConfiguredOrigins::new(&account);
    let check = async |url: &str| http.check(&trust, &Url::parse(url).unwrap()).await;
    // The config names both, so the proxy finds them.
    assert_eq!(check("https://mcp.example/.well-known/x").await, Ok(None));
    assert_eq!(check("https://login.example/token").await, Ok(None));
    assert!(
        check("https://known.example/")
            .await
            .is_ok_and(|addresses| addresses.is_some())
    );
    assert!(matches!(
        check("https://inside.example/").await,
        Err(HttpError::Refused { .. })
    ));
    // The server names it: the proxy could lead to a network behind it.
    let error = check("https://elsewhere.example/").await.unwrap_err();
    assert!(matches!(error, HttpError::Unchecked { .. }), "{error}");
    assert!(error.is_temporary() && error.hint().unwrap().contains("`issuer`"));
}

#[tokio::test]
async fn a_name_is_resolved_once_for_a_request() {
    let dns = FakeDns::new(&[("rebind.example", &[&["93.184.216.34"], &["127.0.0.1"]])]);
    let addresses = checked(&dns, "https://93.184.216.1/mcp", "https://rebind.example/").await;
    let address: SocketAddr = "93.184.216.34:443".parse().unwrap();
    assert_eq!(addresses.unwrap(), Some(vec![address]));
    assert_eq!(dns.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_request_goes_to_the_checked_address_and_no_other() {
    let (port, hits) = serve(Router::new().route("/", get(|| async { "here" }))).await;
    // Only the fake resolver knows the name.
    let dns = FakeDns::new(&[("as.localhost", &[&["127.0.0.1"]])]);
    let http = CheckedHttp::with_resolver(dns.clone());
    let account = account("http://localhost/mcp");
    let url = Url::parse(&format!("http://as.localhost:{port}/")).unwrap();
    let response = http.get(&ConfiguredOrigins::new(&account), &url).await.unwrap();
    assert_eq!((response.status, &response.body[..]), (200, &b"here"[..]));
    assert_eq!(dns.asked.load(Ordering::Relaxed), 1);
    assert_eq!(hits.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_refused_address_is_not_connected_to() {
    let (port, hits) = serve(Router::new()).await;
    let dns = FakeDns::new(&[
        ("mcp.example", &[&["93.184.216.34"]]),
        ("evil.example", &[&["127.0.0.1"]]),
    ]);
    let http = CheckedHttp::with_resolver(dns);
    let account = account("https://mcp.example/mcp");
    for host in ["evil.example", "127.0.0.1", "localhost", "[::1]", "2130706433"] {
        for scheme in ["http", "https"] {
            let url = Url::parse(&format!("{scheme}://{host}:{port}/")).unwrap();
            assert!(
                http.get(&ConfiguredOrigins::new(&account), &url).await.is_err(),
                "{url}"
            );
            assert!(
                http.post_form(&ConfiguredOrigins::new(&account), &url, &[], None)
                    .await
                    .is_err(),
                "{url}"
            );
        }
    }
    assert_eq!(hits.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn redirects_stay_in_their_origin_and_end() {
    let (elsewhere, hits) = serve(Router::new()).await;
    let app = Router::new()
        .route("/once", get(|| async { (StatusCode::FOUND, [("location", "/there")]) }))
        .route("/there", get(|| async { "there" }))
        .route("/loop", get(|| async { (StatusCode::FOUND, [("location", "/loop")]) }))
        .route(
            "/lost",
            get(|| async { (StatusCode::FOUND, [("location", "http://")]) }),
        )
        .route(
            "/away",
            get(move || async move {
                (
                    StatusCode::FOUND,
                    [("location", format!("http://localhost:{elsewhere}/"))],
                )
            })
            .post(move || async move {
                (
                    StatusCode::TEMPORARY_REDIRECT,
                    [("location", format!("http://127.0.0.1:{elsewhere}/"))],
                )
            }),
        );
    let (port, _) = serve(app).await;
    let http = CheckedHttp::new();
    let account = account("http://127.0.0.1/mcp");
    let at = |path: &str| Url::parse(&format!("http://127.0.0.1:{port}{path}")).unwrap();
    let trust = ConfiguredOrigins::new(&account);
    assert_eq!(http.get(&trust, &at("/once")).await.unwrap().body, b"there");
    for path in ["/loop", "/lost", "/away"] {
        let error = http.get(&trust, &at(path)).await.unwrap_err();
        assert!(error.to_string().contains("redirect"), "{path}: {error}");
    }
    let secret = HeaderValue::from_static("Basic c2VjcmV0");
    assert!(http.post_form(&trust, &at("/away"), &[], Some(secret)).await.is_err());
    assert_eq!(hits.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_long_response_is_given_up() {
    let app = Router::new()
        .route(
            "/big",
            get(|| async { Bytes::from(vec![b'x'; MAX_BODY + 1]).into_response() }),
        )
        .route(
            "/full",
            get(|| async { Bytes::from(vec![b'x'; MAX_BODY]).into_response() }),
        );
    let (port, _) = serve(app).await;
    let http = CheckedHttp::new();
    let account = account("http://127.0.0.1/mcp");
    let at = |path: &str| Url::parse(&format!("http://127.0.0.1:{port}{path}")).unwrap();
    assert_eq!(
        http.get(&ConfiguredOrigins::new(&account), &at("/full"))
            .await
            .unwrap()
            .body
            .len(),
        MAX_BODY
    );
    assert!(
        http.get(&ConfiguredOrigins::new(&account), &at("/big"))
            .await
            .unwrap_err()
            .to_string()
            .contains("1 MiB")
    );
}

#[tokio::test]
async fn a_silent_server_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/token?code=s3cret", listener.local_addr().unwrap())).unwrap();
    let http = CheckedHttp::new();
    let account = account("http://127.0.0.1/mcp");
    let trust = ConfiguredOrigins::new(&account);
    let silent = async {
        let (_held, _) = listener.accept().await.unwrap();
        tokio::time::pause();
        std::future::pending::<()>().await;
    };
    let error = tokio::select! {
        result = http.get(&trust, &url) => result.unwrap_err(),
        () = silent => unreachable!(),
    };
    assert!(
        error.is_temporary() && error.to_string().contains("within 10 s"),
        "{error}"
    );
    assert!(!error.to_string().contains("s3cret"), "{error}");
}

/// Serves a router and counts connections.
async fn serve(app: Router) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let hits = Arc::new(AtomicUsize::new(0));
    let counted = hits.clone();
    let app = app.layer(axum::middleware::from_fn(
        move |request, next: axum::middleware::Next| {
            counted.fetch_add(1, Ordering::Relaxed);
            next.run(request)
        },
    ));
    tokio::spawn(async move { axum::serve(listener, app).await });
    (port, hits)
}
