//! What is sent, and when the provider is asked for it.

use std::{collections::HashSet, time::Duration};

use pegboard::{
    Config, Credential, Pegboard, Secret,
    config::{Auth, Transport},
};
use pegboard_testkit::{Era, Fault, When};
use serde_json::json;

use crate::{credentials::fixtures::*, support::*};

#[tokio::test]
async fn without_a_lifetime_every_request_has_a_credential_of_its_own() {
    for place in REQUESTS {
        let issuer = Issuer::new(|number| Ok(Credential::bearer(token(number))));
        let (fake, board) = place.board(&fake(place.era()), &issuer).await;
        let tools = board.toolset();
        for _ in 0..3 {
            assert_greeted(&hello(&tools).await);
        }
        board.shutdown().await;
        let sent = authorizations(&fake);
        assert!(sent.len() >= 5, "{sent:?}");
        assert!(
            sent.iter().all(|header| header.starts_with("Bearer t0ken-")),
            "{sent:?}"
        );
        let different: HashSet<_> = sent.iter().collect();
        assert_eq!(different.len(), sent.len(), "{place:?} {sent:?}");
        let asked = issuer.asked();
        assert_eq!(asked[0], Asked::FirstUse);
        assert!(asked[1..].iter().all(|asked| *asked == Asked::Refresh), "{asked:?}");
    }
}

#[tokio::test]
async fn a_credential_is_sent_with_every_request_while_it_is_valid() {
    for place in PLACES {
        let issuer = Issuer::counting();
        let (fake, board) = place.board(&fake(place.era()).bearer(&token(1)), &issuer).await;
        let tools = board.toolset();
        for _ in 0..3 {
            assert_greeted(&hello(&tools).await);
        }
        board.shutdown().await;
        let sent = authorizations(&fake);
        let expected = format!("Bearer {}", token(1));
        assert!(
            !sent.is_empty() && sent.iter().all(|header| *header == expected),
            "{place:?} {sent:?}"
        );
        assert_eq!(issuer.asked(), [Asked::FirstUse], "{place:?}");
    }
}

#[tokio::test]
async fn a_credential_whose_time_is_over_is_refreshed() {
    for place in REQUESTS {
        let issuer = Issuer::new(|number| Ok(Credential::bearer(token(number)).valid_for(Duration::ZERO)));
        let (fake, board) = place.board(&fake(place.era()), &issuer).await;
        assert_greeted(&hello(&board.toolset()).await);
        board.shutdown().await;
        assert_eq!(issuer.asked()[..2], [Asked::FirstUse, Asked::Refresh]);
        assert!(authorizations(&fake).contains(&format!("Bearer {}", token(2))));
    }
}

#[tokio::test]
async fn headers_of_the_credential_replace_those_of_the_config() {
    for place in PLACES {
        let issuer = Issuer::new(|_| {
            let credential = Credential::bearer("of-the-program").header("x-tenant", "blue-tenant");
            Ok(credential.valid_for(HOUR))
        });
        let fake = place.serve(&fake(place.era())).await;
        let mut config = place.config(&fake.url());
        let Transport::Remote { endpoint, .. } = &mut config.transport else {
            panic!("{config:?}");
        };
        endpoint.auth = Auth::Bearer(Secret::new("of-the-config"));
        for (name, value) in [("X-Tenant", "red-tenant"), ("X-Region", "eu-west-1")] {
            endpoint.headers.insert(name.to_owned(), Secret::new(value));
        }
        let board = board_with(config, &issuer);
        assert_greeted(&hello(&board.toolset()).await);
        board.shutdown().await;
        for received in fake.requests().iter().filter(|received| !received.headers.is_empty()) {
            let sent = ["authorization", "x-tenant", "x-region"].map(|name| received.header(name).unwrap_or("none"));
            assert_eq!(sent, ["Bearer of-the-program", "blue-tenant", "eu-west-1"], "{place:?}");
        }
    }
}

#[tokio::test]
async fn an_empty_credential_leaves_the_request_as_the_config_says() {
    let issuer = Issuer::new(|_| Ok(Credential::none()));
    let fake = fake(Era::Modern).bearer("of-the-config").serve_http().await.unwrap();
    let mut endpoint = endpoint(&fake.url());
    endpoint.auth = Auth::Bearer(Secret::new("of-the-config"));
    let board = board_with(pegboard::ServerConfig::new(Transport::http(endpoint)), &issuer);
    assert_greeted(&hello(&board.toolset()).await);
}

#[tokio::test]
async fn a_redirect_carries_the_credential_within_its_origin_only() {
    let redirect = |to: &str| Fault::Redirect {
        status: 307,
        to: to.to_owned(),
    };
    let other = fake(Era::Modern).serve_http().await.unwrap();
    let issuer = Issuer::counting();
    let server = fake(Era::Modern)
        .bearer(&token(1))
        .fault_on(When::method("tools/call").first(1), redirect("/mcp"))
        .fault_on(When::method("tools/call").nth(3), redirect(&other.url()));
    let (fake, board) = Place::Http(Era::Modern).board(&server, &issuer).await;
    let tools = board.toolset();
    assert_greeted(&hello(&tools).await);
    assert_eq!(fake.count("tools/call"), 2);
    let reply = hello(&tools).await;
    assert_contains(&reply.text(), &["another origin"]);
    assert!(other.requests().is_empty());
    assert_eq!(issuer.asked(), [Asked::FirstUse]);
}

#[tokio::test]
async fn servers_that_the_provider_does_not_cover_and_servers_in_process_get_no_credential() {
    let issuer = Issuer::of_processes(|_| Err("not asked".into()));
    let (remote, board) = Place::Http(Era::Modern).board(&fake(Era::Modern), &issuer).await;
    assert_greeted(&hello(&board.toolset()).await);
    assert!(authorizations(&remote).iter().all(|header| header == "none"));
    assert_eq!(issuer.asked(), []);

    let issuer = Issuer::new(|_| Err("not asked".into()));
    let (_unused, handle) = fake(Era::Legacy).connect();
    let board = Pegboard::builder(Config::default())
        .in_process(name("fx"), dialer(&handle))
        .credentials(issuer.clone())
        .open();
    assert_greeted(&call(&board.toolset(), "fx.hello", json!({})).await);
    assert_eq!(issuer.asked(), []);
}

#[tokio::test]
async fn a_websocket_gets_a_credential_at_each_handshake() {
    let issuer = Issuer::new(|number| Ok(Credential::bearer(token(number))));
    let (fake, board) = Place::WebSocket.board(&fake(Era::Legacy), &issuer).await;
    let tools = board.toolset();
    assert_greeted(&hello(&tools).await);
    let before = authorizations(&fake).len();
    fake.restart().await.unwrap();
    until_greeted(&tools).await;
    let sent = authorizations(&fake);
    assert!(sent.len() > before, "{sent:?}");
    let different: HashSet<_> = sent.iter().collect();
    assert_eq!(different.len(), 2, "one for each handshake: {sent:?}");
    assert!(issuer.asked()[1..].iter().all(|asked| *asked == Asked::Refresh));
}
