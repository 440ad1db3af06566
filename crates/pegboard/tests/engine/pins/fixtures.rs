//! A board whose configured servers are fakes in memory, with its pins in a folder.

use std::{path::Path, sync::Arc};

use pegboard::{
    Config, Env, Format, Pegboard, Toolset,
    catalog::{Instructions, ServerWords},
};
use pegboard_testkit::{FakeServer, MemoryHandle, Tool};
use serde_json::json;

use crate::support::*;

/// A text that must not reach an agent.
pub(crate) const CANARY: &str = "canary-7f3a";

pub(crate) fn load(text: &str) -> Config {
    let loaded = Config::from_text(text, Format::Toml, &Env::new(|_| None));
    assert_eq!(loaded.problems, [], "{text}");
    loaded.config
}

/// A config with the server `fx` and these settings.
pub(crate) fn fx(settings: &str) -> Config {
    load(&format!(
        "[servers.fx]\ncommand = 'srv'\nargs = ['--fast']\n{settings}\n"
    ))
}

/// Opens a board that connects every server of the config to the fake.
pub(crate) fn open(config: Config, fake: &FakeServer, pins: &Path) -> (Pegboard, MemoryHandle) {
    let (_unused, handle) = fake.connect();
    let server = handle.clone();
    let board = Pegboard::builder(config)
        .pins(pins)
        .stand_ins(move |_, _| Arc::new(dialer(&server)))
        .without_jitter()
        .open();
    (board, handle)
}

/// A run of a program: opens a board, lists its tools and ends it. Returns the names of the tools and the warnings.
pub(crate) async fn run(settings: &str, fake: &FakeServer, pins: &Path) -> (Vec<String>, Vec<String>) {
    let (board, _handle) = open(fx(settings), fake, pins);
    let listed = list(&board.toolset()).await;
    board.shutdown().await;
    listed
}

pub(crate) async fn list(tools: &Toolset) -> (Vec<String>, Vec<String>) {
    let listing = tools.list(PATIENCE).await;
    assert!(listing.unavailable.is_empty(), "{:?}", listing.unavailable);
    let names = listing.tools.iter().map(|listed| listed.tool.name.clone());
    (names.filter(|name| name != "read_output").collect(), listing.warnings)
}

/// Everything that an agent can read about the tools of a board, as one text.
pub(crate) async fn all_text(board: &Pegboard) -> String {
    let tools = board.toolset();
    let listing = tools.list(PATIENCE).await;
    let found: Vec<_> = tools.find("canary", 50).into_iter().map(|found| found.tool).collect();
    let all = Instructions::default().words(ServerWords::All);
    let prompts = tools.prompts(PATIENCE).await;
    format!(
        "{} {} {} {} {:?}",
        json!(listing.tools),
        json!(found),
        tools.instructions(&all),
        json!(prompts.prompts),
        listing.definitions()
    )
}

pub(crate) fn tool(name: &str) -> Tool {
    Tool::new(name).description("Does one thing.").answers_text("done")
}

pub(crate) fn server(tools: impl IntoIterator<Item = Tool>) -> FakeServer {
    FakeServer::new("fx").tools(tools)
}
