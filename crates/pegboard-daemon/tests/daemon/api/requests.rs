//! Requests that are wrong, and the documents of those that are right.

use std::time::Duration;

use http::header::ALLOW;

use crate::api::fixture::{API, Fixture, Who, json, read};

#[tokio::test]
async fn a_wrong_request_is_told_what_is_wrong() {
    let fixture = Fixture::open("[serve]\nmax_body = '1KiB'\n").await;
    const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
    let long = format!(r#"{{"name": "{}"}}"#, "x".repeat(2000));
    for (method, path, headers, body, status, words) in [
        ("GET", "/api/v1/mcp/nothing", &[][..], "", 404, "nothing at this path"),
        ("GET", "/api/v2", &[], "", 404, "nothing at this path"),
        ("GET", "/api/v1/mcp/call", &[], "", 405, "Allow"),
        ("PATCH", "/api/v1/mcp/servers/fx", &[], "", 405, "Allow"),
        ("POST", "/api/v1/mcp/call", &[], "{}", 415, "application/json"),
        (
            "POST",
            "/api/v1/mcp/call",
            &[("content-type", "text/plain")],
            "{}",
            415,
            "application/json",
        ),
        ("POST", "/api/v1/mcp/reload", &[], "", 415, "application/json"),
        (
            "POST",
            "/api/v1/mcp/servers/fx/disable",
            &[("content-type", "application/x-www-form-urlencoded")],
            "",
            415,
            "application/json",
        ),
        ("POST", "/api/v1/mcp/call", JSON, "{", 400, "not JSON"),
        ("POST", "/api/v1/mcp/call", JSON, "", 400, "not JSON"),
        ("POST", "/api/v1/mcp/call", JSON, "[]", 422, "must be an object"),
        ("POST", "/api/v1/mcp/call", JSON, r#"{"name": 7}"#, 422, "`name`"),
        (
            "POST",
            "/api/v1/mcp/call",
            JSON,
            r#"{"name": "fx.read", "x": 1}"#,
            422,
            "unknown field",
        ),
        ("POST", "/api/v1/mcp/call", JSON, &long, 413, "1024 bytes"),
        ("POST", "/api/v1/mcp/tools/fx/read", JSON, "7", 422, "object"),
        ("POST", "/api/v1/mcp/tools/fx/reads", JSON, "{}", 404, "reads"),
        ("GET", "/api/v1/mcp/tools?provider=nobody", &[], "", 400, "no provider"),
        ("GET", "/api/v1/mcp/tools?server=nobody", &[], "", 404, "no server"),
        ("GET", "/api/v1/mcp/servers/no.body", &[], "", 404, "no server"),
        ("PUT", "/api/v1/mcp/servers/no.body", JSON, "{}", 422, "server name"),
        ("GET", "/api/v1/mcp/servers/%ff", &[], "", 400, "UTF-8"),
    ] {
        let response = fixture.send(Who::Nobody, method, path, headers, body).await;
        let allow = response.headers().get(ALLOW).cloned();
        assert_eq!(
            response.headers()["content-type"],
            "application/problem+json",
            "{method} {path}"
        );
        let (found, text) = read(response).await;
        assert_eq!(found, status, "{method} {path} {body}: {text}");
        let problem = json(&text);
        assert_eq!(
            (&problem["type"], &problem["status"]),
            (&"about:blank".into(), &status.into())
        );
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(words), "{method} {path} {body}: {detail}");
        assert_eq!(allow.is_some(), status == 405, "{method} {path}");
    }
}

#[tokio::test]
async fn the_status_and_the_tools_are_documents_of_the_command() {
    let fixture = Fixture::open("").await;
    let (status, text) = fixture.get(Who::Nobody, &format!("{API}/servers/fx")).await;
    assert_eq!(status, 200);
    let document = json(&text);
    assert_eq!(document["servers"][0]["name"], "fx");
    assert_eq!(document["servers"][0]["state"], "ready");
    assert_eq!(document["healthy"], true);
    let (_, text) = fixture.get(Who::Nobody, &format!("{API}/tools?server=fx")).await;
    let tools = json(&text);
    assert_eq!(tools["tools"].as_array().unwrap().len(), 5, "{tools}");
    assert_eq!(tools["tools"][0]["name"], "fx__add");
    assert_eq!(tools["tools"][0]["tool"], "add");
    let (_, text) = fixture
        .get(Who::Nobody, &format!("{API}/tools?provider=anthropic&server=fx"))
        .await;
    assert!(json(&text)[0]["input_schema"].is_object(), "{text}");
    let (_, text) = fixture.get(Who::Nobody, &format!("{API}/tools?search=peek")).await;
    assert_eq!(json(&text)["tools"][0]["name"], "other__peek");
}

#[tokio::test]
async fn a_reload_that_failed_is_told_to_its_caller_and_in_the_warnings() {
    let mut fixture = Fixture::open("").await;
    let mut requests = fixture.requests.take().unwrap();
    let reloads = fixture.reloads.clone();
    let path = format!("{API}/reload");
    let ((status, text), ()) = tokio::join!(fixture.post(Who::Nobody, &path, ""), async {
        let request = requests.next().await;
        request.answer(Err(reloads.note_failed("it has errors", Some("line 3"))));
    });
    assert_eq!(status, 409);
    assert_eq!(json(&text)["hint"], "line 3");
    let is_told = async || {
        let (_, text) = fixture.get(Who::Nobody, &format!("{API}/warnings")).await;
        let warnings = json(&text)["warnings"].as_array().unwrap().clone();
        warnings.iter().any(|warning| warning["id"] == "config:reload")
    };
    assert!(is_told().await);
    let ((status, _), ()) = tokio::join!(fixture.post(Who::Nobody, &path, ""), async {
        let request = requests.next().await;
        reloads.note_applied();
        request.answer(Ok(()));
    });
    assert_eq!(status, 200);
    assert!(!is_told().await);
}

#[tokio::test]
async fn a_change_whose_client_goes_away_or_that_fails_is_recorded_too() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.jsonl");
    let mut fixture = Fixture::with_settings(&format!("audit = {log:?}\n")).await;
    let reload = format!("{API}/reload");
    // Nobody answers the request, and the client does not wait.
    let gone = tokio::time::timeout(
        Duration::from_millis(50),
        fixture.send(Who::Operator, "POST", &reload, &[], ""),
    );
    assert!(gone.await.is_err());
    drop(fixture.requests.take());
    let (status, _) = fixture.post(Who::Operator, &reload, "").await;
    assert_eq!(status, 503);
    // Reading is no change.
    fixture.get(Who::Operator, &format!("{API}/servers/fx")).await;
    fixture.board.shutdown().await;
    let text = std::fs::read_to_string(&log).unwrap();
    let records: Vec<serde_json::Value> = text.lines().map(json).collect();
    let changes = records.iter().filter(|record| record["event"] == "change");
    let outcomes: Vec<_> = changes
        .map(|record| (&record["principal"], &record["outcome"]))
        .collect();
    let operator = "Operator".into();
    assert_eq!(
        outcomes,
        [(&operator, &"unknown".into()), (&operator, &"failed".into())]
    );
}

#[tokio::test]
async fn nothing_is_changed_while_a_required_log_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("audit.jsonl");
    let fixture = Fixture::with_settings(&format!("audit = {{ file = {log:?}, required = true }}\n")).await;
    let disable = format!("{API}/servers/fx/disable");
    std::fs::create_dir(&log).unwrap();
    let (status, text) = fixture.post(Who::Admin, &disable, "").await;
    assert_eq!(status, 503, "{text}");
    assert!(
        json(&text)["hint"].as_str().unwrap().contains("`audit` is `required`"),
        "{text}"
    );
    let (_, text) = fixture.get(Who::Read, &format!("{API}/servers/fx")).await;
    assert_eq!(json(&text)["servers"][0]["state"], "ready");
    std::fs::remove_dir(&log).unwrap();
    let (status, text) = fixture.post(Who::Admin, &disable, "").await;
    assert_eq!(status, 200, "{text}");
    fixture.board.shutdown().await;
    let text = std::fs::read_to_string(&log).unwrap();
    let records = text.lines().map(json).filter(|record| record["event"] == "change");
    let outcomes: Vec<String> = records.map(|record| record["outcome"].to_string()).collect();
    assert!(
        outcomes.ends_with(&["\"begun\"".to_owned(), "\"done\"".to_owned()]),
        "{outcomes:?}"
    );
}
