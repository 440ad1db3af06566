//! Servers with an invalid config: they keep their row in the status, and the other servers work.

use pegboard::{Config, Env, Format, Kind, Loaded, Pegboard, State};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::support::*;

fn load(entry: &str) -> Loaded {
    let (program, args) = FakeServer::new("fx")
        .tool(Tool::new("hello").answers_text("hi"))
        .command();
    let (program, args) = (json!(program), json!(args));
    let text = format!("[servers.fx]\ncommand = {program}\nargs = {args}\n{entry}");
    Config::from_text(&text, Format::Toml, &Env::new(|_| None))
}

#[tokio::test]
async fn a_misconfigured_server_has_a_row_that_says_why() {
    let loaded = load("[servers.bad]\nurll = 'http://localhost'\nrequired = true\n");
    assert!(!loaded.problems.is_empty());
    let board = Pegboard::open(loaded.config);
    board.settle(PATIENCE).await;
    let status = board.status();
    let states: Vec<_> = status
        .servers
        .iter()
        .map(|row| (row.name.as_str(), row.state))
        .collect();
    assert_eq!(states, [("bad", State::Misconfigured), ("fx", State::Ready)]);
    let error = status.servers[0].last_error.as_ref().unwrap();
    assert_contains(&error.message, &["its config cannot be used", "urll"]);
    assert_contains(error.hint.as_deref().unwrap(), &["servers.bad.urll"]);
    assert!(!status.healthy && !status.ready, "it is required");
    assert_eq!(status.warnings.len(), 1);
    let tools = board.toolset();
    let listing = tools.list(PATIENCE).await;
    assert_eq!((listing.tools.len(), listing.unavailable.len()), (1, 1));
    assert_eq!(listing.unavailable[0].state, State::Misconfigured);
    let reply = call(&tools, "bad.anything", json!({})).await;
    assert_outcome(&reply, Kind::Unavailable, false);
    assert_contains(&reply.text(), &["its config cannot be used"]);
    // With a valid config it becomes an ordinary server.
    let (program, args) = FakeServer::new("bad")
        .tool(Tool::new("late").answers_text("here"))
        .command();
    let well = load(&format!(
        "[servers.bad]\ncommand = {}\nargs = {}\n",
        json!(program),
        json!(args)
    ));
    let applied = board.apply(well.config).await;
    assert!(applied.errors.is_empty(), "{:?}", applied.errors);
    assert_eq!(call(&tools, "bad.late", json!({})).await.text(), "here");
    assert!(board.status().healthy);
    board.shutdown().await;
}

#[tokio::test]
async fn an_entry_that_breaks_leaves_the_server_that_runs_under_its_old_settings() {
    let board = Pegboard::open(load("").config);
    board.settle(PATIENCE).await;
    let before = board.status().servers[0].pid;
    for _ in 0..2 {
        let broken = load("deny = 7\n[servers.new]\nurll = 'x'\n");
        let applied = board.apply(broken.config).await;
        assert!(applied.removed.is_empty() && applied.replaced.is_empty());
        let failed: Vec<_> = applied.errors.iter().map(|error| error.server.as_str()).collect();
        assert_eq!(failed, ["fx", "new"]);
        let rows = board.status().servers;
        assert_eq!((rows[0].pid, rows[0].state), (before, State::Ready));
        assert_eq!(rows[1].state, State::Misconfigured);
    }
    let applied = board.apply(load("").config).await;
    assert!(applied.errors.is_empty() && applied.retuned.is_empty());
    assert_eq!(board.status().servers.len(), 1);
    board.shutdown().await;
}

#[tokio::test]
async fn an_operator_cannot_start_what_cannot_be_configured() {
    let board = Pegboard::open(load("[servers.bad]\nurll = 'x'\n").config);
    board.enable(&name("bad")).await;
    board.reconnect(&name("bad")).await;
    board.settle(PATIENCE).await;
    assert_eq!(board.status().servers[0].state, State::Misconfigured);
    board.shutdown().await;
}
