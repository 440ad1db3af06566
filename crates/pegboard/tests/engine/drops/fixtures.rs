//! Servers on every wire and in both eras, and futures that are dropped after a number of polls.

use std::{future::poll_fn, pin::Pin, sync::LazyLock, task::Poll, time::Duration};

use pegboard::{
    Config, Host, Pegboard, ServerConfig,
    config::Transport,
    host::{ElicitAnswer, Elicitation, HostContext},
};
use pegboard_testkit::{Ask, Era, FakeServer, NetHandle, Tool};
use serde_json::{Map, json};
use tokio::runtime::{Handle, Runtime};

use crate::support::*;

/// More polls than any of these futures needs.
pub(crate) const MANY: usize = 500;

/// The runtime of the servers, so that all tasks of the test's own runtime belong to the library.
static SERVERS: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Memory,
    Stdio,
    Http,
    Streaming,
    Sse,
    WebSocket,
}

/// Every wire in every era that it supports.
pub(crate) const WIRES: [(Wire, Era); 11] = [
    (Wire::Memory, Era::Legacy),
    (Wire::Memory, Era::Modern),
    (Wire::Stdio, Era::Legacy),
    (Wire::Stdio, Era::Modern),
    (Wire::Http, Era::Legacy),
    (Wire::Http, Era::Modern),
    (Wire::Streaming, Era::Legacy),
    (Wire::Streaming, Era::Modern),
    (Wire::Sse, Era::Legacy),
    (Wire::WebSocket, Era::Legacy),
    (Wire::WebSocket, Era::Modern),
];

/// A server with every feature.
pub(crate) fn fake(era: Era) -> FakeServer {
    let capabilities = json!({
        "tools": {}, "prompts": {}, "resources": {"subscribe": true}, "completions": {}, "logging": {},
        "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}, "extensions": {"io.modelcontextprotocol/tasks": {}},
    });
    FakeServer::new("fx")
        .era(era)
        .capabilities(capabilities)
        .tool(Tool::new("t").answers_text("done"))
        .tool(
            Tool::new("asks")
                .asks(Ask::Elicitation)
                .needs_input(2)
                .progress(2, Duration::ZERO),
        )
        .tool(Tool::new("task").needs_input(1).runs_as_task())
        .tool(Tool::new("slow").after(Duration::from_millis(3)))
        .tool(Tool::new("never").waits_at("never").progress(1, Duration::ZERO))
        .resource("a:a", "text")
        .prompt("p", "text")
}

/// A board with one server, `fx`, and the server's handle.
pub(crate) struct Fixture {
    pub(crate) board: Pegboard,
    is_network: bool,
    _server: Option<NetHandle>,
}

impl Fixture {
    /// The server takes one call at a time, so that a leaked slot blocks the next call.
    pub(crate) async fn new(wire: Wire, fake: FakeServer, change: impl FnOnce(&mut ServerConfig)) -> Self {
        let served = SERVERS.spawn({
            let fake = fake.clone();
            async move {
                match wire {
                    Wire::Memory | Wire::Stdio => None,
                    Wire::Http => fake.serve_http().await.ok(),
                    Wire::Streaming => fake.streams().serve_http().await.ok(),
                    Wire::Sse => fake.serve_sse().await.ok(),
                    Wire::WebSocket => fake.serve_ws().await.ok(),
                }
            }
        });
        let server = served.await.unwrap();
        let url = server.as_ref().map(|server| endpoint(&server.url()));
        let mut settings = match (wire, url) {
            (Wire::Http | Wire::Streaming, Some(url)) => ServerConfig::new(Transport::http(url)),
            (Wire::Sse, Some(url)) => ServerConfig::new(Transport::sse(url)),
            (Wire::WebSocket, Some(url)) => ServerConfig::new(Transport::websocket(url)),
            (Wire::Stdio, _) => process(&fake),
            _ => in_process_settings(),
        };
        settings.limits.max_in_flight = 1;
        change(&mut settings);
        let mut config = Config::default();
        let builder = if wire == Wire::Memory {
            let (_unused, handle) = fake.connect();
            let dialer = move || {
                let _elsewhere = SERVERS.enter();
                halves(handle.connect())
            };
            Pegboard::builder(config).in_process_with(name("fx"), dialer, settings)
        } else {
            config.servers.insert(name("fx"), settings);
            Pegboard::builder(config)
        };
        Self {
            board: builder.host(User).without_jitter().open(),
            is_network: server.is_some(),
            _server: server,
        }
    }

    /// How many more tasks than before may run: an HTTP client keeps a few connections.
    pub(crate) fn slack(&self) -> usize {
        if self.is_network { 8 } else { 0 }
    }

    /// Asserts that no call holds or waits for a slot, that the server was never lost, and that the next call is answered.
    pub(crate) async fn is_as_before(&self, what: &str) {
        let status = &self.board.status().servers[0];
        assert_eq!((status.in_flight, status.queued), (0, 0), "{what} kept a place");
        assert_eq!(status.restarts, 0, "{what} cost the session");
        let tools = self.board.toolset();
        let next = tokio::time::timeout(PATIENCE, call(&tools, "fx.t", json!({}))).await;
        assert_eq!(next.expect("an answer").text(), "done", "after {what}");
    }
}

/// The number of live tasks besides the test.
pub(crate) fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// Waits until at most `count` tasks are alive.
pub(crate) async fn at_most(count: usize, what: &str) {
    let waiting = async {
        while tasks() > count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(secs(10), waiting).await.is_err() {
        panic!("{what} left tasks behind: {} run, and there were {count}", tasks());
    }
}

/// Polls a future at most `polls` times, whenever it is woken, and drops it: at once, or with `lingers` after a pause in which its wake-up
/// may arrive. Returns whether it completed.
pub(crate) async fn ends_within(polls: usize, lingers: bool, future: impl Future) -> bool {
    let mut future = Box::pin(future);
    let mut left = polls;
    let ended = poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        match future.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if left == 0 => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    });
    let ended = tokio::time::timeout(PATIENCE, ended).await.expect("it ends");
    if lingers {
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
    ended
}

/// A user who accepts after a moment.
pub(crate) struct User;

impl Host for User {
    fn offers_elicitation(&self) -> bool {
        true
    }

    fn elicit<'a>(
        &'a self,
        _context: HostContext<'a>,
        _request: Elicitation,
    ) -> Pin<Box<dyn Future<Output = ElicitAnswer> + Send + 'a>> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            ElicitAnswer::Accept(Map::new())
        })
    }
}
