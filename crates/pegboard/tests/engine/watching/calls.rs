//! Every outcome of a call emits one pair of events and is counted once.

use std::pin::Pin;

use pegboard::{
    Config, Failure, Hook, Kind, Pegboard, Selection, ServerConfig, ToolCall, ToolExecutor, Toolset, View,
    config::{Scope, Start, Transport},
    hook::Called,
};
use pegboard_testkit::{FakeServer, Fault, MemoryHandle, Tool, When};
use serde_json::json;

use crate::{support::*, watching::fixtures::*};

/// A hook that rejects marked calls.
struct Refuses;

impl Hook for Refuses {
    fn before<'a>(
        &'a self,
        _called: Called<'a>,
        call: &'a mut ToolCall,
    ) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>> {
        let refuse = call.context.as_deref() == Some("refuse");
        Box::pin(async move {
            tokio::task::yield_now().await;
            match refuse {
                true => Err(Failure::new(Kind::NotPermitted, "no")),
                false => Ok(()),
            }
        })
    }
}

fn fake() -> FakeServer {
    FakeServer::new("fx")
        .capabilities(json!({
            "tools": {}, "resources": {},
            "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}, "extensions": {"io.modelcontextprotocol/tasks": {}},
        }))
        .tool(Tool::new("t").answers_text("done"))
        .tool(Tool::new("same").answers_text("fx"))
        .tool(Tool::new("read").read_only().answers_text("noon"))
        .tool(Tool::new("fails").fails_with("no"))
        .tool(Tool::new("never").waits_at("never"))
        .tool(Tool::new("dies"))
        .tool(Tool::new("task").runs_as_task())
        .tool(Tool::new("long").answers_text("long ".repeat(50_000)))
        .resource("a:a", "text")
        .fault_on(When::tool("dies"), Fault::DiesAfterExecuting { code: 1 })
}

/// A board with in-process servers, `fx` and `gx`, one that cannot be started and one that is disabled.
fn board(scope: Scope) -> (Pegboard, MemoryHandle) {
    let (_unused, handle) = fake().connect();
    let (_unused, other) = FakeServer::new("gx").tool(Tool::new("same")).connect();
    let settings = || {
        set_to(|settings| {
            settings.policy.scope = scope;
            settings.policy.cache = Some(secs(600));
            settings.policy.trust = true;
        })
    };
    let mut config = Config::default();
    let mut dead = ServerConfig::new(Transport::Stdio(pegboard::config::Command::new("/no/such/program")));
    dead.start = Start::Lazy;
    let mut off = dead.clone();
    off.enabled = false;
    config.servers.insert(name("dead"), dead);
    config.servers.insert(name("off"), off);
    let board = Pegboard::builder(config)
        .in_process_with(name("fx"), dialer(&handle), settings())
        .in_process_with(name("gx"), dialer(&other), settings())
        .without_jitter()
        .open();
    (board, handle)
}

type Ends<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A way for calls to end: its name, what it does, and the outcome kinds in order.
struct Way {
    name: &'static str,
    go: for<'a> fn(&'a Toolset) -> Ends<'a>,
    ends: &'static [Kind],
}

macro_rules! way {
    ($name:literal, $ends:expr, |$tools:ident| $go:expr) => {
        Way {
            name: $name,
            go: |$tools| {
                Box::pin(async move {
                    let _ = $go;
                })
            },
            ends: &$ends,
        }
    };
}

fn ways() -> Vec<Way> {
    use Kind::*;
    vec![
        way!("an answer", [Ok], |tools| tools.call(ToolCall::new("fx.t")).await),
        way!("a tool that fails", [ToolError], |tools| tools
            .call(ToolCall::new("fx.fails"))
            .await),
        way!("a limit that passes", [Timeout], |tools| {
            tools.call(ToolCall::new("fx.never").timeout(secs(1))).await
        }),
        way!("a connection that is lost", [Transport], |tools| tools
            .call(ToolCall::new("fx.dies"))
            .await),
        way!("arguments that do not fit", [InvalidArguments], |tools| {
            tools.call(ToolCall::new("fx.t").text("]")).await
        }),
        way!("an unknown tool", [UnknownTool], |tools| tools
            .call(ToolCall::new("fx.nope"))
            .await),
        way!("an unknown server", [UnknownTool], |tools| tools
            .call(ToolCall::new("nobody.t"))
            .await),
        way!("a name that two servers have", [UnknownTool], |tools| tools
            .call(ToolCall::new("same"))
            .await),
        way!("a name with a slip", [Ok], |tools| tools
            .call(ToolCall::new("FX.T"))
            .await),
        way!("a server that cannot be started", [Unavailable], |tools| tools
            .call(ToolCall::new("dead.t"))
            .await),
        way!("a server that is switched off", [Unavailable], |tools| tools
            .call(ToolCall::new("off.t"))
            .await),
        way!("a tool that is denied", [NotPermitted], |tools| {
            tools
                .call(ToolCall::new("fx.t").selection(Selection::new().server("gx")))
                .await
        }),
        way!("a selection that does not fit", [NotPermitted], |tools| {
            tools
                .call(ToolCall::new("fx.t").selection(Selection::new().server("zz")))
                .await
        }),
        way!("a hook that refuses", [NotPermitted], |tools| {
            tools.call(ToolCall::new("fx.t").context("refuse")).await
        }),
        way!("an answer that is kept", [Ok, Ok], |tools| {
            tools.call(ToolCall::new("fx.read").arguments(json!({"n": 1}))).await;
            assert!(
                tools
                    .call(ToolCall::new("fx.read").arguments(json!({"n": 1})))
                    .await
                    .cached
            );
        }),
        way!("a key", [Ok, Ok, InvalidArguments], |tools| {
            tools.call(ToolCall::new("fx.t").key("k")).await;
            tools.call(ToolCall::new("fx.t").key("k")).await;
            tools
                .call(ToolCall::new("fx.t").key("k").arguments(json!({"n": 1})))
                .await
        }),
        way!("a batch", [UnknownTool, Ok, Ok], |tools| {
            tools.call_all(["fx.t", "fx.nope", "fx.t"]).await
        }),
        way!("a stream", [Ok], |tools| {
            let mut stream = tools.stream(ToolCall::new("fx.t"));
            while stream.next().await.is_some() {}
        }),
        way!("an executor", [Ok], |tools| ToolExecutor::call(
            tools,
            ToolCall::new("fx.t")
        )
        .await),
        way!("a task", [Ok], |tools| {
            let mut task = tools.start(ToolCall::new("fx.task")).await.unwrap();
            task.result(PATIENCE).await;
            task.result(PATIENCE).await
        }),
        way!("a task that is taken up", [Ok, Ok], |tools| {
            let mut task = tools.start(ToolCall::new("fx.task")).await.unwrap();
            let mut again = tools.task("fx.task", task.id().unwrap()).await.unwrap();
            again.result(PATIENCE).await;
            task.result(PATIENCE).await
        }),
        way!("a task that is left", [Cancelled], |tools| {
            drop(tools.start(ToolCall::new("fx.task")).await.unwrap());
        }),
        way!(
            "a task that cannot be started",
            [InvalidArguments, UnknownTool, Unavailable],
            |tools| {
                tools.start(ToolCall::new("fx.t")).await.unwrap_err();
                tools.start(ToolCall::new("fx.nope")).await.unwrap_err();
                tools.start(ToolCall::new("dead.t")).await.unwrap_err();
            }
        ),
        way!("reading an output", [Ok, Ok, ToolError, InvalidArguments], |tools| {
            let long = tools.call(ToolCall::new("fx.long")).await;
            let handle = long.handle.unwrap();
            tools
                .call(ToolCall::new("read_output").arguments(json!({"handle": handle})))
                .await;
            tools
                .call(ToolCall::new("read_output").arguments(json!({"handle": "out_0"})))
                .await;
            tools.call(ToolCall::new("read_output")).await;
        }),
        way!("finding tools", [Ok, InvalidArguments, Ok], |tools| {
            tools.list(PATIENCE).await;
            tools
                .call(ToolCall::new("find_tools").arguments(json!({"query": "noon"})))
                .await;
            tools.call(ToolCall::new("find_tools")).await;
            tools
                .call(ToolCall::new("describe_tool").arguments(json!({"name": "fx.t"})))
                .await
        }),
        way!(
            "a call that is passed on",
            [Ok, ToolError, UnknownTool, InvalidArguments],
            |tools| {
                tools
                    .call(ToolCall::new("call_tool").arguments(json!({"name": "fx.t"})))
                    .await;
                tools
                    .call(ToolCall::new("call_tool").arguments(json!({"name": "fx.fails"})))
                    .await;
                tools
                    .call(ToolCall::new("call_tool").arguments(json!({"name": "fx.nope"})))
                    .await;
                tools.call(ToolCall::new("call_tool")).await
            }
        ),
        way!("resources", [Ok, Ok, InvalidArguments, Unavailable], |tools| {
            tools.call(ToolCall::new("list_resources")).await;
            tools
                .call(ToolCall::new("read_resource").arguments(json!({"uri": "a:a", "server": "fx"})))
                .await;
            tools.call(ToolCall::new("read_resource")).await;
            tools
                .call(ToolCall::new("read_resource").arguments(json!({"uri": "a:a", "server": "zz"})))
                .await
        }),
        way!("a future that is dropped", [Cancelled], |tools| {
            tokio::time::timeout(secs(1), tools.call(ToolCall::new("fx.never")))
                .await
                .unwrap_err()
        }),
        way!(
            "a future that is dropped while its tool is looked for",
            [Cancelled],
            |tools| {
                let looked_up = tools.call(ToolCall::new("slow.t"));
                tokio::time::timeout(secs(1), looked_up).await.unwrap_err()
            }
        ),
        way!(
            "a view that is closed",
            [Unavailable, Unavailable, Unavailable, Unavailable],
            |tools| {
                tools.close().await;
                tools.call(ToolCall::new("fx.t")).await;
                tools
                    .call(ToolCall::new("find_tools").arguments(json!({"query": "noon"})))
                    .await;
                tools.start(ToolCall::new("fx.task")).await.unwrap_err();
                ToolExecutor::call(tools, ToolCall::new("fx.t")).await;
            }
        ),
    ]
}

async fn check(way: &Way, scope: Scope, view: View, with_known_tools: bool) {
    let what = format!("{} ({scope:?}, known: {with_known_tools})", way.name);
    let (board, _handle) = board(scope);
    // A server that never becomes ready, for names that have to be searched.
    if way.name.contains("looked for") {
        let mut config = process(&FakeServer::new("slow").fault(Fault::SilentHandshake));
        config.start = Start::Lazy;
        let mut wanted = Config::default();
        wanted.servers.insert(name("slow"), config);
        board.apply(wanted).await;
    }
    let tools = board.toolset_with(view);
    if with_known_tools && !way.name.contains("looked for") {
        tools.list(PATIENCE).await;
    }
    let (mut events, before) = (board.events(), counted(&board));
    (way.go)(&tools).await;
    let ended = calls(&pending_events(&mut events), &what);
    assert_eq!(ended, way.ends, "{what}");
    assert_eq!(since(&before, &counted(&board)), count_kinds(&ended), "{what}");
    assert_eq!(board.metrics().total.in_flight, 0, "{what}");
    drop(tools);
    board.shutdown().await;
}

fn view() -> View {
    View::new()
        .hook(Refuses)
        .resource_tools()
        .tool_budget(1)
        .always_list_read_output()
}

#[tokio::test(start_paused = true)]
async fn every_call_is_created_and_completed_once_and_counted_once() {
    for way in ways() {
        for scope in [Scope::Shared, Scope::Session, Scope::Pool(2)] {
            for known in [true, false] {
                check(&way, scope, view(), known).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_board_that_closes_refuses_and_counts() {
    let (board, _handle) = board(Scope::Shared);
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    board.drain(secs(1)).await;
    let mut events = board.events();
    tools.call(ToolCall::new("fx.t")).await;
    assert_eq!(
        calls(&pending_events(&mut events), "a closed board"),
        [Kind::Unavailable]
    );
    assert_eq!(board.metrics().unrouted.by_kind[&Kind::Unavailable], 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_a_route_has_its_name_and_no_server() {
    let (board, _handle) = board(Scope::Shared);
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let mut events = board.events();
    tools.call(ToolCall::new("fx.nope").id("a")).await;
    tools.call(ToolCall::new("t").id("b")).await;
    let told: Vec<_> = pending_events(&mut events)
        .iter()
        .map(|event| serde_json::json!(event))
        .collect();
    let of =
        |event: &serde_json::Value| [&event["event"], &event["id"], &event["name"], &event["server"]].map(Clone::clone);
    let told: Vec<_> = told.iter().map(of).collect();
    let (created, completed) = (json!("call_created"), json!("call_completed"));
    assert_eq!(
        told,
        [
            [created.clone(), json!("a"), json!("fx.nope"), json!(null)],
            [completed.clone(), json!("a"), json!("fx.nope"), json!(null)],
            [created, json!("b"), json!("fx.t"), json!("fx")],
            [completed, json!("b"), json!("fx.t"), json!("fx")],
        ]
    );
}
