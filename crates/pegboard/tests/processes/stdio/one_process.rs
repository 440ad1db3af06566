//! A server has one process at a time: a slow one is not started twice, whatever era it speaks and however it ends.

use std::{path::PathBuf, time::Duration};

use pegboard::{
    Config, Pegboard, ServerConfig, State, ToolCall,
    config::{Command, EraChoice, Transport},
    status::Era as Spoken,
};
use pegboard_testkit::{Era, FakeServer, Fault, Refusal, Tool, When, kill};
use serde_json::json;

use crate::{stdio::fixtures::TestDir, support::*};

/// Longer than `era_silence`, and than the time in which a probe must be answered.
const SLOW: Fault = Fault::SlowStart { ms: 6_000 };

/// Holds a lock for as long as the process lives. A process that does not get it notes that, and exits.
const LOCKED: &str = r#"exec 9>"$1.lock"; flock -n 9 || { echo "$$" >>"$1.overlaps"; exit 3; }; shift; exec "$@""#;

/// A server that cannot run twice.
fn exclusive(dir: &TestDir, fake: &FakeServer) -> ServerConfig {
    let (program, args) = fake.command();
    let prefix = [
        "-c",
        LOCKED,
        "sh",
        dir.file("one").to_str().unwrap(),
        program.to_str().unwrap(),
    ]
    .map(str::to_owned);
    let mut config = ServerConfig::new(Transport::Stdio(
        Command::new("sh").args(prefix.into_iter().chain(args)),
    ));
    config.limits.era_silence = Duration::from_millis(200);
    config
}

fn assert_never_two(dir: &TestDir) {
    let overlaps: PathBuf = dir.file("one.overlaps");
    assert!(!overlaps.exists(), "a second process was started beside the first");
}

async fn hello(board: &Pegboard) -> Spoken {
    let reply = call(&board.toolset(), "fx.hello", json!({})).await;
    assert_eq!(reply.text(), "hi");
    board.status().servers[0].era.unwrap()
}

#[tokio::test]
async fn a_slow_server_is_started_once_in_every_era() {
    let dir = || {
        let dir = TestDir::new();
        let fake = dir.fake().fault(SLOW);
        (dir, fake)
    };
    let modern = |refusal| move |fake: FakeServer| fake.era(Era::Modern).on_initialize(refusal);
    let legacy = |refusal| move |fake: FakeServer| fake.on_discover(refusal);
    let error = Refusal::Error { code: -32601 };
    type Change = Box<dyn Fn(FakeServer) -> FakeServer>;
    let cases: [(Change, EraChoice, Spoken); 8] = [
        (Box::new(legacy(error)), EraChoice::Auto, Spoken::Legacy),
        (Box::new(legacy(Refusal::Silence)), EraChoice::Auto, Spoken::Legacy),
        (Box::new(modern(error)), EraChoice::Auto, Spoken::Modern),
        (Box::new(modern(Refusal::Silence)), EraChoice::Auto, Spoken::Modern),
        (Box::new(legacy(error)), EraChoice::Probe, Spoken::Legacy),
        (Box::new(legacy(Refusal::Silence)), EraChoice::Probe, Spoken::Legacy),
        (Box::new(modern(error)), EraChoice::Probe, Spoken::Modern),
        (Box::new(modern(Refusal::Silence)), EraChoice::Probe, Spoken::Modern),
    ];
    let runs = cases.map(|(change, era, spoken)| async move {
        let (dir, fake) = dir();
        let mut config = exclusive(&dir, &change(fake));
        (config.era, config.limits.connect_timeout) = (era.clone(), secs(60));
        let board = board(config);
        assert_eq!(hello(&board).await, spoken, "{era:?}");
        assert_eq!(dir.starts().len(), 1, "{era:?} {spoken:?}");
        board.shutdown().await;
        assert_never_two(&dir);
        dir.assert_no_process_left().await;
    });
    futures_util::future::join_all(runs).await;
}

/// Also one that does not survive a question before its handshake is over, and whose port, lock or file a second process would need. However many
/// ask for it meanwhile, it is not started again.
#[tokio::test]
async fn a_server_that_needs_20_seconds_is_started_once_whatever_it_makes_of_the_other_era() {
    let asked = || When::method("server/discover");
    let runs = [
        Fault::DiesBeforeExecuting { code: 1 },
        Fault::StopsReading,
        Fault::NeverAnswers,
    ];
    let runs = runs.map(|fault| async move {
        let dir = TestDir::new();
        let next = dir.fake().fault_on(asked(), fault.clone());
        let slow = next.clone().fault(Fault::SlowStart { ms: 20_000 });
        let mut config = exclusive(&dir, &slow.then_after(1, next));
        config.limits.era_silence = ServerConfig::new(config.transport.clone()).limits.era_silence;
        let memory = dir.file("eras.json");
        let open = || Pegboard::builder(one(config.clone())).era_memory(&memory).open();
        let board = open();
        let views: Vec<_> = (0..3).map(|_| board.toolset()).collect();
        let listings = views.iter().map(|tools| tools.list(Duration::from_millis(100)));
        for listing in futures_util::future::join_all(listings).await {
            assert_eq!((listing.tools.len(), listing.unavailable.len()), (0, 1));
        }
        let calls = views.iter().map(|tools| call(tools, "fx.hello", json!({})));
        for reply in futures_util::future::join_all(calls).await {
            assert_eq!(reply.text(), "hi");
        }
        assert_eq!(
            (dir.starts().len(), dir.log().count("server/discover")),
            (1, 0),
            "{fault:?}"
        );
        board.shutdown().await;
        // The next run knows what it speaks.
        let board = open();
        assert_eq!(hello(&board).await, Spoken::Legacy);
        assert_eq!(
            (dir.starts().len(), dir.log().count("server/discover")),
            (2, 0),
            "{fault:?}"
        );
        board.shutdown().await;
        assert_never_two(&dir);
        dir.assert_no_process_left().await;
    });
    futures_util::future::join_all(runs).await;
}

/// A server that exits or hangs on a request that it does not know, before its handshake is over, is started again when it has ended.
#[tokio::test]
async fn a_slow_server_that_dies_of_the_other_era_is_started_again_after_its_end() {
    let asked = || When::method("server/discover");
    for (fault, starts) in [
        (Fault::DiesBeforeExecuting { code: 1 }, 2),
        (Fault::StopsReading, 2),
        (Fault::NeverAnswers, 1),
    ] {
        let dir = TestDir::new();
        let slow = dir.fake().fault(Fault::SlowStart { ms: 1_500 });
        let fake = slow.fault_on(asked(), fault.clone());
        let board = board(exclusive(&dir, &fake));
        assert_eq!(hello(&board).await, Spoken::Legacy);
        assert_eq!(dir.starts().len(), starts, "{fault:?}");
        // What it speaks is known now, so that it is not asked again.
        let probes = dir.log().count("server/discover");
        kill(board.status().servers[0].pid.unwrap());
        dir.wait_for("initialize", starts + 1).await;
        assert_eq!(hello(&board).await, Spoken::Legacy);
        assert_eq!(dir.log().count("server/discover"), probes);
        board.shutdown().await;
        assert_never_two(&dir);
        dir.assert_no_process_left().await;
    }
}

/// A process that hangs on the handshake answers nothing more, so that the next one is asked in the other era first.
#[tokio::test]
async fn a_server_that_hangs_on_the_handshake_is_started_again_in_the_other_era() {
    let dir = TestDir::new();
    let fake = dir.fake().era(Era::Modern);
    let mut config = exclusive(&dir, &fake.fault_on(When::method("initialize"), Fault::StopsReading));
    config.limits.connect_timeout = secs(4);
    (config.limits.stop_timeout, config.policy.restart.start_wait) = (Duration::from_millis(100), PATIENCE);
    let board = board(config);
    assert_eq!(hello(&board).await, Spoken::Modern);
    let handshakes = dir.log().count("initialize");
    assert_eq!((dir.starts().len(), handshakes), (2, 1));
    // What it speaks is known now.
    assert!(board.reconnect("fx").await);
    assert_eq!(hello(&board).await, Spoken::Modern);
    assert_eq!(dir.log().count("initialize"), handshakes);
    board.shutdown().await;
    assert_never_two(&dir);
    dir.assert_no_process_left().await;
}

/// The process ignores the end of its input and SIGTERM, so that the old one lives on while the new one could be started.
#[tokio::test]
async fn a_restarted_server_has_ended_before_it_is_started_again() {
    let dir = TestDir::new();
    let stubborn = || dir.fake().fault(Fault::IgnoresEof).fault(Fault::IgnoresTerm);
    let silent = stubborn().fault_on(When::method("initialize"), Fault::NeverAnswers);
    let fake = silent.then_after(1, stubborn());
    let mut config = exclusive(&dir, &fake);
    (config.limits.stop_timeout, config.era) = (Duration::from_millis(300), EraChoice::Legacy);
    let board = board(config);
    let tools = board.toolset();
    // The start is given up while the process does not answer.
    tokio::spawn(async move { call(&tools, "fx.hello", json!({})).await });
    dir.wait_for("initialize", 1).await;
    assert!(board.reconnect("fx").await);
    assert_eq!(hello(&board).await, Spoken::Legacy);
    // A server that works, and one that stopped by itself.
    assert!(board.reconnect("fx").await);
    assert_eq!(hello(&board).await, Spoken::Legacy);
    kill(board.status().servers[0].pid.unwrap());
    assert!(board.reconnect("fx").await);
    assert_eq!(hello(&board).await, Spoken::Legacy);
    board.shutdown().await;
    assert_never_two(&dir);
    dir.assert_no_process_left().await;
}

fn one(config: ServerConfig) -> Config {
    let mut all = Config::default();
    all.servers.insert(name("fx"), config);
    all
}

/// New calls wait until the calls in flight of the old process are over, and then for the new one.
#[tokio::test]
async fn a_changed_server_has_ended_before_its_replacement_is_started() {
    let dir = TestDir::new();
    let gate = dir.file("gate");
    let slow = || Tool::new("slow").answers_text("done").waits_at(gate.to_str().unwrap());
    let fake = |version: &str| exclusive(&dir, &dir.fake().tool(slow()).instructions(version));
    let board = board(fake("first"));
    let (running, arriving) = (board.toolset(), board.toolset());
    let running = tokio::spawn(async move { running.call(ToolCall::new("fx.slow")).await });
    dir.wait_for("tools/call", 1).await;
    // The last settings count, however many there are meanwhile.
    for version in ["second", "third"] {
        let applied = board.apply(one(fake(version))).await;
        assert_eq!((applied.replaced, applied.errors.len()), (vec![name("fx")], 0));
    }
    let arriving = tokio::spawn(async move { arriving.call(ToolCall::new("fx.hello")).await });
    let states = || board.status().servers.iter().map(|row| row.state).collect::<Vec<_>>();
    let waiting = async {
        while states() != [State::Connecting, State::Ready] {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    assert_eq!(dir.starts().len(), 1);
    std::fs::write(&gate, "").unwrap();
    assert_eq!(running.await.unwrap().text(), "done");
    assert_eq!(arriving.await.unwrap().text(), "hi");
    assert_eq!(dir.starts().len(), 2);
    assert_eq!(board.status().servers[0].instructions.as_deref(), Some("third"));
    board.shutdown().await;
    assert_never_two(&dir);
    dir.assert_no_process_left().await;
}

/// Without calls in flight the config is applied when the new process is ready, however long the old one takes to end.
#[tokio::test]
async fn a_stubborn_process_has_ended_before_its_replacement_is_started() {
    let dir = TestDir::new();
    let fake = |version: &str| {
        let stubborn = dir.fake().fault(Fault::IgnoresEof).fault(Fault::IgnoresTerm);
        let mut config = exclusive(&dir, &stubborn.instructions(version));
        config.limits.stop_timeout = Duration::from_millis(300);
        config
    };
    let board = board(fake("first"));
    assert_eq!(hello(&board).await, Spoken::Legacy);
    for version in ["second", "third"] {
        let applied = board.apply(one(fake(version))).await;
        assert_eq!((applied.replaced, applied.errors.len()), (vec![name("fx")], 0));
        assert_eq!(board.status().servers[0].state, State::Ready);
        assert_eq!(board.status().servers[0].instructions.as_deref(), Some(version));
    }
    board.connect(name("fx"), fake("fourth")).await.unwrap();
    assert_eq!(hello(&board).await, Spoken::Legacy);
    assert_eq!(dir.starts().len(), 4);
    board.shutdown().await;
    assert_never_two(&dir);
    dir.assert_no_process_left().await;
}
