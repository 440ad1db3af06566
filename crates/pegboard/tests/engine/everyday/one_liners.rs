//! What users type first, each in one line. Who knows reqwest, sqlx, axum or rmcp writes these without reading on.

use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::future::join_all;
use pegboard::{
    Answer, Approver, BoxFuture, Config, Credential, Credentials, Env, Event, Failure, Format, Hook, Host, Kind,
    Listing, NativeTool, NativeTools, Outcome, Pegboard, Principal, Provider, Reply, Secret, Selection, ServerConfig,
    ServerName, ToolCall, ToolExecutor, Toolset, View,
    approval::{Decision, Question, approver},
    config::{Approval, Command, ConfigErrors, Endpoint, Results, Start},
    credential::credentials,
    hook::{Budget, Called},
    host::NoHost,
    in_process::Dialer,
    outcome::CallError,
    summary::{Summariser, summariser},
    testing::StubTools,
    toolset::{ChainedTools, Embedder},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(30);

#[derive(Serialize)]
struct Sum {
    a: i64,
    b: i64,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Weather {
    celsius: f64,
}

/// A server in this process with a few tools.
fn tools() -> NativeTools {
    let any = json!({"type": "object"});
    let add = NativeTool::new("add", "Adds.", any.clone(), |arguments| async move {
        let number = |name: &str| {
            arguments
                .get(name)
                .and_then(Value::as_i64)
                .ok_or("two numbers are needed")
        };
        Ok(json!(number("a")? + number("b")?))
    });
    let weather = NativeTool::new("weather", "Tells the weather.", any.clone(), |_| async {
        Ok(json!({"celsius": 21.5}))
    });
    let parse = NativeTool::new("parse", "Parses a number.", any.clone(), |arguments| async move {
        let number: i32 = arguments["text"].as_str().unwrap_or_default().parse()?;
        Ok(number.to_string())
    });
    NativeTools::new([add, weather, parse])
}

fn board() -> Pegboard {
    Pegboard::builder(Config::new()).in_process("local", tools()).open()
}

#[test]
fn a_config_is_written_in_code_or_read() -> Result<(), Box<dyn std::error::Error>> {
    let _ = Config::new();
    let _: Config = "[servers.time]\ncommand = 'uvx'\nargs = ['mcp-server-time']\n".parse()?;
    let _: Config = r#"{"mcpServers": {"time": {"command": "uvx"}}}"#.parse()?;
    let _: Result<Config, ConfigErrors> = Config::from_file("pegboard.toml");
    let _ = Config::from_text("", Format::Toml, &Env::process()).into_result()?;
    let _ = Config::new().server("time", ServerConfig::stdio("mcp-server-time"))?;
    let _ = Config::new().server(
        String::from("time"),
        ServerConfig::stdio(String::from("mcp-server-time")),
    )?;
    let _ = Config::new().server(
        ServerName::parse("time")?,
        ServerConfig::stdio(Command::new("uvx").arg("x")),
    )?;
    let _ = Config::new().server("docs", ServerConfig::http("https://mcp.example.com/mcp")?)?;
    let _ = ServerConfig::http(format!("https://{}/mcp", "mcp.example.com"))?;
    let _ = ServerConfig::http(
        Endpoint::new("https://mcp.example.com/mcp")?
            .bearer("t0ken")
            .header("X-Team", "blue"),
    )?;
    let _ = ServerConfig::stdio(
        Command::new("npx")
            .args(["-y", "server"])
            .env("TOKEN", "t0ken")
            .cwd("/srv"),
    );
    let _ = ServerConfig::stdio("server")
        .start(Start::Lazy)
        .allow(["get_*"])
        .deny(["get_all"])
        .required();
    let _ = ServerConfig::stdio("server")
        .call_timeout(SOON)
        .connect_timeout(SOON)
        .max_in_flight(4)
        .trusted();
    let _ = ServerConfig::stdio("server")
        .description("Files")
        .instructions("Read first.")
        .roots(["file:///srv"]);
    let _ = ServerConfig::stdio("server").approval(Approval::Writes).disabled();
    let _ = ServerConfig::stdio("server").results(Results {
        max_bytes: 1000,
        ..Results::default()
    });
    let _: ServerName = "time".parse()?;
    let _: ServerName = "time".try_into()?;
    let _: Provider = "openai".parse()?;
    let _ = (Secret::from("t0ken"), Principal::from("alice"));
    Ok(())
}

#[tokio::test]
async fn a_tool_is_called() -> Result<(), Box<dyn std::error::Error>> {
    let board = board();
    let tools: Toolset = board.toolset();
    assert_eq!(tools.call(("local.add", json!({"a": 1, "b": 2}))).await.text(), "3");
    assert_eq!(tools.call(("local.add", Sum { a: 1, b: 2 })).await.to_string(), "3");
    assert_eq!(
        tools
            .call(ToolCall::new("local.add").args(Sum { a: 1, b: 2 }))
            .await
            .text(),
        "3"
    );
    assert_eq!(
        tools
            .call(ToolCall::new("local.add").arg("a", 1).arg("b", 2))
            .await
            .text(),
        "3"
    );
    assert_eq!(
        tools
            .call(ToolCall::new("local.add").arguments(json!({"a": 1, "b": 2})))
            .await
            .text(),
        "3"
    );
    assert_eq!(
        tools
            .call(ToolCall::new("local__add").text(r#"{"a": 1, "b": 2}"#))
            .await
            .text(),
        "3"
    );
    let weather: Weather = tools.call_as("local.weather").await?;
    assert_eq!(weather, tools.call_as::<Weather>("local.weather".to_owned()).await?);
    let sum: i64 = tools.call_as(("local.add", Sum { a: 1, b: 2 })).await?;
    assert_eq!(sum, tools.call(("local.add", Sum { a: 1, b: 2 })).await.json::<i64>()?);
    let any: Value = tools.call("local.weather").await.json()?;
    assert_eq!(any["celsius"], 21.5);
    let answer: Answer = tools.call("local.weather").await.into_result()?;
    assert!(answer.structured.is_some());
    let reply = tools
        .call(
            ToolCall::new("local.weather")
                .timeout(SOON)
                .id("1")
                .key("k")
                .meta("tenant", "blue"),
        )
        .await;
    assert!(!reply.is_error() && reply.server.as_ref().is_some_and(|server| server == "local"));
    let replies = tools.call_all(["local.weather", "local.weather"]).await;
    assert_eq!(replies.len(), 2);
    let replies = join_all((0..3).map(|a| tools.call(ToolCall::new("local.add").arg("a", a).arg("b", 1)))).await;
    assert_eq!(replies[2].text(), "3");
    let spawned = tokio::spawn({
        let tools = tools.clone();
        async move { tools.call("local.weather").await }
    });
    assert!(!spawned.await?.is_error());
    assert!(tokio::time::timeout(SOON, tools.call("local.weather")).await.is_ok());
    let stored = serde_json::to_string(&tools.call("local.weather").await)?;
    assert!(serde_json::from_str::<Reply>(&stored).is_ok());
    let mut steps = tools.stream("local.weather");
    assert!(steps.next().await.is_some());
    board.shutdown().await;
    Ok(())
}

#[tokio::test]
async fn a_failure_is_an_error_of_the_program() {
    let tools = board().toolset();
    let error: CallError = tools.call_as::<i64>("local.none").await.unwrap_err();
    assert!(matches!(&error, CallError::Refused(reply) if reply.outcome.kind() == Kind::UnknownTool));
    match tools.call_as::<i64>(("local.add", json!({"a": 1}))).await {
        Err(CallError::ToolFailed(reply)) => assert_eq!(reply.text(), "two numbers are needed"),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        tools.call_as::<Weather>("local.none").await.unwrap_err().kind(),
        Kind::UnknownTool
    );
    let _: Box<dyn std::error::Error + Send + Sync> = tools.call("local.none").await.into_result().unwrap_err().into();
    let _: anyhow::Error = tools.call("local.none").await.into_result().unwrap_err().into();
    if let Outcome::Refused(failure) = tools.call("local.none").await.outcome {
        let _: &dyn std::error::Error = &failure;
    }
    assert!(
        tools
            .call(("local.parse", json!({"text": "x"})))
            .await
            .text()
            .starts_with("invalid digit")
    );
    async fn question_mark(tools: &Toolset) -> anyhow::Result<f64> {
        Ok(tools.call_as::<Weather>("local.weather").await?.celsius)
    }
    assert_eq!(question_mark(&tools).await.unwrap(), 21.5);
}

#[tokio::test]
async fn tools_are_listed_for_a_model_and_its_calls_are_made() {
    let board = board();
    let tools = board.toolset_with(View::new().provider(Provider::OpenAi).tool_budget(20_000));
    let listing: Listing = tools.list(SOON).await;
    for tool in &listing {
        assert!(tool.name.starts_with("local__") && !tool.tool.name.is_empty());
    }
    let names: Vec<String> = listing.into_iter().map(|tool| tool.name).collect();
    assert_eq!(names.len(), 3);
    assert_eq!(tools.list(SOON).await.definitions().len(), 3);
    let response = json!({"choices": [{"message": {"tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "local__add", "arguments": r#"{"a": 1, "b": 2}"#}},
    ]}}]});
    let replies = tools.call_all(Provider::OpenAi.tool_calls(&response)).await;
    assert_eq!(Provider::OpenAi.tool_messages(&replies)[0]["content"], "3");
    assert_eq!(tools.tool("local.add", SOON).await.unwrap().name, "add");
    assert!(!tools.find("the weather", 3).is_empty());
}

#[tokio::test]
async fn a_view_takes_what_a_user_has() {
    let board = board();
    let _ = board.toolset_with(
        View::new()
            .principal("alice")
            .credentials(Credential::bearer("token of alice")),
    );
    let token = "token of alice".to_owned();
    let _ = board.toolset_with(View::new().principal("alice").credentials(credentials(move |_| {
        let credential = Credential::bearer(&token);
        Box::pin(async move { Ok(credential) })
    })));
    let shared: Arc<dyn Credentials> = Arc::new(Credential::bearer("t"));
    let boxed: Box<dyn Credentials> = Box::new(Credential::bearer("t"));
    let _ = (View::new().credentials(shared), View::new().credentials(boxed));
    let _ = View::new().selection(Selection::new().tools("local", ["add"]));
    let _ = View::new().tools(NativeTool::new("t", "", json!({"type": "object"}), |_| async {
        Ok("x")
    }));
    let _ = View::new()
        .tools(tools())
        .resource_tools()
        .name("chat")
        .writes_in_turn();
    let _ = View::new()
        .approver(|_: &Question<'_>| Decision::Once)
        .approval(Approval::Always);
    let shared: Arc<dyn Approver> = Arc::new(|_: &Question<'_>| Decision::Once);
    let _ = View::new().approver(shared);
    let boxed: Box<dyn Approver> = Box::new(|_: &Question<'_>| Decision::Once);
    let _ = View::new().approver(boxed);
    let (shared, boxed): (Arc<dyn Host>, Box<dyn Host>) = (Arc::new(NoHost), Box::new(NoHost));
    let _ = (
        View::new().host(shared),
        View::new().host(boxed),
        View::new().host(NoHost),
    );

    struct Logged;
    impl Hook for Logged {
        fn before<'a>(&'a self, _: Called<'a>, call: &'a mut ToolCall) -> BoxFuture<'a, Result<(), Failure>> {
            Box::pin(async move {
                (!call.name.is_empty())
                    .then_some(())
                    .ok_or(Failure::new(Kind::Internal, "none"))
            })
        }
    }
    let (shared, boxed): (Arc<dyn Hook>, Box<dyn Hook>) = (Arc::new(Logged), Box::new(Logged));
    let tools = board.toolset_with(View::new().hook(Logged).hook(shared).hook(boxed));
    assert!(!tools.call("local.weather").await.is_error());
    let _ = View::new().budget(|_: Called<'_>| Ok(()));
    let shared: Arc<dyn Budget> = Arc::new(|_: Called<'_>| Err("used up".to_owned()));
    let tools = board.toolset_with(View::new().budget(shared));
    assert!(tools.call("local.weather").await.is_error());
    let _ = View::new().embedder(|texts: Vec<String>| async move { Ok(texts.iter().map(|_| vec![1.0]).collect()) });
    let embedder: Arc<dyn Embedder> = Arc::new(|_: Vec<String>| async { Err("no model".to_owned()) });
    let _ = View::new().embedder(embedder);
    let _ = View::new().summariser(summariser(|request| Box::pin(async move { Ok(request.text.clone()) })));
    let shared: Arc<dyn Summariser> = Arc::new(summariser(|_| Box::pin(async { Ok("short".to_owned()) })));
    let _ = View::new().summariser(shared);
    let _ = View::new().approver(approver(|question| {
        Box::pin(async move { Decision::Refused(question.name.into()) })
    }));
}

#[tokio::test]
async fn a_board_is_held_watched_and_replaced() -> Result<(), Box<dyn std::error::Error>> {
    #[derive(Clone)]
    struct App {
        board: Pegboard,
        tools: Arc<dyn ToolExecutor>,
    }
    let board = board();
    let app = App {
        board: board.clone(),
        tools: Arc::new(board.toolset()),
    };
    assert!(!app.tools.call("local.weather".into()).await.is_error());
    let boxed: Box<dyn ToolExecutor> = Box::new(app.board.toolset());
    assert_eq!(boxed.list(SOON).await.into_iter().count(), 3);
    let chained = ChainedTools::new().and(StubTools::new()).and(app.tools);
    let _ = chained.list(SOON).await;
    let mut events = app.board.events();
    board
        .connect("more", ServerConfig::stdio("no-such-program-anywhere"))
        .await
        .unwrap_err();
    let event: Option<Event> = events.next().await;
    assert!(event.is_some());
    board.settle(SOON).await;
    assert!(board.has_server("local") && !board.status().servers.is_empty());
    let dialer: Arc<dyn Dialer> = Arc::new(tools());
    let other = Pegboard::builder(Config::new())
        .in_process("local", dialer)
        .try_open()?;
    let by_user: HashMap<Principal, Toolset> = HashMap::from([("alice".into(), other.toolset())]);
    assert!(
        !by_user[&Principal::from("alice")]
            .call("local.weather")
            .await
            .is_error()
    );
    let refused = Pegboard::builder(Config::new())
        .in_process("not a name", tools())
        .try_open();
    assert_eq!(
        refused.unwrap_err().to_string(),
        "`not a name` cannot be a server name: only letters, digits, `_` and `-` may be used"
    );
    Ok(())
}
