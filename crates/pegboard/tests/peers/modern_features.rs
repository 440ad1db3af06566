//! Requests and notifications of the newest SDKs in the modern era, on stdio and HTTP.

use pegboard::{
    Config, Pegboard, ServerConfig, ToolCall, Toolset,
    config::EraChoice,
    forward::{Forwarded, Forwarding},
    toolset::CompletionOf,
    watch::{LogLevel, ServerEvent},
};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::{features::FullHost, peer::*, support::*, talk::*};

#[tokio::test]
async fn every_feature_of_the_python_sdk_is_used_on_stdio() {
    check(stdio(&python_features())).await;
}

#[tokio::test]
async fn every_feature_of_the_python_sdk_is_used_on_http() {
    let server = Listening::python_features().await;
    check(server.config()).await;
}

#[tokio::test]
async fn every_feature_of_the_typescript_sdk_is_used_on_stdio() {
    check(stdio(&typescript_features())).await;
}

#[tokio::test]
async fn every_feature_of_the_typescript_sdk_is_used_on_http() {
    let server = Listening::typescript_features().await;
    check(server.config()).await;
}

/// The server is spoken to in the modern era, in which the tool cannot send its question.
#[tokio::test]
async fn a_python_tool_that_sends_its_question_asks_a_client_that_answers_requests() {
    let server = Listening::python_features().await;
    let host = FullHost::default();
    let mut servers = Config::default();
    servers.servers.insert(name("fx"), server.config());
    let board = Pegboard::builder(servers).host(host.clone()).open();
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let insist = async |forwarding: Forwarding| match tools.forward_call(ToolCall::new("fx.insist"), &forwarding).await
    {
        Forwarded::Result(result) => String::from_utf8_lossy(result.json()).into_owned(),
        Forwarded::Error { message, .. } => message,
        other => panic!("{other:?}"),
    };
    assert_contains(&insist(Forwarding::new()).await, &["elicitation/create"]);
    assert_eq!(host.elicited().len(), 0);
    let answered = insist(Forwarding::new().answers_requests()).await;
    assert_contains(&answered, &["the colour is Ada"]);
    assert_eq!(host.elicited().len(), 1);
    assert_eq!(spoken(&board), no_handshake());
    board.shutdown().await;
}

async fn check(config: ServerConfig) {
    let host = FullHost::default();
    let mut config = in_era(config, EraChoice::Modern);
    config.roots = vec!["file:///srv/one".to_owned()];
    let mut servers = Config::default();
    servers.servers.insert(name("fx"), config);
    let board = Pegboard::builder(servers).host(host.clone()).open();
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    assert_eq!(spoken(&board), no_handshake());
    check_inputs(&tools, &host).await;
    check_reading(&tools, &host).await;
    check_telling(&tools).await;
    check_giving_up(&tools).await;
    check_growing(&tools).await;
    board.shutdown().await;
}

async fn check_inputs(tools: &Toolset, host: &FullHost) {
    assert_eq!(text(tools, "ask_model", json!({})).await, "the model says forty-two");
    assert_eq!(
        text(tools, "ask_roots", json!({})).await,
        "the roots are file:///srv/one"
    );
    assert_eq!(text(tools, "ask_visit", json!({})).await, "the user said accept");
    let asked = host.elicited();
    assert_eq!(asked[0].url.as_deref(), Some("https://example.org/sign-in"));
}

async fn check_reading(tools: &Toolset, host: &FullHost) {
    let fx = name("fx");
    let listing = tools.resources(PATIENCE).await;
    let templates: Vec<_> = listing.templates.iter().map(|template| template.uri.as_str()).collect();
    assert_eq!(templates, ["note://{shelf}/{book}", "paint://{name}"]);
    let map = |value: Value| value.as_object().cloned().unwrap();
    let values = map(json!({"shelf": "shelf", "book": "book"}));
    let uri = tools.expand_template(&fx, templates[0], &values).await.unwrap();
    assert_eq!(
        tools.read_resource(&fx, &uri).await.unwrap()[0].text(),
        Some("book on shelf")
    );

    // Resources and prompts may require input, as tools may.
    let painted = tools.read_resource(&fx, "paint://door").await.unwrap();
    assert_eq!(painted[0].text(), Some("door is Ada"));
    let poem = tools
        .get_prompt(&fx, "poem", &map(json!({"topic": "tea"})))
        .await
        .unwrap();
    assert_eq!(poem.messages[0].content.to_text(), "A Ada poem about tea.");
    assert_eq!(host.elicited().len(), 2);

    let complete = async |of: CompletionOf, argument: &str, value: &str| {
        let completion = tools.complete(&fx, &of, argument, value, &Map::new()).await;
        completion.unwrap().values
    };
    assert_eq!(
        complete(CompletionOf::Prompt("poem".into()), "topic", "te").await,
        ["tea"]
    );
    let template = CompletionOf::Template(templates[0].to_owned());
    assert_eq!(complete(template, "shelf", "she").await, ["shelf", "shed"]);
}

async fn check_telling(tools: &Toolset) {
    let fx = name("fx");
    let mut subscription = tools.subscribe(&fx, "note://shelf/book").await.unwrap();
    // The first update reports that earlier ones may have been missed.
    while tokio::time::timeout(secs(1), subscription.changed()).await.is_ok() {}
    assert_eq!(text(tools, "touch", json!({})).await, "touched");
    assert!(tokio::time::timeout(PATIENCE, subscription.changed()).await.unwrap());

    let mut events = tools.events(&fx).unwrap();
    tools.set_log_level(&fx, LogLevel::Info).await.unwrap();
    assert_eq!(text(tools, "log", json!({})).await, "logged");
    let logged = async {
        loop {
            let event = events.next().await.unwrap();
            if let ServerEvent::Log(message) = &*event {
                return message.clone();
            }
        }
    };
    let message = tokio::time::timeout(PATIENCE, logged).await.unwrap();
    assert_eq!((message.level, &message.data), (LogLevel::Warning, &json!("a warning")));
    assert_eq!(message.logger.as_deref(), Some("features"));
}

/// A call that is dropped while the server works on it is cancelled there too.
async fn check_giving_up(tools: &Toolset) {
    let (sink, mut steps) = mpsc::channel(4);
    tokio::select! {
        reply = tools.call(ToolCall::new("linger").progress(sink)) => panic!("{reply:?}"),
        step = steps.recv() => assert_eq!(step.unwrap().progress, 1.0),
    }
    let noticed = async {
        while text(tools, "count_given_up", json!({})).await != "1" {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, noticed).await.unwrap();
}

/// A tool that is added later is announced, and can be called.
async fn check_growing(tools: &Toolset) {
    assert_eq!(text(tools, "grow", json!({})).await, "growing");
    let seen = async {
        while !listed(tools).await.contains(&"fx__grown".to_owned()) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.unwrap();
    assert_eq!(text(tools, "grown", json!({})).await, "grown");
}
