//! Restarts and sharing with real processes.

use std::time::Duration;

use pegboard::{Outcome, State};
use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::json;
use tokio::time::Instant;

use crate::support::*;

fn good() -> FakeServer {
    FakeServer::new("fx")
        .tool(Tool::new("hello").answers_text("hi"))
        .tool(Tool::new("pid").shows_pid())
        .tool(Tool::new("slow").answers_text("done").after(secs(60)))
}

/// A call fails immediately when its server is killed, and the following calls succeed on a new process.
#[tokio::test]
async fn a_server_killed_in_a_call_answers_at_once_and_serves_the_next_calls() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let board = board(process(&good().log(log.to_str().unwrap())));
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let heard = || pegboard_testkit::read_log(&log).map_or(0, |log| log.count("tools/call"));
    for _ in 0..3 {
        let (pid, before) = (board.status().servers[0].pid.expect("a process"), heard());
        let busy = tools.clone();
        let slow = tokio::spawn(async move { call(&busy, "fx.slow", json!({})).await });
        // The server must have received the call before it is killed.
        while heard() == before {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let killed = Instant::now();
        pegboard_testkit::kill(pid);
        let reply = slow.await.unwrap();
        assert!(killed.elapsed() < PATIENCE, "{:?}", killed.elapsed());
        let Outcome::Lost(failure) = &reply.outcome else {
            panic!("{:?}", reply.outcome)
        };
        assert!(failure.may_have_executed);
        assert!(failure.message.contains("signal 9"), "{}", failure.message);
        for _ in 0..3 {
            assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
        }
    }
    assert_eq!(board.status().servers[0].restarts, 3);
    board.shutdown().await;
}

/// Fifty concurrent callers of a stopped server cause one start.
#[tokio::test]
async fn fifty_callers_at_once_cause_one_start() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut config = process(&good().log(log.to_str().unwrap()));
    config.start = pegboard::config::Start::Lazy;
    let board = board(config);
    let tools = board.toolset();
    let calls = (0..50).map(|_| call(&tools, "fx.hello", json!({})));
    for reply in futures_util::future::join_all(calls).await {
        assert_eq!(reply.text(), "hi");
    }
    assert_eq!(spawned(&log).len(), 1);
    board.shutdown().await;
}

/// Twenty callers that lose the same session cause one restart.
#[tokio::test]
async fn twenty_callers_of_one_dead_session_cause_one_restart() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let fake = good().tool(Tool::new("die").answers_text("never").after(Duration::from_millis(500)));
    let fake = fake.fault_on(When::tool("die"), Fault::DiesAfterExecuting { code: 3 });
    let board = board(process(&fake.log(log.to_str().unwrap())));
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let names = std::iter::repeat_n("fx.slow", 19).chain(["fx.die"]);
    let calls = names.map(|tool| call(&tools, tool, json!({})));
    for reply in futures_util::future::join_all(calls).await {
        assert!(matches!(reply.outcome, Outcome::Lost(_)), "{:?}", reply.outcome);
    }
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert_eq!(spawned(&log).len(), 2);
    board.shutdown().await;
}

/// One of fifty servers hangs at start; the others are usable before its connect timeout of 30 s.
#[tokio::test]
async fn one_server_that_hangs_does_not_hold_up_forty_nine_others() {
    let (hanging, _) = pegboard_testkit::stalled_listener().await.unwrap();
    let mut config = pegboard::Config::default();
    config
        .servers
        .insert(name("hangs"), at(&format!("http://{hanging}/mcp")));
    let http = good().serve_http().await.unwrap();
    for number in 0..49 {
        // Identical endpoints would share one connection.
        let mut to = endpoint(&http.url());
        to.headers
            .insert("x-number".to_owned(), pegboard::Secret::new(number.to_string()));
        let server = pegboard::ServerConfig::new(pegboard::config::Transport::auto(to));
        config.servers.insert(name(&format!("s{number}")), server);
    }
    let board = pegboard::Pegboard::open(config);
    let tools = board.toolset();
    let began = Instant::now();
    let calls: Vec<_> = (0..49).map(|number| format!("s{number}.hello")).collect();
    for reply in futures_util::future::join_all(calls.iter().map(|tool| call(&tools, tool, json!({})))).await {
        assert_eq!(reply.text(), "hi");
    }
    assert!(began.elapsed() < secs(25), "{:?}", began.elapsed());
    board.shutdown().await;
}

/// Waits for a fact about a board.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(secs(60), waiting).await;
    assert!(waited.is_ok(), "it never came to this: {what}");
}

/// A failure that somebody has to mend first is not retried by the backoff: while another server is started again and again, this one is not.
#[tokio::test]
async fn a_missing_program_is_not_started_in_a_loop() {
    let command = pegboard::config::Command::new("no-such-program-anywhere");
    let mut missing = pegboard::ServerConfig::new(pegboard::config::Transport::Stdio(command));
    let mut crashing = process(&good().fault(Fault::ExitsAtStart {
        code: 3,
        stderr: String::new(),
    }));
    for config in [&mut missing, &mut crashing] {
        config.policy.restart.backoff = vec![Duration::from_millis(10)];
    }
    let board = boards([("missing", missing), ("crashing", crashing)]);
    let failed = |server: &str| board.metrics().servers[&name(server)].failed_starts;
    until("the other one has failed three times", || failed("crashing") >= 3).await;
    assert_eq!(failed("missing"), 1, "it was started again");
    let rows = board.status().servers;
    let status = rows.iter().find(|row| row.name.as_str() == "missing").unwrap().clone();
    assert_eq!(status.state, State::Down);
    let error = status.last_error.expect("an error");
    assert!(error.hint.expect("a hint").contains("absolute path"));
    // An operator's request starts it at once.
    board.reconnect(&name("missing")).await;
    until("it is tried once more", || failed("missing") == 2).await;
    board.shutdown().await;
}

/// A shared server has one process for all views; a server of scope `session` has one process per view.
#[tokio::test]
async fn views_share_a_process_unless_the_config_gives_each_its_own() {
    let mut own = process(&good());
    own.policy.scope = pegboard::config::Scope::Session;
    let board = boards([("own", own), ("shared", process(&good()))]);
    let (first, second) = (board.toolset(), board.toolset());
    let shared = call(&first, "shared.pid", json!({})).await.text();
    assert_eq!(call(&second, "shared.pid", json!({})).await.text(), shared);
    let (one, two) = (
        call(&first, "own.pid", json!({})).await.text(),
        call(&second, "own.pid", json!({})).await.text(),
    );
    assert_ne!(one, two);
    drop(first);
    gone(one.trim().parse().unwrap(), secs(10)).await;
    assert_eq!(call(&second, "own.pid", json!({})).await.text(), two);
    drop(second);
    gone(two.trim().parse().unwrap(), secs(10)).await;
    board.shutdown().await;
}

/// A program that downloads its server first is not killed when its callers time out, and is started only once.
#[tokio::test]
async fn a_slow_installer_is_kept_warming_and_started_once() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let fake = good().fault(Fault::SlowStart { ms: 3000 }).log(log.to_str().unwrap());
    let (program, args) = fake.command();
    let npx = folder.path().join("npx");
    std::os::unix::fs::symlink(program, &npx).unwrap();
    let command = pegboard::config::Command::new(npx.to_str().unwrap()).args(args);
    let mut config = pegboard::ServerConfig::new(pegboard::config::Transport::Stdio(command));
    config.limits.connect_timeout = Duration::from_millis(500);
    let board = board(config);
    let tools = board.toolset();
    let early = call(&tools, "fx.hello", json!({})).await;
    assert_eq!(early.outcome.kind(), pegboard::Kind::Unavailable);
    assert!(
        early.outcome.hint().unwrap().contains("still starting"),
        "{:?}",
        early.outcome
    );
    ready(&board).await;
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert_eq!(spawned(&log).len(), 1);
    board.shutdown().await;
}

/// A catalog stored by an earlier run is listed without starting a process; the first call starts it.
#[tokio::test]
async fn the_tools_of_a_lazy_server_are_known_before_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut config = process(&good().log(log.to_str().unwrap()));
    config.start = pegboard::config::Start::Lazy;
    let open = || {
        let mut all = pegboard::Config::default();
        all.servers.insert(name("fx"), config.clone());
        pegboard::Pegboard::builder(all)
            .catalog_store(folder.path().join("catalogs"))
            .open()
    };
    let first = open();
    let listed = first.toolset().list(PATIENCE).await.tools;
    first.shutdown().await;
    assert_eq!((listed.len(), spawned(&log).len()), (3, 1));
    let second = open();
    let tools = second.toolset();
    let again = tools.list(PATIENCE).await;
    assert_eq!(
        serde_json::to_string(&again.tools).unwrap(),
        serde_json::to_string(&listed).unwrap()
    );
    assert_eq!(
        (second.status().servers[0].state, spawned(&log).len()),
        (State::Idle, 1)
    );
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert_eq!(spawned(&log).len(), 2);
    second.shutdown().await;
}

/// A draining board rejects new calls and lets calls in flight finish.
#[tokio::test]
async fn a_board_that_drains_lets_calls_end_and_takes_no_more() {
    let fake = good().tool(Tool::new("wait").answers_text("done").after(Duration::from_millis(500)));
    let board = board(process(&fake));
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let busy = tools.clone();
    let under_way = tokio::spawn(async move { call(&busy, "fx.wait", json!({})).await });
    while board.status().servers[0].in_flight == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (drained, late) = tokio::join!(board.drain(PATIENCE), call(&tools, "fx.hello", json!({})));
    assert!(drained);
    assert!(late.text().contains("closing"), "{}", late.text());
    assert_eq!(under_way.await.unwrap().text(), "done");
    board.shutdown().await;
}
