//! A client of either era on a connection in memory, and boards of servers in memory.

use std::{collections::HashMap, sync::Arc, time::Duration};

use pegboard::{
    Builder, Config, Env, Format, Pegboard,
    in_process::{ByteSink, ByteSource, Dialer},
};
use pegboard_gateway::{BoardPart, GatewayHost, InMemory, Service, SignInLinks, board_service};
use pegboard_testkit::{FakeServer, MemoryHandle};
use serde_json::{Value, json};

/// The limit on every wait of a test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

pub(crate) const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// A board with this config. Its servers are these fakes, by name.
pub(crate) fn board(config: &str, fakes: &[(&str, FakeServer)]) -> Pegboard {
    builder(config, fakes).open()
}

/// The same before it is opened.
pub(crate) fn builder(config: &str, fakes: &[(&str, FakeServer)]) -> Builder {
    let loaded = Config::from_text(config, Format::Toml, &Env::process());
    assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
    let connect = |(name, fake): &(&str, FakeServer)| ((*name).to_owned(), fake.connect().1);
    let servers: HashMap<String, MemoryHandle> = fakes.iter().map(connect).collect();
    let dial = move |server: &pegboard::ServerName, _: &pegboard::ServerConfig| dialer(&servers[server.as_str()]);
    Pegboard::builder(loaded.config)
        .host(GatewayHost)
        .stand_ins(dial)
        .without_jitter()
}

fn dialer(server: &MemoryHandle) -> Arc<dyn Dialer> {
    let server = server.clone();
    Arc::new(move || {
        let (read, write) = tokio::io::split(server.connect());
        (Box::new(read) as ByteSource, Box::new(write) as ByteSink)
    })
}

/// A client of one part of a board.
pub(crate) struct Client {
    era: Era,
    connection: InMemory,
    last_id: u64,
}

impl Client {
    pub(crate) async fn of_view(board: &Pegboard, view: &str, era: Era) -> Self {
        Self::connect(board, BoardPart::View(view.to_owned()), era).await
    }

    pub(crate) async fn connect(board: &Pegboard, part: BoardPart, era: Era) -> Self {
        Self::connect_to(board_service(board.clone(), part, SignInLinks::default()), era).await
    }

    /// A further client of an endpoint.
    pub(crate) async fn connect_to(endpoint: Arc<dyn Service>, era: Era) -> Self {
        let connection = InMemory::connect(endpoint).expect("randomness");
        let mut client = Self {
            era,
            connection,
            last_id: 0,
        };
        if era == Era::Legacy {
            let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
            let welcome = client.ask("initialize", params).await;
            assert!(welcome["result"]["protocolVersion"].is_string(), "{welcome}");
            let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            client.connection.send(&initialized).await;
        }
        client
    }

    /// Sends a request and returns its response.
    pub(crate) async fn ask(&mut self, method: &str, mut params: Value) -> Value {
        self.last_id += 1;
        if self.era == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        let request = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        self.connection.send(&request).await;
        let response = async {
            loop {
                let message = self.connection.receive().await.expect("a response");
                if message["id"] == self.last_id && message.get("method").is_none() {
                    return message;
                }
            }
        };
        tokio::time::timeout(PATIENCE, response)
            .await
            .expect("a response in time")
    }

    /// Waits for a notification.
    pub(crate) async fn notified(&mut self, method: &str) {
        let notification = async { while self.connection.receive().await.expect("a message")["method"] != method {} };
        let notification = tokio::time::timeout(PATIENCE, notification).await;
        notification.expect("a notification in time");
    }

    /// The methods of the notifications that arrive within this time.
    pub(crate) async fn notifications(&mut self, limit: Duration) -> Vec<String> {
        let mut methods = Vec::new();
        let collecting = async {
            loop {
                let message = self.connection.receive().await.expect("a message");
                methods.extend(message["method"].as_str().map(str::to_owned));
            }
        };
        let _: Result<(), _> = tokio::time::timeout(limit, collecting).await;
        methods
    }

    /// Calls a tool and returns the response.
    pub(crate) async fn call(&mut self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": name, "arguments": arguments}))
            .await
    }

    /// The names of the tools that the client is offered.
    pub(crate) async fn tools(&mut self) -> Vec<String> {
        let listed = self.ask("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().expect("tools").iter();
        tools
            .map(|tool| tool["name"].as_str().expect("a name").to_owned())
            .collect()
    }
}

/// The text of an error result, which a model reads.
pub(crate) fn told(response: &Value) -> &str {
    assert_eq!(response["result"]["isError"], true, "{response}");
    response["result"]["content"][0]["text"].as_str().expect("a text")
}
