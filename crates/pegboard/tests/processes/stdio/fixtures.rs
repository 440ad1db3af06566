//! A folder for the files of one test, and the fakes that write to it.

use std::path::PathBuf;

use pegboard_testkit::{FakeServer, LogFile, Tool, read_log, read_pids};
use tempfile::TempDir;

use crate::support::*;

/// The files of one test.
pub(crate) struct TestDir(TempDir);

impl TestDir {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A fake with a few tools that logs its starts and the messages it receives.
    pub(crate) fn fake(&self) -> FakeServer {
        FakeServer::new("fx")
            .log(self.file("log"))
            .tool(Tool::new("hello").answers_text("hi"))
            .tool(Tool::new("echo").echoes_nonce())
            .tool(Tool::new("pid").shows_pid())
    }

    pub(crate) fn log(&self) -> LogFile {
        read_log(self.file("log")).unwrap()
    }

    /// The process ids of all starts.
    pub(crate) fn starts(&self) -> Vec<u32> {
        self.log().spawned
    }

    /// The file to which fakes write the ids of their children.
    pub(crate) fn pid_file(&self) -> PathBuf {
        self.file("children")
    }

    pub(crate) fn children(&self) -> Vec<u32> {
        read_pids(self.pid_file())
    }

    /// Waits until this many messages with this method were received.
    pub(crate) async fn wait_for(&self, method: &str, count: usize) {
        let waiting = async {
            while self.log().count(method) < count {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        };
        let received = tokio::time::timeout(PATIENCE, waiting).await;
        received.unwrap_or_else(|_| panic!("{method} was not received {count} times"));
    }

    /// Asserts that no process of this test is left, including children.
    pub(crate) async fn assert_no_process_left(&self) {
        for pid in self.starts().into_iter().chain(self.children()) {
            gone(pid, PATIENCE).await;
        }
    }
}
