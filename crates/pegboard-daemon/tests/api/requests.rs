//! Requests that are wrong, and the documents of those that are right.

use http::header::ALLOW;

use crate::fixture::{API, Fixture, Who, json, read};

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
        request.answer(Err(reloads.failed("it has errors", Some("line 3"))));
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
        reloads.applied();
        request.answer(Ok(()));
    });
    assert_eq!(status, 200);
    assert!(!is_told().await);
}
