//! A board that outlives the runtime in which it was opened.

use pegboard_testkit::{FakeServer, Tool};
use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::status::State;
use crate::{call::ToolCall, toolset::Toolset};
use pegboard_client::transport::{ByteSink, ByteSource, Dialer};
use pegboard_config::{Command, Config, ServerConfig, Start, Transport};
use pegboard_tools::outcome::Kind;

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}

/// A board with a server that is used and one that is not.
fn board() -> Pegboard {
    let fake = FakeServer::new("fx").tool(Tool::new("hello").answers_text("hi"));
    let mut config = Config::default();
    for name in ["used", "idle"] {
        let mut server = ServerConfig::new(Transport::Stdio(Command::new("server")));
        server.start = Start::Lazy;
        config.servers.insert(ServerName::parse(name).unwrap(), server);
    }
    Pegboard::builder(config)
        .stand_ins(move |_, _| {
            let (_unused, handle) = fake.connect();
            Arc::new(move || {
                let (read, write) = tokio::io::split(handle.connect());
                (Box::new(read) as ByteSource, Box::new(write) as ByteSink)
            }) as Arc<dyn Dialer>
        })
        .without_jitter()
        .open()
}

/// A call, and how long it took. Time passes only while nothing else can happen.
async fn called(tools: &Toolset, tool: &str) -> (Kind, String, Duration) {
    let began = tokio::time::Instant::now();
    let reply = tools.call(ToolCall::new(tool)).await;
    (reply.outcome.kind(), reply.text(), began.elapsed())
}

#[test]
fn a_board_whose_runtime_has_ended_says_so_at_once() {
    let (first, second) = (runtime(), runtime());
    let (board, tools) = first.block_on(async {
        let board = board();
        let tools = board.toolset();
        assert_eq!(called(&tools, "used.hello").await.0, Kind::Ok);
        (board, tools)
    });
    // A call of another runtime, whose request nothing sends any more.
    let mut hanging = Box::pin({
        let tools = tools.clone();
        async move { called(&tools, "used.hello").await }
    });
    second.block_on(async {
        let waited = tokio::time::timeout(Duration::from_millis(50), &mut hanging).await;
        assert!(waited.is_err(), "the call waits for its answer");
    });
    drop(first);
    let states: Vec<State> = board.status().servers.iter().map(|row| row.state).collect();
    assert_eq!(states, [State::Closed, State::Closed]);
    second.block_on(async {
        for tool in ["used.hello", "idle.hello"] {
            let (kind, text, took) = called(&tools, tool).await;
            assert_eq!(kind, Kind::Unavailable, "{text}");
            assert!(
                text.contains("runtime in which the board was opened has ended"),
                "{text}"
            );
            assert!(took < Duration::from_secs(1), "{took:?}");
        }
        let (kind, text, took) = hanging.await;
        assert_ne!(kind, Kind::Ok);
        assert!(took < Duration::from_secs(1), "{text} after {took:?}");
        let began = tokio::time::Instant::now();
        board.reconnect(&ServerName::parse("used").unwrap()).await;
        board.shutdown().await;
        assert!(began.elapsed() < Duration::from_secs(1));
    });
}
