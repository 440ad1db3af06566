//! Servers on the newest SDKs, in both eras, on stdio and HTTP.

use pegboard::{Pegboard, ServerConfig, Toolset, config::EraChoice, host::ElicitAnswer};
use serde_json::{Map, Value, json};

use crate::{peer::*, support::*, talk::*};

const TOOLS: &[&str] = &["add", "count", "echo", "fail", "greet", "weather"];

/// The differences between the two servers.
struct Peer {
    name: &'static str,
    greeting: &'static str,
}

const PYTHON: Peer = Peer {
    name: "python-modern",
    greeting: "Hello, Ada!",
};

const TYPESCRIPT: Peer = Peer {
    name: "typescript-modern",
    greeting: "Hello, Ada! State: asked-once",
};

#[tokio::test]
async fn python_speaks_both_eras_on_stdio() {
    on_stdio(&PYTHON, &python_modern()).await;
}

#[tokio::test]
async fn typescript_speaks_both_eras_on_stdio() {
    on_stdio(&TYPESCRIPT, &typescript_modern()).await;
}

async fn on_stdio(peer: &Peer, command: &[String]) {
    let user = User::called_ada();
    let modern = user.board(in_era(stdio(command), EraChoice::Modern));
    check(&modern, peer).await;
    assert_eq!(spoken(&modern), no_handshake());
    greets(&modern.toolset(), &user, peer.greeting).await;
    modern.shutdown().await;

    let auto = user.board(stdio(command));
    check(&auto, peer).await;
    assert_eq!(spoken(&auto), handshake());
    greets(&auto.toolset(), &user, peer.greeting).await;
    auto.shutdown().await;
}

#[tokio::test]
async fn python_is_found_to_be_modern_on_http() {
    let server = Listening::python_modern().await;
    on_http(&PYTHON, &server).await;
    // Legacy sessions let the server send requests to the client too.
    let user = User::called_ada();
    let legacy = user.board(in_era(server.config(), EraChoice::Legacy));
    greets(&legacy.toolset(), &user, PYTHON.greeting).await;
    assert_eq!(spoken(&legacy), handshake());
    legacy.shutdown().await;
}

#[tokio::test]
async fn typescript_is_found_to_be_modern_on_http() {
    on_http(&TYPESCRIPT, &Listening::typescript_modern().await).await;
}

async fn on_http(peer: &Peer, server: &Listening) {
    let user = User::called_ada();
    let auto = user.board(server.config());
    check(&auto, peer).await;
    assert_eq!(spoken(&auto), no_handshake());
    greets(&auto.toolset(), &user, peer.greeting).await;
    auto.shutdown().await;

    let legacy = board(in_era(server.config(), EraChoice::Legacy));
    check(&legacy, peer).await;
    assert_eq!(spoken(&legacy), handshake());
    legacy.shutdown().await;
}

/// Everything that needs no user and is the same in both eras.
async fn check(board: &Pegboard, peer: &Peer) {
    let tools = board.toolset();
    assert_eq!(listed(&tools).await, of_fx(TOOLS));
    let status = status(board, "fx");
    assert_eq!((status.tools, status.resources, status.prompts), (6, 1, 1));
    assert_eq!(status.server_info.unwrap().name, peer.name);
    assert!(status.instructions.unwrap().starts_with("A peer for tests"));

    assert_eq!(text(&tools, "add", json!({"a": 2, "b": 3})).await, "5");
    assert_eq!(text(&tools, "echo", json!({"text": "hé\n\"x\""})).await, "hé\n\"x\"");
    let weather = answer(&tools, "weather", json!({"city": "Oslo"})).await;
    let expected = json!({"city": "Oslo", "celsius": 21.5});
    assert_eq!(weather.structured, Some(expected.clone()));
    assert_eq!(serde_json::from_str::<Value>(&weather.text()).unwrap(), expected);
    let failed = complaint(&tools, "fail", json!({})).await;
    assert!(failed.contains("this tool always fails"), "{failed}");
    let wrong = misfit(&tools, "add", json!({"a": "two"})).await;
    assert!(wrong.contains("`a` must be an integer"), "{wrong}");
    let (told, end) = steps(&tools, "count", json!({"steps": 5})).await;
    assert_eq!((told, end.as_str()), (counted(5), "counted to 5"));

    let note = tools.read_resource(&name("fx"), "note://welcome").await.unwrap();
    assert_eq!(note[0].text(), Some("Welcome to the peer."));
    let topic = Map::from_iter([("topic".to_owned(), json!("tea"))]);
    let prompt = tools.get_prompt(&name("fx"), "summarize", &topic).await.unwrap();
    assert_eq!(prompt.messages[0].content.to_text(), "Summarize tea.");
}

async fn greets(tools: &Toolset, user: &User, greeting: &str) {
    let before = user.asked().len();
    assert_eq!(text(tools, "greet", json!({})).await, greeting);
    let asked = &user.asked()[before..];
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].1.message, "What is your name?");
    assert!(asked[0].1.schema.as_ref().unwrap()["properties"]["name"].is_object());
}

#[tokio::test]
async fn a_user_who_says_no_is_understood() {
    let user = User::who(ElicitAnswer::Decline);
    for command in [python_modern(), typescript_modern()] {
        let board = user.board(in_era(stdio(&command), EraChoice::Modern));
        assert_eq!(
            text(&board.toolset(), "greet", json!({})).await,
            "No name, no greeting."
        );
        board.shutdown().await;
    }
}

#[tokio::test]
async fn a_question_nobody_can_answer_fails_the_call_and_says_what_is_missing() {
    for command in [python_modern(), typescript_modern()] {
        let board = board(in_era(stdio(&command), EraChoice::Modern));
        let failed = call(&board.toolset(), "greet", json!({})).await;
        assert!(failed.is_error());
        assert!(failed.text().contains("-32021"), "{}", failed.text());
        let shown = serde_json::to_value(&failed).unwrap();
        assert_eq!(
            shown["structured"]["requiredCapabilities"]["elicitation"]["form"],
            json!({})
        );
        board.shutdown().await;
    }
}

#[tokio::test]
async fn calls_at_the_same_time_do_not_mix_up_their_answers() {
    let http = Listening::typescript_modern().await;
    let servers: [ServerConfig; 3] = [
        in_era(stdio(&python_modern()), EraChoice::Modern),
        stdio(&typescript_modern()),
        http.config(),
    ];
    for config in servers {
        let board = board(config);
        let tools = board.toolset();
        tools.list(PATIENCE).await;
        let calls = (0..50).map(|number| {
            let tools = tools.clone();
            async move { (number, text(&tools, "add", json!({"a": number, "b": 1000})).await) }
        });
        for (number, sum) in futures_util::future::join_all(calls).await {
            assert_eq!(sum, (number + 1000).to_string());
        }
        board.shutdown().await;
    }
}
