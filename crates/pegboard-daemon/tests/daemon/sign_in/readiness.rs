//! What probes, dashboards and programs are told of a server that waits only for people to sign in.

use std::time::Duration;

use pegboard::State;
use serde_json::Value;

use crate::sign_in::{
    browser::{Browser, PATIENCE, send},
    fixture::{Site, secret},
};

/// Waits until the server has asked for a token.
async fn asked(site: &Site) {
    let has_asked = || {
        site.board
            .status()
            .servers
            .iter()
            .any(|row| row.name.as_str() == "fx" && row.state == State::NeedsAuth)
    };
    let waiting = async {
        while !has_asked() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
}

#[tokio::test]
async fn a_required_server_that_waits_for_people_keeps_nobody_from_the_gateway() {
    let site = Site::required().await;
    asked(&site).await;
    let probe = send("GET", &site.at("/readyz"), &[], "").await;
    let ready: Value = serde_json::from_str(&probe.body).unwrap();
    let status = probe.status;
    assert_eq!(
        (status, &ready["ready"], &ready["status"]),
        (200, &true.into(), &"ready".into()),
        "{ready}"
    );
    assert_eq!(ready["not_ready"], serde_json::json!([]), "{ready}");
    assert_eq!(
        ready["needs_auth"],
        serde_json::json!([{"server": "fx", "state": "needs_auth"}])
    );
    // Nor is a probe told who else waits.
    assert!(site.needs_sign_in("bob").await);
    let again: Value = serde_json::from_str(&send("GET", &site.at("/readyz"), &[], "").await.body).unwrap();
    assert_eq!(again, ready);
    let (_, health) = site.get("ada", "/health").await;
    let rows = health["servers"]["needs_auth"].as_array().unwrap();
    let whose: Vec<_> = rows.iter().map(|row| &row["principal"]).collect();
    assert_eq!(whose, [&Value::Null, &"bob".into()], "{health}");
    assert_eq!(health["status"], "ready", "{health}");
    assert_eq!(health["servers"]["troubled"], serde_json::json!([]), "{health}");
    assert_eq!(
        health["servers"]["needs_auth"][0]["hint"], "sign in with `pegboard login fx`",
        "{health}"
    );
    let (_, servers) = site.get("ada", "/api/v1/mcp/servers").await;
    assert_eq!(
        (&servers["healthy"], &servers["ready"]),
        (&true.into(), &true.into()),
        "{servers}"
    );
    site.close().await;
}

#[tokio::test]
async fn a_program_is_told_which_route_gives_the_link() {
    let site = Site::new().await;
    let (status, reply) = site.post("ada", "/api/v1/mcp/call", r#"{"name": "fx.hello"}"#).await;
    assert_eq!(status, 502, "{reply}");
    let hint = "`POST /api/v1/mcp/servers/fx/signin` returns the link with which the user signs in, in a browser";
    assert_eq!(reply["hint"], hint, "{reply}");
    let authorization = format!("Bearer {}", secret("ada"));
    let headers = [
        ("authorization", authorization.as_str()),
        ("content-type", "application/json"),
        ("accept", "text/event-stream"),
    ];
    let events = send(
        "POST",
        &site.at("/api/v1/mcp/call"),
        &headers,
        r#"{"name": "fx.hello"}"#,
    )
    .await;
    assert!(events.body.contains(&format!("\"hint\":\"{hint}\"")), "{}", events.body);
    let (_, tools) = site.get("ada", "/api/v1/mcp/tools").await;
    assert_eq!(tools["unavailable"][0]["hint"], hint, "{tools}");
    let (_, health) = site.get("ada", "/health").await;
    let hints = health["servers"]["needs_auth"].to_string();
    assert!(hints.contains("pegboard login fx --principal ada"), "{health}");
    let mut browser = Browser::default();
    let link = site.link("ada").await;
    site.sign_in(&mut browser, &link, "ada").await;
    let (status, reply) = site.post("ada", "/api/v1/mcp/call", r#"{"name": "fx.hello"}"#).await;
    assert_eq!((status, &reply["text"]), (200, &"hi".into()), "{reply}");
    site.close().await;
}
