//! What MCP clients get for a call that needs a sign-in.

use serde_json::json;

use crate::sign_in::{
    browser::Browser,
    client::{Client, text},
    fixture::Site,
};

#[tokio::test]
async fn a_modern_client_is_asked_to_open_the_page_and_its_call_goes_on() {
    let site = Site::new().await;
    let client = Client::modern(&site, "ada", json!({"elicitation": {"url": {}}}));
    let asked = client.hello(json!({})).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let questions = asked["result"]["inputRequests"].as_object().unwrap();
    let (key, question) = questions.iter().next().unwrap();
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(question["params"]["mode"], "url");
    assert!(
        question["params"]["message"].as_str().unwrap().contains("`fx`"),
        "{question}"
    );
    let link = question["params"]["url"].as_str().unwrap();
    let answer = |action: &str| json!({"requestState": asked["result"]["requestState"], "inputResponses": {key.as_str(): {"action": action}}});
    // The client goes on at once, and the call waits for the person.
    let mut browser = Browser::default();
    let going_on = client.hello(answer("accept"));
    let (response, page) = tokio::join!(going_on, site.sign_in(&mut browser, link, "ada"));
    assert!(page.body.contains("You are signed in"), "{}", page.body);
    assert_eq!(text(&response), "hi", "{response}");
    assert_eq!(text(&client.hello(json!({})).await), "hi");
    site.close().await;
}

#[tokio::test]
async fn a_person_may_decline_to_sign_in() {
    let site = Site::new().await;
    let client = Client::modern(&site, "ada", json!({"elicitation": {"url": {}}}));
    let asked = client.hello(json!({})).await;
    let key = asked["result"]["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap();
    let answer = json!({"requestState": asked["result"]["requestState"], "inputResponses": {key.as_str(): {"action": "decline"}}});
    let response = client.hello(answer).await;
    assert!(text(&response).contains("The user declined to sign in"), "{response}");
    assert_eq!(response["result"]["_meta"]["pegboard/kind"], "needs_auth", "{response}");
    site.close().await;
}

#[tokio::test]
async fn a_legacy_client_gets_the_page_as_an_error_and_repeats_the_call() {
    let site = Site::new().await;
    let client = Client::legacy(&site, "ada", json!({"elicitation": {"url": {}}})).await;
    let error = &client.hello(json!({})).await["error"];
    assert_eq!(error["code"], -32042, "{error}");
    let page = &error["data"]["elicitations"][0];
    assert_eq!(page["mode"], "url");
    let (id, link) = (page["elicitationId"].as_str().unwrap(), page["url"].as_str().unwrap());
    assert!(!id.is_empty() && !link.contains(id), "{page}");
    let again = &client.hello(json!({})).await["error"];
    assert_eq!(
        again["data"]["elicitations"][0]["url"], *link,
        "the link stays the same"
    );
    let mut browser = Browser::default();
    let page = site.sign_in(&mut browser, link, "ada").await;
    assert!(page.body.contains("You are signed in"), "{}", page.body);
    assert_eq!(text(&client.hello(json!({})).await), "hi");
    site.close().await;
}

#[tokio::test]
async fn a_client_that_opens_no_pages_finds_the_link_in_the_text() {
    let site = Site::new().await;
    let forms = json!({"elicitation": {}});
    for client in [
        Client::modern(&site, "ada", forms.clone()),
        Client::legacy(&site, "bob", forms).await,
    ] {
        let response = client.hello(json!({})).await;
        assert_eq!(response["result"]["isError"], true, "{response}");
        let link = response["result"]["_meta"]["pegboard/sign_in_url"].as_str().unwrap();
        assert!(text(&response).ends_with(link), "{response}");
        let mut browser = Browser::default();
        let page = site.sign_in(&mut browser, link, client.who).await;
        assert!(page.body.contains("You are signed in"), "{}", page.body);
        assert_eq!(text(&client.hello(json!({})).await), "hi");
    }
    site.close().await;
}
