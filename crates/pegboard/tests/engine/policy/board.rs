//! Boards of in-process fakes, each with its own settings.

use pegboard::{
    Config, Listing, Pegboard, ServerConfig, Toolset,
    config::{Command, Transport},
};
use pegboard_testkit::{FakeServer, MemoryHandle};

use crate::support::*;

/// A fake server and its settings.
pub(crate) struct Fake {
    name: &'static str,
    handle: MemoryHandle,
    config: ServerConfig,
}

pub(crate) fn fake(name: &'static str, server: &FakeServer) -> Fake {
    // The first connection is dropped: each start opens its own.
    let (_, handle) = server.connect();
    let config = ServerConfig::new(Transport::Stdio(Command::new("in-process")));
    Fake { name, handle, config }
}

impl Fake {
    pub(crate) fn with(mut self, change: impl FnOnce(&mut ServerConfig)) -> Self {
        change(&mut self.config);
        self
    }
}

/// A board with these servers, and their handles in the same order.
pub(crate) fn board<const N: usize>(fakes: [Fake; N]) -> (Pegboard, [MemoryHandle; N]) {
    let mut builder = Pegboard::builder(Config::default());
    let mut handles = Vec::new();
    for fake in fakes {
        builder = builder.in_process_with(name(fake.name), dialer(&fake.handle), fake.config);
        handles.push(fake.handle);
    }
    (
        builder.open(),
        handles.try_into().expect("as many as there are servers"),
    )
}

pub(crate) fn names(listing: &Listing) -> Vec<String> {
    listing.tools.iter().map(|tool| tool.tool.dotted_name()).collect()
}

/// `server.tool` of every callable tool.
pub(crate) async fn listed(tools: &Toolset) -> Vec<String> {
    names(&tools.list(PATIENCE).await)
}

/// Waits until the listing equals `expected`.
pub(crate) async fn until_listed(tools: &Toolset, expected: &[&str]) {
    let waiting = async {
        while listed(tools).await != expected {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
        panic!("{:?} is listed, not {expected:?}", listed(tools).await);
    }
}
