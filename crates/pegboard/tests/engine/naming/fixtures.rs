//! Boards over several in-process fakes.

use pegboard::{
    Config, Pegboard, ServerConfig, Toolset,
    config::{Command, Transport},
};
use pegboard_testkit::{FakeServer, Tool};

use crate::support::*;

/// A board with these servers.
pub(crate) fn board_of(fakes: Vec<(FakeServer, &str)>) -> Pegboard {
    board_with(Config::default(), fakes)
}

/// The same with a config.
pub(crate) fn board_with(config: Config, fakes: Vec<(FakeServer, &str)>) -> Pegboard {
    let mut builder = Pegboard::builder(config);
    for (fake, deny) in fakes {
        let (_, handle) = fake.connect();
        let mut settings = ServerConfig::new(Transport::Stdio(Command::new("in-process")));
        settings.deny = deny.split_whitespace().map(str::to_owned).collect();
        builder = builder.in_process_with(name(&fake.script().name), dialer(&handle), settings);
    }
    builder.open()
}

/// A server whose tools each answer with their own name.
pub(crate) fn server(name: &str, tools: &[&str]) -> FakeServer {
    let own_name = |tool: &&str| Tool::new(*tool).answers_text(format!("{name}: {tool}"));
    FakeServer::new(name).tools(tools.iter().map(own_name))
}

/// The names that models see.
pub(crate) async fn listed(tools: &Toolset) -> Vec<String> {
    let listing = tools.list(PATIENCE).await;
    assert!(listing.unavailable.is_empty(), "{:?}", listing.unavailable);
    listing.tools.into_iter().map(|tool| tool.name).collect()
}
