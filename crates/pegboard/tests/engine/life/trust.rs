//! Servers of a project file that is not approved: they have a row, and nothing starts them.

use std::{fs, path::PathBuf};

use pegboard::{
    Config, Env, Kind, Pegboard, State,
    config::{ProjectFile, Source, TrustStore},
};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::support::*;

/// A folder with a project file and a store of approvals.
struct Project {
    folder: tempfile::TempDir,
}

#[expect(
    clippy::unwrap_used,
    reason = "a test helper that cannot go on has nothing better to do than to panic"
)]
impl Project {
    /// The server `fx` creates its log when it is started.
    fn new() -> Self {
        let project = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        project.write("");
        project
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, more: &str) {
        let fake = FakeServer::new("fx").tool(Tool::new("hello").answers_text("hi"));
        let (program, args) = fake.log(self.path("log")).command();
        let text = format!(
            "[servers.fx]\ncommand = {}\nargs = {}\nstart = 'eager'\nrequired = true\n{more}",
            json!(program),
            json!(args).to_string().replace('$', "$$")
        );
        fs::write(self.path("pegboard.toml"), text).unwrap();
    }

    fn store(&self) -> TrustStore {
        TrustStore::at(self.path("state/trust.json"))
    }

    fn config(&self) -> Config {
        let source = Source::project(self.path("pegboard.toml"), &self.store());
        Config::load(&[source], &Env::process()).readable().unwrap()
    }

    fn accept(&self) {
        let file = ProjectFile::read(&self.path("pegboard.toml"), &Env::process()).unwrap();
        self.store().accept(&file).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_starts_a_server_of_an_unapproved_file() {
    let project = Project::new();
    let board = Pegboard::open(project.config());
    board.settle(PATIENCE).await;
    let name = pegboard::ServerName::parse("fx").unwrap();
    let tools = board.toolset();
    let listing = tools.list(PATIENCE).await;
    assert_eq!(listing.unavailable[0].state, State::PendingTrust);
    assert_contains(
        listing.unavailable[0].hint.as_deref().unwrap(),
        &["`pegboard trust accept`"],
    );
    let reply = call(&tools, "fx.hello", json!({})).await;
    assert_outcome(&reply, Kind::NotPermitted, false);
    assert!(!board.enable(&name).await);
    let _ = board.reconnect(&name).await;
    board.settle(PATIENCE).await;
    let status = board.status();
    assert_eq!(status.servers[0].state, State::PendingTrust);
    assert!(
        !status.servers[0].required,
        "an unapproved file does not decide about readiness"
    );
    assert!(!project.path("log").exists(), "the server was started");
    board.shutdown().await;
    assert!(!project.path("log").exists(), "the server was started");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_server_starts_when_the_config_is_applied_again() {
    let project = Project::new();
    let board = Pegboard::open(project.config());
    project.accept();
    board.apply(project.config()).await;
    let tools = board.toolset();
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert!(project.path("log").exists(), "the canary of the other test works");
    // After a change the server that runs is the approved one.
    project.write("env = { CHANGED = 'yes' }\n");
    let config = project.config();
    assert!(config.servers.is_empty());
    board.apply(config).await;
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert_eq!(board.status().servers[0].state, State::Ready);
    board.shutdown().await;
}
