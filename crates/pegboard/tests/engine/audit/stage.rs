//! A board with one server, `fx`, and an audit log.

use std::path::PathBuf;

use pegboard::{
    Config, Pegboard, ServerConfig,
    config::{AuditConfig, Command, Transport},
};
use pegboard_testkit::{FakeServer, MemoryHandle};
use serde_json::Value;

use crate::support::*;

pub(crate) struct Stage {
    pub(crate) board: Pegboard,
    pub(crate) fx: MemoryHandle,
    pub(crate) log: PathBuf,
    _folder: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new(fake: &FakeServer, settings: impl FnOnce(&mut ServerConfig)) -> Self {
        Self::with(fake, settings, |_| {})
    }

    pub(crate) fn with(
        fake: &FakeServer,
        settings: impl FnOnce(&mut ServerConfig),
        audit: impl FnOnce(&mut AuditConfig),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("audit/calls.jsonl");
        let mut config = Config::default();
        let mut audited = AuditConfig::new(&log);
        audit(&mut audited);
        config.audit = Some(audited);
        let mut server = ServerConfig::new(Transport::Stdio(Command::new("in-process")));
        settings(&mut server);
        let (_, fx) = fake.connect();
        let board = Pegboard::builder(config)
            .in_process_with(name("fx"), dialer(&fx), server)
            .open();
        Self {
            board,
            fx,
            log,
            _folder: folder,
        }
    }

    /// Closes the board and returns the records after the header. The chain must be whole.
    pub(crate) async fn records(&self) -> Vec<Value> {
        self.board.shutdown().await;
        let check = pegboard::audit::verify(&self.log, None).unwrap();
        assert_eq!(check.broken, None);
        let text = std::fs::read_to_string(&self.log).unwrap();
        let lines = text.lines().skip(1);
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
