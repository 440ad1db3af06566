//! A board whose servers give long answers, and a folder for spilled outputs.

use std::path::Path;

use pegboard::{
    Config, Pegboard, ServerConfig, View,
    config::{Command, Transport},
    toolset::SpillLimits,
};
use pegboard_testkit::FakeServer;

use crate::support::{dialer, name};

/// `count` numbered lines.
pub(crate) fn lines(count: usize) -> String {
    (1..=count).map(|n| format!("line {n}\n")).collect()
}

/// A board with these in-process servers.
pub(crate) fn of_fakes<const N: usize>(servers: [(&str, FakeServer, ServerConfig); N]) -> Pegboard {
    let mut builder = Pegboard::builder(Config::default());
    for (server, fake, settings) in servers {
        let (_, handle) = fake.connect();
        builder = builder.in_process_with(name(server), dialer(&handle), settings);
    }
    builder.open()
}

pub(crate) fn plain() -> ServerConfig {
    ServerConfig::new(Transport::Stdio(Command::new("in-process")))
}

/// A view that spills outputs to this folder.
pub(crate) fn view(folder: &Path) -> View {
    let mut limits = SpillLimits::default();
    limits.folder = Some(folder.to_owned());
    View::new().spill(limits)
}

/// The number of spill folders of toolsets.
pub(crate) fn folders(folder: &Path) -> usize {
    std::fs::read_dir(folder).expect("a folder").count()
}
