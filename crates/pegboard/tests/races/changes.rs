//! Changes that are made while others are under way.

use std::{
    future::Future,
    path::Path,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt;
use pegboard::*;
use pegboard_testkit::{FakeServer, Fault, Tool as FakeTool, is_alive};

use crate::support::{PATIENCE, board, call, name, process, secs, spawned};

pub(crate) fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(ms(5)).await;
        }
    };
    tokio::time::timeout(secs(20), waiting)
        .await
        .unwrap_or_else(|_| panic!("too late: {what}"));
}

pub(crate) fn good(log: &Path, says: &str) -> FakeServer {
    FakeServer::new("fx")
        .log(log)
        .tool(FakeTool::new("hello").answers_text(says))
        .tool(FakeTool::new("other").answers_text(says))
}

pub(crate) fn alive(log: &Path) -> Vec<u32> {
    let mut pids = spawned(log);
    pids.retain(|pid| is_alive(*pid));
    pids
}

pub(crate) fn one(config: ServerConfig) -> Config {
    let mut all = Config::default();
    all.servers.insert(name("fx"), config);
    all
}

pub(crate) fn states(board: &Pegboard) -> Vec<State> {
    board.status().servers.iter().map(|row| row.state).collect()
}

/// Waits for a word before it agrees.
#[derive(Clone, Default)]
pub(crate) struct Slow {
    pub(crate) asked: Arc<AtomicUsize>,
    pub(crate) go: Arc<tokio::sync::Notify>,
}

impl Approver for Slow {
    fn decide<'a>(&'a self, _: Question<'a>) -> Pin<Box<dyn Future<Output = Decision> + Send + 'a>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            self.go.notified().await;
            Decision::Once
        })
    }
}

// 1. shutdown while a replacement is being started
#[tokio::test(flavor = "multi_thread")]
async fn shutdown_leaves_no_replacement_running() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    let board = board(process(&good(&old, "old")));
    board.settle(PATIENCE).await;
    let slow = process(&good(&new, "new").fault(Fault::SilentHandshake));
    let b = board.clone();
    let applying = tokio::spawn(async move { b.apply(one(slow)).await });
    until("the new one is started", || !alive(&new).is_empty()).await;
    board.shutdown().await;
    let left = alive(&new);
    assert!(
        left.is_empty(),
        "alive after shutdown: {left:?}, apply done: {}",
        applying.is_finished()
    );
}

// 2. a process begins after shutdown
#[tokio::test(flavor = "multi_thread")]
async fn nothing_starts_after_shutdown_by_apply_then_enable() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let board = Pegboard::open(Config::default());
    let (_view, _second) = (board.toolset(), board.toolset());
    board.shutdown().await;
    let mut settings = process(&good(&log, "hi"));
    settings.policy.scope = Scope::Session;
    board.apply(one(settings)).await;
    let enabled = board.enable(&name("fx")).await;
    tokio::time::sleep(secs(1)).await;
    assert_eq!((alive(&log).len(), enabled), (0, false));
}

// 3. a refused server when there is room
#[tokio::test(flavor = "multi_thread")]
async fn enable_of_a_refused_server_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut config = Config::default();
    config.limits.servers = 1;
    config.servers.insert(name("a"), process(&good(&log, "hi")));
    config
        .servers
        .insert(name("b"), process(&good(&log, "hi").instructions("b")));
    let board = Pegboard::open(config.clone());
    board.settle(PATIENCE).await;
    board.disconnect(&name("a")).await;
    let enabled = board.enable(&name("b")).await;
    let reply = call(&board.toolset(), "b.hello", serde_json::json!({})).await;
    assert_eq!((enabled, reply.text().as_str()), (true, "hi"));
}

#[tokio::test(flavor = "multi_thread")]
async fn connect_of_a_refused_server_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut config = Config::default();
    config.limits.servers = 1;
    config.servers.insert(name("a"), process(&good(&log, "hi")));
    config
        .servers
        .insert(name("b"), process(&good(&log, "hi").instructions("b")));
    let board = Pegboard::open(config.clone());
    board.settle(PATIENCE).await;
    board.disconnect(&name("a")).await;
    board
        .connect(name("b"), config.servers[&name("b")].clone())
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn enable_of_a_misconfigured_server_is_not_success() {
    let loaded = Config::from_text(
        "[servers.x]\ncommand = 'a'\ncall_timeout = 'soon'\n",
        Format::Toml,
        &Env::new(|_| None),
    );
    let board = Pegboard::open(loaded.config);
    assert_eq!(states(&board), [State::Misconfigured]);
    assert!(!board.enable(&name("x")).await);
}

// 4. max_servers by enable
#[tokio::test(flavor = "multi_thread")]
async fn enable_keeps_to_max_servers() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut config = Config::default();
    config.limits.servers = 1;
    for n in ["a", "b", "c"] {
        let mut server = process(&good(&log, "hi").instructions(n));
        server.enabled = false;
        config.servers.insert(name(n), server);
    }
    let board = Pegboard::open(config);
    let mut on = Vec::new();
    for n in ["a", "b", "c"] {
        on.push(board.enable(&name(n)).await);
    }
    tokio::time::sleep(secs(1)).await;
    assert_eq!(
        on,
        [true, false, false],
        "{:?}, processes {}",
        states(&board),
        alive(&log).len()
    );
}

// 5. operator's word during a replacement
#[tokio::test(flavor = "multi_thread")]
async fn disable_holds_while_a_replacement_is_starting() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    let board = board(process(&good(&old, "old")));
    board.settle(PATIENCE).await;
    let slow = process(&good(&new, "new").fault(Fault::SlowStart { ms: 700 }));
    let b = board.clone();
    let applying = tokio::spawn(async move { b.apply(one(slow)).await });
    until("the new one is started", || !alive(&new).is_empty()).await;
    assert!(board.disable(&name("fx")).await);
    applying.await.unwrap();
    let reply = call(&board.toolset(), "fx.hello", serde_json::json!({})).await;
    assert_eq!(states(&board), [State::Disabled], "a call says {}", reply.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn disconnect_holds_while_a_replacement_is_starting() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    let board = board(process(&good(&old, "old")));
    board.settle(PATIENCE).await;
    let slow = process(&good(&new, "new").fault(Fault::SlowStart { ms: 700 }));
    let b = board.clone();
    let applying = tokio::spawn(async move { b.apply(one(slow)).await });
    until("the new one is started", || !alive(&new).is_empty()).await;
    assert!(board.disconnect(&name("fx")).await);
    applying.await.unwrap();
    assert_eq!(states(&board), []);
}

// 6. the later apply wins
#[tokio::test(flavor = "multi_thread")]
async fn the_later_apply_wins() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new, newer) = (
        folder.path().join("old"),
        folder.path().join("new"),
        folder.path().join("newer"),
    );
    let board = board(process(&good(&old, "old")));
    board.settle(PATIENCE).await;
    let slow = process(&good(&new, "second").fault(Fault::SlowStart { ms: 1000 }));
    let b = board.clone();
    let applying = tokio::spawn(async move { b.apply(one(slow)).await });
    until("the new one is started", || !alive(&new).is_empty()).await;
    board.apply(one(process(&good(&newer, "third")))).await;
    let reply = call(&board.toolset(), "fx.hello", serde_json::json!({})).await;
    assert_eq!(reply.text(), "third");
    applying.await.unwrap();
    let reply = call(&board.toolset(), "fx.hello", serde_json::json!({})).await;
    assert_eq!(reply.text(), "third", "the older apply displaced the newer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_a_later_apply_removes_stays_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (folder.path().join("old"), folder.path().join("new"));
    let board = board(process(&good(&old, "old")));
    board.settle(PATIENCE).await;
    let slow = process(&good(&new, "second").fault(Fault::SlowStart { ms: 700 }));
    let b = board.clone();
    let applying = tokio::spawn(async move { b.apply(one(slow)).await });
    until("the new one is started", || !alive(&new).is_empty()).await;
    board.apply(Config::default()).await;
    applying.await.unwrap();
    assert_eq!(states(&board), []);
}

// 7. no room for the replacement

#[tokio::test(flavor = "multi_thread")]
async fn max_processes_can_be_raised_by_apply() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut config = one(process(&good(&log, "old")));
    config.limits.processes = 1;
    let board = Pegboard::open(config.clone());
    board.settle(PATIENCE).await;
    config.limits.processes = 5;
    config.servers.insert(name("second"), process(&good(&log, "new")));
    let applied = board.apply(config).await;
    assert!(applied.errors.is_empty(), "{:?}", applied.errors);
}

// 8. replaced twice while a call waits for approval
pub(crate) async fn waiting_call(board: &Pegboard, slow: &Slow) -> (Toolset, tokio::task::JoinHandle<Reply>) {
    let view = board.toolset_with(View::new().approver(slow.clone()));
    let v = view.clone();
    let calling = tokio::spawn(async move { v.call(ToolCall::new("fx.hello")).await });
    let asked = slow.asked.clone();
    until("somebody is asked", || asked.load(Ordering::SeqCst) > 0).await;
    (view, calling)
}

pub(crate) fn asking(mut config: ServerConfig) -> ServerConfig {
    config.policy.approval = Approval::Always;
    config
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_for_approval_survives_two_replacements() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let board = board(asking(process(&good(&log, "one"))));
    board.settle(PATIENCE).await;
    let slow = Slow::default();
    let (_view, calling) = waiting_call(&board, &slow).await;
    board.apply(one(asking(process(&good(&log, "two"))))).await;
    board.apply(one(asking(process(&good(&log, "three"))))).await;
    slow.go.notify_one();
    let reply = calling.await.unwrap();
    assert_eq!(reply.text(), "three");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_for_approval_does_not_reach_a_new_server_that_denies_the_tool() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let board = board(asking(process(&good(&log, "one"))));
    board.settle(PATIENCE).await;
    let slow = Slow::default();
    let (_view, calling) = waiting_call(&board, &slow).await;
    let mut denied = process(&good(&log, "two"));
    denied.deny = vec!["hello".into()];
    board.apply(one(denied)).await;
    slow.go.notify_one();
    let reply = calling.await.unwrap();
    assert!(
        reply.is_error(),
        "the new server, whose config denies the tool, was called and said: {}",
        reply.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_for_approval_is_not_made_after_its_view_was_closed() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let board = board(asking(process(&good(&log, "one"))));
    board.settle(PATIENCE).await;
    let slow = Slow::default();
    let (view, calling) = waiting_call(&board, &slow).await;
    view.close().await;
    slow.go.notify_one();
    let reply = calling.await.unwrap();
    assert!(reply.is_error(), "called after the view was closed: {}", reply.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn drain_waits_for_a_call_that_waits_for_approval() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let board = board(asking(process(&good(&log, "one"))));
    board.settle(PATIENCE).await;
    let slow = Slow::default();
    let (_view, calling) = waiting_call(&board, &slow).await;
    let drained = board.drain(ms(300)).await;
    slow.go.notify_one();
    let reply = calling.await.unwrap();
    assert!(
        !drained || reply.is_error(),
        "drained, and then the call was made: {}",
        reply.text()
    );
}

// 9. events
pub(crate) fn followed(events: &mut Events) -> Vec<(State, State, Option<String>)> {
    let mut seen = Vec::new();
    while let Some(Some(event)) = events.next().now_or_never() {
        if let Event::ServerChanged { from, state, view, .. } = event {
            seen.push((from, state, view));
        }
    }
    seen
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_event_of_a_replaced_server_tells_its_state() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let board = board(process(&good(&log, "one")));
    board.settle(PATIENCE).await;
    let mut events = board.events();
    board.apply(one(process(&good(&log, "two")))).await;
    let seen = followed(&mut events);
    assert_eq!(states(&board), [State::Ready]);
    assert_eq!(seen.last().unwrap().1, State::Ready, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_that_fails_does_not_make_listeners_think_that_the_server_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let board = board(process(&good(&log, "one")));
    board.settle(PATIENCE).await;
    let mut events = board.events();
    board
        .apply(one(ServerConfig::new(Transport::Stdio(Command::new("/nonexistent/x")))))
        .await;
    let seen = followed(&mut events);
    assert_eq!(states(&board), [State::Ready]);
    assert!(seen.is_empty() || seen.last().unwrap().1 == State::Ready, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_and_status_agree_about_a_misconfigured_server() {
    let text = "[servers.x]\ncommand = 'a'\ncall_timeout = 'soon'\n";
    let load = || Config::from_text(text, Format::Toml, &Env::new(|_| None)).config;
    let board = Pegboard::open(Config::default());
    let mut events = board.events();
    board.apply(load()).await;
    assert_eq!(states(&board), [State::Misconfigured]);
    let first = followed(&mut events);
    board.apply(load()).await;
    board.apply(load()).await;
    let again = followed(&mut events);
    assert!(
        first.last().unwrap().1 == State::Misconfigured && again.is_empty(),
        "{first:?}, and without a change: {again:?}"
    );
}

// 10. cached answers of another server
#[tokio::test(flavor = "multi_thread")]
async fn a_kept_answer_is_not_given_in_the_name_of_another_server() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let fake = |says: &str| {
        let mut config = process(
            &FakeServer::new("fx")
                .log(&log)
                .tool(FakeTool::new("hello").read_only().answers_text(says)),
        );
        config.policy.cache = Some(secs(600));
        config
    };
    let board = board(fake("staging"));
    let view = board.toolset();
    assert_eq!(call(&view, "fx.hello", serde_json::json!({})).await.text(), "staging");
    board.apply(one(fake("production"))).await;
    assert_eq!(
        call(&view, "fx.hello", serde_json::json!({})).await.text(),
        "production"
    );
}

// 11. reconnect
#[tokio::test(flavor = "multi_thread")]
async fn reconnect_starts_anew_while_a_start_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let board = board(process(&good(&log, "x").fault(Fault::SilentHandshake)));
    until("it is started", || !alive(&log).is_empty()).await;
    let before = alive(&log);
    assert!(board.reconnect(&name("fx")).await);
    tokio::time::sleep(ms(800)).await;
    let now = alive(&log);
    assert!(now.iter().all(|pid| !before.contains(pid)), "still {before:?}: {now:?}");
}

// 12. list after drain
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_started_after_drain() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut lazy = process(&good(&log, "x"));
    lazy.start = Start::Lazy;
    let board = board(lazy);
    let view = board.toolset();
    assert!(board.drain(secs(1)).await);
    let listing = view.list(secs(5)).await;
    assert_eq!((alive(&log).len(), listing.tools.len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_view_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut lazy = process(&good(&log, "x"));
    lazy.start = Start::Lazy;
    let board = board(lazy);
    let view = board.toolset();
    view.close().await;
    let listing = view.list(secs(5)).await;
    assert_eq!((alive(&log).len(), listing.tools.len()), (0, 0));
}

// 13. readiness flapping
#[tokio::test(flavor = "multi_thread")]
async fn readiness_does_not_flap_with_views_of_a_server_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let later = good(&log, "x")
        .fault(Fault::SlowStart { ms: 400 })
        .fault(Fault::ExitsAtHandshake {
            code: 1,
            stderr: "no".into(),
        });
    let mut config = process(&good(&log, "x").then_after(1, later));
    config.policy.scope = Scope::Session;
    config.required = true;
    config.policy.restart.waits = vec![secs(60)];
    let board = board(config);
    until("ready", || board.status().ready).await;
    let first = board.toolset();
    assert_eq!(call(&first, "fx.hello", serde_json::json!({})).await.text(), "x");
    first.close().await;
    until("the next start fails", || !board.status().ready).await;
    let mut flaps = 0;
    for _ in 0..3 {
        let view = board.toolset();
        for _ in 0..30 {
            if board.status().ready {
                flaps += 1;
                break;
            }
            tokio::time::sleep(ms(10)).await;
        }
        until("it has failed", || !board.status().ready).await;
        view.close().await;
        for _ in 0..30 {
            if board.status().ready {
                flaps += 1;
                break;
            }
            tokio::time::sleep(ms(10)).await;
        }
        until("it has failed", || !board.status().ready).await;
    }
    assert_eq!(flaps, 0, "ready although every start since the first has failed");
}

// 14. a view that closes while a server is put
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_view_that_closes_while_servers_change_is_left_without_servers() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let of = |n: usize| {
        let mut config = process(&good(&log, "x").instructions(&format!("{}", n % 2)));
        config.start = Start::Lazy;
        config.policy.scope = Scope::Session;
        config
    };
    let mut bad = 0;
    for round in 0..10 {
        let board = board(of(0));
        let views: Vec<_> = (0..300).map(|_| board.toolset()).collect();
        let b = board.clone();
        let next = of(1);
        let applying = tokio::spawn(async move { b.apply(one(next)).await });
        let closing: Vec<_> = views
            .iter()
            .take(20)
            .cloned()
            .map(|v| tokio::spawn(async move { v.close().await }))
            .collect();
        for c in closing {
            c.await.unwrap();
        }
        applying.await.unwrap();
        for view in views.iter().take(20) {
            let listing = view.list(secs(5)).await;
            bad += usize::from(!listing.tools.is_empty());
        }
        board.shutdown().await;
        let left = alive(&log);
        assert!(
            bad == 0 && left.is_empty(),
            "round {round}: {bad} closed views have a server; alive after shutdown: {left:?}"
        );
    }
}

// 15. secrets
#[tokio::test(flavor = "multi_thread")]
async fn errors_of_starts_hide_secrets() {
    let secret = "hunter2-SECRET-abcdef";
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let fake = good(&log, "x").fault(Fault::ExitsAtStart {
        code: 1,
        stderr: format!("bad token {secret}"),
    });
    let (program, args) = fake.command();
    let command = Command::new(program.to_str().unwrap())
        .args(args)
        .env("API_TOKEN", secret);
    let config = ServerConfig::new(Transport::Stdio(command));
    let board = Pegboard::open(Config::default());
    let mut events = board.events();
    let error = board.connect(name("fx"), config.clone()).await.unwrap_err();
    let view = board.toolset();
    let listing = view.list(secs(3)).await;
    let reply = call(&view, "fx.hello", serde_json::json!({})).await;
    let mut told = String::new();
    while let Some(Some(event)) = events.next().now_or_never() {
        told += &serde_json::to_string(&event).unwrap();
    }
    let status = serde_json::to_string(&board.status()).unwrap();
    let places = [
        ("error", error.to_string()),
        ("debug", format!("{error:?}")),
        ("listing", format!("{:?}", listing.unavailable)),
        ("reply", reply.text()),
        ("events", told),
        ("status", status),
    ];
    let leaks: Vec<_> = places.iter().filter(|(_, text)| text.contains(secret)).collect();
    assert!(leaks.is_empty(), "{leaks:?}");
}

// 16. subscriptions and events over a switch

// 17. an old server that rests is not displaced by one that is broken
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_rests_is_not_displaced_by_one_that_cannot_start() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut config = process(&good(&log, "x"));
    config.policy.idle_stop = IdleStop::After(ms(200));
    let board = board(config);
    let view = board.toolset();
    assert_eq!(call(&view, "fx.hello", serde_json::json!({})).await.text(), "x");
    until("it rests", || states(&board) == [State::Idle]).await;
    board
        .apply(one(ServerConfig::new(Transport::Stdio(Command::new("/nonexistent/x")))))
        .await;
    assert_eq!(call(&view, "fx.hello", serde_json::json!({})).await.text(), "x");
}

// 18. panics
#[tokio::test(flavor = "multi_thread")]
async fn panics_end_calls_once() {
    struct Bad;
    impl Hook for Bad {
        fn before<'a>(
            &'a self,
            _: Called<'a>,
            call: &'a mut ToolCall,
        ) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>> {
            if call.id == "hook" {
                panic!("hook")
            }
            Box::pin(std::future::ready(Ok(())))
        }
    }
    let tool = NativeTool::new("boom", "x", serde_json::json!({"type": "object"}), |args| async move {
        if args.contains_key("panic") {
            panic!("native")
        }
        Ok(Answer::from_text("ok"))
    });
    let board = Pegboard::builder(Config::default())
        .in_process(name("nat"), NativeTools::new([tool]))
        .open();
    let mut events = board.events();
    let view = board.toolset_with(View::new().hook(Bad));
    let v = view.clone();
    let hooked = tokio::spawn(async move { v.call(ToolCall::new("nat.boom").id("hook")).await }).await;
    assert!(hooked.unwrap().is_error());
    let reply = tokio::time::timeout(
        secs(5),
        view.call(
            ToolCall::new("nat.boom")
                .id("native")
                .arguments(serde_json::json!({"panic": 1})),
        ),
    )
    .await
    .unwrap();
    assert!(reply.is_error(), "{}", reply.text());
    let reply = view.call(ToolCall::new("nat.boom").id("after")).await;
    assert_eq!(reply.text(), "ok");
    let mut told = std::collections::BTreeMap::<String, (u32, u32)>::new();
    while let Some(Some(event)) = events.next().now_or_never() {
        match event {
            Event::CallCreated { id, .. } => told.entry(id).or_default().0 += 1,
            Event::CallCompleted { id, .. } => told.entry(id).or_default().1 += 1,
            _ => {}
        }
    }
    assert!(told.len() == 3 && told.values().all(|t| *t == (1, 1)), "{told:?}");
    assert_eq!(board.metrics().total.in_flight, 0);
    board.shutdown().await;
}

// 19. two names, one link, both changed alike

// 20. opening a view outside a runtime
