//! One server, `fx`, with the settings of a config text, and a board over it.

use pegboard::{Config, Env, Format, Pegboard, Reply, ToolCall, Toolset, View, toolset::SpillLimits};
use pegboard_testkit::{FakeServer, Fault, MemoryHandle, Tool, When};
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::support::*;

/// Loads a TOML config that must have no problem.
pub(crate) fn load(text: &str) -> Config {
    let loaded = Config::from_text(text, Format::Toml, &Env::new(|_| None));
    assert_eq!(loaded.problems, [], "{text}");
    loaded.config
}

/// A board whose in-process server `fx` has the settings of a config text.
pub(crate) struct Stage {
    pub(crate) board: Pegboard,
    pub(crate) tools: Toolset,
    pub(crate) handle: MemoryHandle,
    before: u32,
}

impl Stage {
    /// A board with these settings in the table of `fx`.
    pub(crate) fn new(settings: &str, fake: &FakeServer) -> Self {
        Self::of_file("", settings, fake)
    }

    /// The same with settings at the top of the file.
    pub(crate) fn of_file(top: &str, settings: &str, fake: &FakeServer) -> Self {
        let text = format!("{top}\n[servers.fx]\ncommand = 'in-process'\n{settings}\n");
        Self::of_config(load(&text), fake)
    }

    /// The same for a config that is loaded already.
    pub(crate) fn of_config(config: Config, fake: &FakeServer) -> Self {
        let (board, handle, before) = configured_board(config, fake);
        let tools = board.toolset();
        Self {
            board,
            tools,
            handle,
            before,
        }
    }

    pub(crate) async fn call(&self, tool: &str) -> Reply {
        self.tools.call(ToolCall::new(format!("fx.{tool}"))).await
    }

    pub(crate) async fn call_with(&self, tool: &str, arguments: Value) -> Reply {
        call(&self.tools, &format!("fx.{tool}"), arguments).await
    }

    /// Lists the tools, and returns the names that the server gives them.
    pub(crate) async fn listed(&self) -> Vec<String> {
        let listing = self.tools.list(PATIENCE).await;
        listing.tools.iter().map(|listed| listed.tool.name.clone()).collect()
    }

    /// The number of times the server was started.
    pub(crate) fn starts(&self) -> u32 {
        self.handle.starts() - self.before
    }

    /// The breaker's state as the status shows it.
    pub(crate) fn breaker(&self) -> String {
        self.board.status().servers[0].breaker.to_string()
    }

    /// The seconds that `count` concurrent calls of a tool take.
    pub(crate) async fn seconds_of(&self, count: usize, tool: &str) -> u64 {
        self.tools.list(PATIENCE).await;
        let began = Instant::now();
        let calls = (0..count).map(|_| ToolCall::new(format!("fx.{tool}")));
        for reply in self.tools.call_all(calls).await {
            assert!(!reply.is_error(), "{}", reply.text());
        }
        began.elapsed().as_secs()
    }

    /// A view that spills results to a temporary folder, with changes.
    pub(crate) fn spilling(&self, change: impl FnOnce(View) -> View) -> (Toolset, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let mut limits = SpillLimits::default();
        limits.folder = Some(folder.path().to_owned());
        let tools = self.board.toolset_with(change(View::new().spill(limits)));
        (tools, folder)
    }
}

/// A server whose `hello` answers at once, `slow` after ten seconds and `mute` never.
pub(crate) fn good() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("hello").answers_text("hi"))
        .tool(Tool::new("slow").answers_text("done").after(secs(10)))
        .tool(Tool::new("mute"))
        .fault_on(When::tool("mute"), Fault::NeverAnswers)
}

/// A server that answers nothing.
pub(crate) fn silent() -> FakeServer {
    FakeServer::new("fx").fault(Fault::SilentHandshake)
}
