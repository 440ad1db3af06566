//! One server, `fx`, as a config file with a preset gives it, and a board over it.

use pegboard::{Config, Env, Format, Loaded, Pegboard, Reply, ServerConfig, ToolCall, Toolset, config::Policy};
use pegboard_testkit::{FakeServer, Fault, MemoryHandle, Tool};

use crate::support::*;

/// A row of the table: one value for each of pegboard, tarsy, ai-agent, antwort, goat and minion.
pub(crate) fn row<T>(values: [T; 6]) -> impl Iterator<Item = (&'static str, T)> {
    ["pegboard", "tarsy", "ai-agent", "antwort", "goat", "minion"]
        .into_iter()
        .zip(values)
}

pub(crate) fn load(text: &str) -> Loaded {
    Config::from_text(text, Format::Toml, &Env::new(|_| None))
}

/// A file with this preset and these settings of `fx`.
fn config(preset: &str, settings: &str) -> Config {
    let text = format!("preset = '{preset}'\n[servers.fx]\ncommand = 'in-process'\n{settings}\n");
    let loaded = load(&text);
    assert_eq!(loaded.problems, [], "{text}");
    loaded.config
}

/// The settings of `fx` in a file with this preset, and the rest of the file.
pub(crate) fn file(preset: &str, settings: &str) -> (ServerConfig, Config) {
    let mut config = config(preset, settings);
    let server = config.servers.remove(&name("fx")).expect("a server");
    (server, config)
}

pub(crate) fn policy(preset: &str) -> Policy {
    file(preset, "").0.policy
}

/// A fake under a preset: its board, one agent's view, and the fake's handle.
pub(crate) struct Stage {
    pub(crate) board: Pegboard,
    pub(crate) tools: Toolset,
    pub(crate) handle: MemoryHandle,
    before: u32,
}

impl Stage {
    /// A board on which nothing was requested yet.
    pub(crate) fn untouched(preset: &str, settings: &str, fake: &FakeServer) -> Self {
        let (board, handle, before) = configured_board(config(preset, settings), fake);
        let tools = board.toolset();
        Self {
            board,
            tools,
            handle,
            before,
        }
    }

    /// The same, with the server connected if the preset starts it only on request.
    pub(crate) async fn new(preset: &str, settings: &str, fake: &FakeServer) -> Self {
        let stage = Self::untouched(preset, settings, fake);
        if preset == "goat" {
            stage.board.reconnect(&name("fx")).await;
        }
        stage
    }

    pub(crate) async fn call(&self, tool: &str) -> Reply {
        self.tools.call(ToolCall::new(format!("fx.{tool}"))).await
    }

    /// The number of times the server was started.
    pub(crate) fn starts(&self) -> u32 {
        self.handle.starts() - self.before
    }
}

pub(crate) fn good() -> FakeServer {
    FakeServer::new("fx").tool(Tool::new("hello").answers_text("hi"))
}

/// A server that exits at the first message.
pub(crate) fn crashing() -> FakeServer {
    let fault = Fault::ExitsAtHandshake {
        code: 3,
        stderr: String::new(),
    };
    FakeServer::new("fx").fault(fault)
}

pub(crate) fn silent() -> FakeServer {
    FakeServer::new("fx").fault(Fault::SilentHandshake)
}
