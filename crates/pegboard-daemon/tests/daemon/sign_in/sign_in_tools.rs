//! How a client finds the sign-in page of a server whose tools it does not see yet.

use serde_json::{Value, json};

use crate::sign_in::{
    browser::Browser,
    client::{Client, text},
    fixture::Site,
};

fn link(response: &Value) -> &str {
    let url = response["result"]["_meta"]["pegboard/sign_in_url"].as_str();
    url.unwrap_or_else(|| panic!("{response}"))
}

#[tokio::test]
async fn a_server_that_waits_for_a_sign_in_has_a_tool_that_gives_the_link() {
    let site = Site::new().await;
    for client in [
        Client::modern(&site, "ada", json!({})),
        Client::legacy(&site, "bob", json!({})).await,
    ] {
        assert_eq!(client.tools().await, ["open__peek", "fx__sign_in"]);
        let offered = client.call("fx__sign_in").await;
        assert_eq!(offered["result"]["isError"], false, "{offered}");
        assert!(text(&offered).ends_with(link(&offered)), "{offered}");
        assert!(!text(&offered).contains("Go on without"), "{offered}");
        let mut browser = Browser::default();
        let page = site.sign_in(&mut browser, link(&offered), client.who).await;
        assert!(page.body.contains("You are signed in"), "{}", page.body);
        assert_eq!(client.tools().await, ["fx__hello", "open__peek"]);
        let again = client.call("fx__sign_in").await;
        assert!(text(&again).contains("is signed in to `fx`"), "{again}");
        assert_eq!(text(&client.hello(json!({})).await), "hi");
    }
    site.close().await;
}

#[tokio::test]
async fn the_tool_is_named_like_the_others_of_the_view_and_shown_where_the_server_is() {
    let site = Site::new().await;
    for (path, who, expected) in [
        ("/mcp/view/dotted", "ada", vec!["fx.sign_in"]),
        ("/mcp/fx", "ada", vec!["sign_in"]),
        ("/mcp/view/narrow", "cleo", vec!["open__peek"]),
        ("/mcp/open", "ada", vec!["peek"]),
    ] {
        let modern = Client::modern_at(&site, path, who, json!({}));
        assert_eq!(modern.tools().await, expected, "{path}");
        let legacy = Client::legacy_at(&site, path, who, json!({})).await;
        assert_eq!(legacy.tools().await, expected, "{path}");
        if expected[0].ends_with("sign_in") {
            let offered = legacy.call(expected[0]).await;
            assert!(text(&offered).ends_with(link(&offered)), "{offered}");
        }
    }
    site.close().await;
}

#[tokio::test]
async fn at_the_endpoint_of_the_server_any_request_is_answered_with_the_link() {
    let site = Site::new().await;
    let plain = Client::legacy_at(&site, "/mcp/fx", "ada", json!({})).await;
    let called = plain.call("hello").await;
    assert_eq!(called["result"]["isError"], true, "{called}");
    assert!(text(&called).ends_with(link(&called)), "{called}");
    for (method, params) in [
        ("resources/list", json!({})),
        ("resources/read", json!({"uri": "file:///x"})),
        ("prompts/get", json!({"name": "x"})),
        (
            "tools/call",
            json!({"name": "hello", "arguments": {}, "task": {"ttl": 1000}}),
        ),
    ] {
        let error = &plain.request(method, params.clone()).await["error"];
        let url = error["data"]["pegboard/sign_in_url"]
            .as_str()
            .unwrap_or_else(|| panic!("{method}: {error}"));
        assert!(error["message"].as_str().unwrap().ends_with(url), "{method}: {error}");
        assert_eq!(error["data"]["pegboard/kind"], "needs_auth", "{method}: {error}");
    }
    let opener = Client::legacy_at(&site, "/mcp/fx", "ada", json!({"elicitation": {"url": {}}})).await;
    for (method, params) in [
        ("tools/call", json!({"name": "hello", "arguments": {}})),
        ("tools/call", json!({"name": "sign_in", "arguments": {}})),
        ("resources/read", json!({"uri": "file:///x"})),
        ("prompts/get", json!({"name": "x"})),
        (
            "tools/call",
            json!({"name": "hello", "arguments": {}, "task": {"ttl": 1000}}),
        ),
    ] {
        let error = &opener.request(method, params.clone()).await["error"];
        assert_eq!(error["code"], -32042, "{method}: {error}");
        assert!(error["data"]["elicitations"][0]["url"].is_string(), "{method}: {error}");
    }
    site.close().await;
}

#[tokio::test]
async fn a_prompt_of_a_server_that_waits_for_a_sign_in_is_answered_with_the_link() {
    let site = Site::new().await;
    let client = Client::modern(&site, "ada", json!({}));
    client.tools().await;
    let error = &client.request("prompts/get", json!({"name": "fx__greet"})).await["error"];
    assert!(error["data"]["pegboard/sign_in_url"].is_string(), "{error}");
    let error = &client.request("prompts/get", json!({"name": "open__greet"})).await["error"];
    assert_eq!(error["message"], "there is no prompt `open__greet`", "{error}");
    site.close().await;
}

#[tokio::test]
async fn a_legacy_client_is_notified_when_the_person_has_signed_in() {
    let site = Site::new().await;
    let client = Client::legacy(&site, "ada", json!({"elicitation": {"url": {}}})).await;
    assert_eq!(client.tools().await, ["open__peek", "fx__sign_in"]);
    let mut notifications = client.listen().await;
    let error = &client.call("fx__sign_in").await["error"];
    assert_eq!(error["code"], -32042, "{error}");
    let asked = &error["data"]["elicitations"][0];
    let mut browser = Browser::default();
    site.sign_in(&mut browser, asked["url"].as_str().unwrap(), "ada").await;
    // In either order.
    let complete = notifications.next("notifications/elicitation/complete").await;
    assert_eq!(complete["elicitationId"], asked["elicitationId"]);
    assert_eq!(client.tools().await, ["fx__hello", "open__peek"]);
    site.close().await;
}

#[tokio::test]
async fn the_tools_of_a_server_are_announced_after_the_sign_in() {
    let site = Site::new().await;
    let client = Client::legacy(&site, "ada", json!({})).await;
    assert_eq!(client.tools().await, ["open__peek", "fx__sign_in"]);
    let mut notifications = client.listen().await;
    let offered = client.call("fx__sign_in").await;
    let mut browser = Browser::default();
    site.sign_in(&mut browser, link(&offered), "ada").await;
    notifications.next("notifications/tools/list_changed").await;
    assert_eq!(client.tools().await, ["fx__hello", "open__peek"]);
    site.close().await;
}

#[tokio::test]
async fn the_config_keeps_links_out_of_what_a_model_reads() {
    let site = Site::with_settings("[serve]\nlinks_in_text = false\n").await;
    let route = format!("POST {}", site.at("/api/v1/mcp/servers/fx/signin"));
    let plain = Client::modern(&site, "ada", json!({}));
    for response in [plain.call("fx__sign_in").await, plain.hello(json!({})).await] {
        for way in [&route, "pegboard login fx --principal ada"] {
            assert!(text(&response).contains(way), "{response}");
        }
        assert!(!response.to_string().contains("link="), "{response}");
    }
    let listed = plain.request("tools/list", json!({})).await;
    assert!(!listed.to_string().contains("Returns a link"), "{listed}");
    // The page without a link names a way that works.
    let page = Browser::default().open(site.at("/signin").as_str()).await;
    let route = format!("POST {}", site.at("/api/v1/mcp/signin"));
    assert!(
        page.body.contains(&route) && page.body.contains("pegboard login NAME --principal WHO"),
        "{}",
        page.body
    );
    let opener = Client::legacy(&site, "bob", json!({"elicitation": {"url": {}}})).await;
    let error = &opener.call("fx__sign_in").await["error"];
    let url = error["data"]["elicitations"][0]["url"].as_str().unwrap();
    assert!(url.contains("link="), "{error}");
    site.close().await;
}

#[tokio::test]
async fn without_tokens_the_text_names_the_page_that_needs_no_link() {
    let site = Site::open_with("[serve]\nlinks_in_text = false\n").await;
    let client = Client::modern(&site, "nobody", json!({}));
    let response = client.call("fx__sign_in").await;
    assert!(
        text(&response).contains(&format!("at {}.", site.at("/signin"))),
        "{response}"
    );
    site.close().await;
}

#[tokio::test]
async fn a_token_that_may_only_read_is_offered_no_sign_in() {
    let site = Site::new().await;
    let (reader, caller) = (
        Client::modern(&site, "dan", json!({})),
        Client::modern(&site, "ada", json!({})),
    );
    assert_eq!(reader.tools().await, ["open__peek"]);
    let error = &reader.request("prompts/get", json!({"name": "fx__greet"})).await["error"];
    assert!(!error.to_string().contains("link="), "{error}");
    let listed = caller.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "fx__sign_in").unwrap();
    assert_eq!(tool["title"], "Sign in to fx");
    let hints = json!({"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": true});
    assert_eq!(tool["annotations"], hints, "{tool}");
    site.close().await;
}

#[tokio::test]
async fn a_public_url_without_https_is_named_with_the_command_that_works_instead() {
    let site = Site::new().await;
    site.gateway.set_oauth(None, Some("http://gw.example.com"));
    let (status, problem) = site.post("ada", "/api/v1/mcp/servers/fx/signin", "").await;
    assert_eq!(status, 409, "{problem}");
    assert!(
        problem["detail"]
            .as_str()
            .unwrap()
            .contains("`serve.public_url` is not an `https` URL"),
        "{problem}"
    );
    let command = "`pegboard login fx --principal ada`";
    assert!(problem["hint"].as_str().unwrap().contains(command), "{problem}");
    let told = Client::modern(&site, "ada", json!({})).hello(json!({})).await;
    assert!(
        text(&told).contains("is not an `https` URL") && text(&told).contains(command),
        "{told}"
    );
    site.close().await;
}
