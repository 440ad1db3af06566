//! Credentials: where they are sent, and where they never appear.

use pegboard::{
    Kind, Secret, ServerConfig,
    config::{Auth, Transport},
};
use pegboard_testkit::{Era, Fault, When, refused_address};

use crate::{fixtures::*, support::*};

#[tokio::test]
async fn user_and_password_of_a_url_become_basic_credentials() {
    for era in BOTH_ERAS {
        let fake = fake(era).serve_http().await.unwrap();
        let url = fake.url().replace("http://", "http://me:p%40ss@");
        let board = board(at(&url));
        assert_greets(&board.toolset(), "with credentials").await;
        board.shutdown().await;
        for received in fake.requests() {
            assert_eq!(
                received.header("authorization"),
                Some("Basic bWU6cEBzcw=="),
                "{}",
                received.method
            );
        }
    }
    let fake = fake(Era::Legacy).serve_sse().await.unwrap();
    let board = board(sse(&fake.url().replace("http://", "http://me:p%40ss@")));
    assert_greets(&board.toolset(), "with credentials").await;
    assert!(
        fake.requests()
            .iter()
            .all(|received| received.header("authorization") == Some("Basic bWU6cEBzcw=="))
    );
}

#[tokio::test]
async fn credentials_in_the_config_stand_before_those_of_the_url() {
    let fake = fake(Era::Modern).bearer("t0ken").serve_http().await.unwrap();
    let mut endpoint = endpoint(&fake.url().replace("http://", "http://me:pw@"));
    endpoint.auth = Auth::Bearer(Secret::new("t0ken"));
    assert_greets(
        &board(ServerConfig::new(Transport::http(endpoint))).toolset(),
        "with both",
    )
    .await;
}

#[tokio::test]
async fn no_secret_appears_in_replies_status_or_debug_whatever_goes_wrong() {
    const SECRETS: [&str; 5] = ["hunter2", "t0ken-canary", "k3y-canary", "query-canary", "aHVudGVyMg"];
    let refused_port = refused_address().await.unwrap();
    let broken = |fault: Fault| async move {
        fake(Era::Legacy)
            .fault_on(When::always(), fault)
            .serve_http()
            .await
            .unwrap()
    };
    let unauthorised = broken(status_fault(401, "")).await;
    let portal = broken(Fault::HtmlPage).await;
    let elsewhere = broken(Fault::Redirect {
        status: 307,
        to: "http://other.invalid/".to_owned(),
    })
    .await;
    let circle = broken(Fault::Redirect {
        status: 307,
        to: "/mcp".to_owned(),
    })
    .await;
    let cut = broken(Fault::DiesBeforeExecuting { code: 1 }).await;
    let places = [
        refused_port,
        unauthorised.address(),
        portal.address(),
        elsewhere.address(),
        circle.address(),
        cut.address(),
    ];
    let hosts = places
        .iter()
        .map(ToString::to_string)
        .chain(["no-such-host.invalid".to_owned()]);
    for host in hosts {
        for scheme in ["http", "https", "ws", "wss"] {
            let mut endpoint = endpoint(&format!("{scheme}://user:hunter2@{host}/mcp?key=query-canary"));
            endpoint.headers.insert("X-Key".to_owned(), Secret::new("k3y-canary"));
            endpoint.auth = Auth::Bearer(Secret::new("t0ken-canary"));
            let transport = match scheme {
                "http" | "https" => Transport::auto(endpoint),
                _ => Transport::websocket(endpoint),
            };
            let config = limited(ServerConfig::new(transport), |limits| limits.connect_timeout = secs(5));
            let debug = format!("{config:?}");
            let board = board(config);
            let reply = hello(&board.toolset()).await;
            assert!(reply.is_error());
            let seen = [
                debug,
                format!("{reply:?} {}", serde_json::to_string(&reply).unwrap()),
                format!(
                    "{:?} {}",
                    board.status(),
                    serde_json::to_string(&board.status()).unwrap()
                ),
                format!("{board:?} {:?}", board.toolset()),
            ];
            for text in seen {
                for secret in SECRETS {
                    assert!(!text.contains(secret), "{secret} in {text}");
                }
            }
            board.shutdown().await;
        }
    }
}

#[tokio::test]
async fn a_header_that_cannot_be_sent_is_named_without_its_value() {
    let fake = fake(Era::Legacy).serve_http().await.unwrap();
    for (name, value) in [("X-Key", "hunter2\r\nHost: evil"), ("bad name", "hunter2")] {
        for scheme in ["http", "ws"] {
            let mut endpoint = endpoint(&fake.url().replace("http", scheme));
            endpoint.headers.insert(name.to_owned(), Secret::new(value));
            let transport = match scheme {
                "http" => Transport::auto(endpoint),
                _ => Transport::websocket(endpoint),
            };
            let text = refused(
                &hello(&board(ServerConfig::new(transport)).toolset()).await,
                Kind::Unavailable,
            );
            assert!(text.contains(name) && !text.contains("hunter2"), "{text}");
        }
    }
    assert!(fake.requests().is_empty());
}

/// Run by the test below in a process with proxy variables; harmless in this one.
#[tokio::test]
async fn this_machine_is_reached_directly() {
    for era in BOTH_ERAS {
        let fake = fake(era).serve_http().await.unwrap();
        assert_greets(&board(at(&fake.url())).toolset(), "directly").await;
        let by_name = fake.url().replace("127.0.0.1", "localhost");
        assert_greets(&board(at(&by_name)).toolset(), "by name").await;
    }
}

#[tokio::test]
async fn proxy_variables_do_not_stand_before_this_machine() {
    let nobody = format!("http://{}", refused_address().await.unwrap());
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "secrets::this_machine_is_reached_directly"]);
    for variable in [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
    ] {
        command.env(variable, &nobody);
    }
    command.env_remove("NO_PROXY").env_remove("no_proxy");
    let output = command.output().await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}
