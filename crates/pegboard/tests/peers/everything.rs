//! The reference server with one tool for every protocol feature, on each wire that it offers.

use pegboard::{Answer, Content, Pegboard, ServerConfig, Toolset, config::Transport};
use serde_json::{Value, json};

use crate::{peer::*, support::*, talk::*};

const TOOLS: &[&str] = &[
    "echo",
    "get-annotated-message",
    "get-env",
    "get-resource-links",
    "get-resource-reference",
    "get-structured-content",
    "get-sum",
    "get-tiny-image",
    "gzip-file-as-resource",
    "simulate-research-query",
    "toggle-simulated-logging",
    "toggle-subscriber-updates",
    "trigger-long-running-operation",
];

#[tokio::test]
async fn everything_works_on_stdio_and_no_process_is_left() {
    let board = board(stdio(&everything()));
    check(&board, "stdio").await;
    let pid = status(&board, "fx").pid.expect("a process");
    board.shutdown().await;
    assert!(!pegboard_testkit::is_alive(pid));
}

#[tokio::test]
async fn everything_works_on_streamable_http_and_the_session_is_ended() {
    let server = Listening::everything_http().await;
    let board = board(server.config());
    check(&board, "http").await;
    board.shutdown().await;
    server.says("Received session termination request").await;
}

#[tokio::test]
async fn a_connection_that_the_server_closed_while_nobody_looked_is_not_used_again() {
    let server = Listening::everything_http().await;
    let board = board(server.config());
    let tools = board.toolset();
    let echo = || async {
        let calls = (0..5).map(|_| text(&tools, "echo", json!({"message": "hi"})));
        for told in futures_util::future::join_all(calls).await {
            assert_eq!(told, "Echo: hi");
        }
    };
    echo().await;
    // The server closes idle connections after 5 s. Blocking the whole runtime, as a busy machine would, keeps the client from noticing.
    std::thread::sleep(secs(6));
    echo().await;
    board.shutdown().await;
}

#[tokio::test]
async fn everything_works_on_http_with_sse() {
    let server = Listening::everything_sse().await;
    check(&board(ServerConfig::new(Transport::sse(server.endpoint()))), "sse").await;
    // The same server is detected when the config leaves the transport open.
    let found = board(server.config());
    assert_eq!(
        text(&found.toolset(), "echo", json!({"message": "hi"})).await,
        "Echo: hi"
    );
    found.shutdown().await;
}

async fn check(board: &Pegboard, transport: &str) {
    let tools = board.toolset();
    // The server sends `list_changed` while it is listed; that must neither hide nor duplicate a tool.
    assert_eq!(listed(&tools).await, of_fx(TOOLS));
    let status = status(board, "fx");
    assert_eq!(status.transport, transport);
    assert_eq!(spoken(board), handshake());
    assert_eq!((status.tools, status.resources, status.prompts), (13, 7, 4));
    assert_eq!(status.server_info.unwrap().name, "mcp-servers/everything");
    assert!(status.instructions.unwrap().contains("Everything"));
    check_texts(&tools).await;
    check_blocks(&tools).await;
    check_others(&tools).await;
}

async fn check_texts(tools: &Toolset) {
    assert_eq!(text(tools, "fx.echo", json!({"message": "hé\n"})).await, "Echo: hé\n");
    let sum = text(tools, "fx.get-sum", json!({"a": 2, "b": 3})).await;
    assert_eq!(sum, "The sum of 2 and 3 is 5.");
    let arguments = json!({"duration": 0.3, "steps": 3});
    let (told, end) = steps(tools, "fx.trigger-long-running-operation", arguments).await;
    assert_eq!(told, counted(3));
    assert!(end.starts_with("Long running operation completed."), "{end}");
    let wrong = misfit(tools, "fx.get-sum", json!({"a": "two"})).await;
    assert!(wrong.contains("`a` must be a number"), "{wrong}");
}

async fn check_blocks(tools: &Toolset) {
    let weather = answer(tools, "fx.get-structured-content", json!({"location": "New York"})).await;
    let expected = json!({"temperature": 33, "conditions": "Cloudy", "humidity": 82});
    assert_eq!(weather.structured, Some(expected.clone()));
    assert_eq!(serde_json::from_str::<Value>(&weather.text()).unwrap(), expected);

    let image = answer(tools, "fx.get-tiny-image", json!({})).await;
    let [
        Content::Text { .. },
        Content::Image { data, mime_type, .. },
        Content::Text { .. },
    ] = &image.content[..]
    else {
        panic!("{:?}", image.content);
    };
    assert!(data.starts_with("iVBORw0KGgo") && data.len() > 1000);
    assert_eq!(mime_type, "image/png");
    assert!(!image.text().contains("iVBOR"), "a reader of text sees no base64");

    let arguments = json!({"messageType": "error", "includeImage": true});
    let annotated = answer(tools, "fx.get-annotated-message", arguments).await;
    assert_eq!(
        annotations(&annotated),
        [
            json!({"priority": 1.0, "audience": ["user", "assistant"]}),
            json!({"priority": 0.5, "audience": ["user"]}),
        ]
    );
}

fn annotations(answer: &Answer) -> Vec<Value> {
    let blocks = serde_json::to_value(&answer.content).unwrap();
    let blocks = blocks.as_array().unwrap().iter();
    blocks
        .map(|block| {
            // The server writes the number 1.0 as 1.
            let mut annotations = block["annotations"].clone();
            annotations["priority"] = json!(annotations["priority"].as_f64());
            annotations
        })
        .collect()
}

async fn check_others(tools: &Toolset) {
    let links = answer(tools, "fx.get-resource-links", json!({"count": 2})).await;
    let [Content::Text { .. }, Content::Link { uri, rest }, Content::Link { .. }] = &links.content[..] else {
        panic!("{:?}", links.content);
    };
    assert_eq!(
        (uri.as_str(), &rest["name"]),
        ("demo://resource/dynamic/blob/1", &json!("Blob Resource 1"))
    );

    let arguments = json!({"resourceType": "Text", "resourceId": 1});
    let reference = answer(tools, "fx.get-resource-reference", arguments).await;
    let Content::Resource { resource, .. } = &reference.content[1] else {
        panic!("{:?}", reference.content);
    };
    assert_eq!(resource["uri"], "demo://resource/dynamic/text/1");
    assert!(resource["text"].as_str().unwrap().contains("Resource 1"));

    let read = tools
        .read_resource(&name("fx"), "demo://resource/dynamic/text/1")
        .await
        .unwrap();
    assert_eq!(read[0].uri, "demo://resource/dynamic/text/1");
    let prompt = tools
        .get_prompt(&name("fx"), "simple-prompt", &serde_json::Map::new())
        .await
        .unwrap();
    assert_eq!(prompt.messages[0].role, pegboard::outcome::Role::User);
    let failure = tools.read_resource(&name("fx"), "demo://nowhere").await.unwrap_err();
    assert!(failure.message.contains("demo://nowhere"), "{}", failure.message);
}

#[tokio::test]
async fn a_user_who_can_be_asked_is_asked_on_every_wire() {
    let user = User::called_ada();
    let (http, sse) = tokio::join!(Listening::everything_http(), Listening::everything_sse());
    for config in [stdio(&everything()), http.config(), sse.config()] {
        let board = user.board(config);
        check_questions(&board, &user).await;
        board.shutdown().await;
    }
}

async fn check_questions(board: &Pegboard, user: &User) {
    let tools = board.toolset();
    // The server adds these tools after it has seen the client's capabilities, which may be after the first listing.
    tools.list(PATIENCE).await;
    until("the server offers its questions", || status(board, "fx").tools == 16).await;
    let names = listed(&tools).await;
    for tool in [
        "trigger-elicitation-request",
        "trigger-elicitation-request-async",
        "trigger-url-elicitation",
    ] {
        assert!(names.contains(&format!("fx__{tool}")), "{names:?}");
    }
    assert!(!names.contains(&"fx__trigger-sampling-request".to_owned()), "{names:?}");

    let before = user.asked().len();
    let told = text(&tools, "trigger-elicitation-request", json!({})).await;
    assert!(told.contains("- Name: Ada"), "{told}");
    // Fields that the user leaves out get the form's defaults.
    assert!(told.contains("It was a dark and stormy night."), "{told}");
    let asked = &user.asked()[before..];
    assert_eq!(asked.len(), 1);
    assert_eq!((asked[0].0.as_str(), asked[0].1.url.as_deref()), ("fx", None));
    assert!(asked[0].1.schema.as_ref().unwrap()["properties"]["email"].is_object());
}
