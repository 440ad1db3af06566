//! How a program sets up boards and calls.

use futures_util::StreamExt;
use pegboard::{
    Answer, Config, Kind, NativeTool, NativeTools, Pegboard, Provider, ServerConfig, ServerName, ToolCall,
    config::{Command, Transport},
    toolset::CallEvent,
};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::{Map, Value, json};

use crate::support::*;

fn here(answer: &'static str) -> NativeTools {
    let tool = NativeTool::new(
        "where",
        "Says where it is.",
        json!({"type": "object"}),
        move |_| async move { Ok(Answer::from(answer)) },
    );
    NativeTools::new([tool])
}

fn elsewhere() -> Config {
    let mut config = Config::default();
    let nobody = ServerConfig::new(Transport::Stdio(Command::new("/nonexistent/server")));
    config.servers.insert(name("fx"), nobody);
    config
}

/// Two servers of one name would make every tool name ambiguous.
#[tokio::test]
async fn a_server_in_this_process_takes_the_place_of_others_of_its_name() {
    let board = Pegboard::builder(elsewhere())
        .in_process(name("fx"), here("before"))
        .in_process_with(name("fx"), here("here"), ServerConfig::in_process())
        .open();
    let servers = |board: &Pegboard| -> Vec<_> { board.status().servers.iter().map(|s| s.name.to_string()).collect() };
    assert_eq!(servers(&board), ["fx"]);
    let tools = board.toolset();
    assert_eq!(call(&tools, "fx.where", json!({})).await.text(), "here");
    let applied = board.apply(elsewhere()).await;
    assert_eq!((applied.added.len(), applied.replaced.len()), (0, 0));
    assert_eq!(servers(&board), ["fx"]);
    assert_eq!(call(&tools, "fx.where", json!({})).await.text(), "here");
}

#[tokio::test(start_paused = true)]
async fn arguments_may_be_json_and_what_is_no_object_calls_nothing() {
    let fake = FakeServer::new("fx").tool(Tool::new("echo").echoes());
    let (board, handle) = in_memory(&fake);
    let tools = board.toolset();
    let mut map = Map::new();
    map.insert("a".to_owned(), Value::from(1));
    for call in [
        ToolCall::new("fx.echo").arguments(json!({"a": 1})),
        ToolCall::new("fx.echo").arguments(map),
        ToolCall::new("fx.echo")
            .arguments(json!([1]))
            .arguments(json!({"a": 1})),
    ] {
        tools.call(call.clone()).await;
        let sent = handle.requests().pop().unwrap().params["arguments"].clone();
        assert_eq!(sent, json!({"a": 1}), "{call:?}");
    }
    let refused = tools.call(ToolCall::new("fx.echo").arguments(json!([1]))).await;
    assert_outcome(&refused, Kind::InvalidArguments, false);
    assert_contains(&refused.text(), &["fx.echo", "must be a JSON object"]);
    assert_eq!(handle.count("tools/call"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_program_introduces_itself_to_servers() {
    let (_unused, handle) = FakeServer::new("fx").connect();
    let board = Pegboard::builder(Config::default())
        .in_process(name("fx"), dialer(&handle))
        .client_info("my-agent", "7.1")
        .open();
    board.toolset().list(PATIENCE).await;
    let requests = handle.requests();
    let hello = requests.iter().find(|request| request.method == "initialize").unwrap();
    assert_eq!(
        hello.params["clientInfo"],
        json!({"name": "my-agent", "version": "7.1"})
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_is_a_stream() {
    let fake = FakeServer::new("fx").tool(Tool::new("echo").answers_text("noon"));
    let (board, _handle) = in_memory(&fake);
    let events: Vec<CallEvent> = board.toolset().stream(ToolCall::new("fx.echo")).collect().await;
    assert!(matches!(
        events.as_slice(),
        [CallEvent::Created { .. }, CallEvent::Completed(reply)] if reply.text() == "noon"
    ));
}

#[test]
fn names_are_read_from_their_words() {
    assert_eq!("fx".parse::<ServerName>(), Ok(name("fx")));
    assert_eq!("anthropic".parse(), Ok(Provider::Anthropic));
    let unknown = "acme".parse::<Provider>().unwrap_err().to_string();
    assert_contains(&unknown, &["`acme`", "openai-strict"]);
}
