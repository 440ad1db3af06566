//! Detecting a server's era: with few processes and little time, remembered, and detected again when it changes.

use std::{path::Path, time::Duration};

use pegboard::{Config, Kind, Pegboard, ServerConfig, config::EraChoice, status::Era as Spoken};
use pegboard_testkit::{Era, FakeServer, Fault, Refusal, When, protocol::Version};
use serde_json::json;
use tokio::time::Instant;

use crate::{stdio::fixtures::TestDir, support::*};

const MODERN_VERSION: &str = Version::LATEST_MODERN.as_str();

fn with_era(mut config: ServerConfig, era: EraChoice) -> ServerConfig {
    config.era = era;
    config
}

fn remembering(file: &Path, config: ServerConfig) -> Pegboard {
    let mut servers = Config::default();
    servers.servers.insert(name("fx"), config);
    Pegboard::builder(servers).era_memory(file).open()
}

/// Calls a tool, closes the board, and returns the negotiated version.
async fn version_of(board: Pegboard) -> (Spoken, String) {
    let reply = call(&board.toolset(), "fx.hello", json!({})).await;
    assert_eq!(reply.text(), "hi");
    let status = &board.status().servers[0];
    let spoken = (status.era.unwrap(), status.protocol_version.clone().unwrap());
    board.shutdown().await;
    spoken
}

/// Every version is negotiated, with one process each.
#[tokio::test]
async fn every_version_is_agreed_on() {
    for version in Version::LEGACY.map(Version::as_str) {
        let dir = TestDir::new();
        let spoken = version_of(board(process(&dir.fake().version(version)))).await;
        assert_eq!(spoken, (Spoken::Legacy, version.to_owned()));
        assert_eq!((dir.starts().len(), dir.log().count("server/discover")), (1, 0));
        dir.assert_no_process_left().await;
    }
    let dir = TestDir::new();
    let spoken = version_of(board(process(&dir.fake().version(MODERN_VERSION)))).await;
    assert_eq!(spoken, (Spoken::Modern, MODERN_VERSION.to_owned()));
}

/// A config that names an era or a version tries nothing else.
#[tokio::test]
async fn a_chosen_era_is_the_only_one_tried() {
    let pinned = "2025-03-26";
    for (choice, asks, never) in [
        (EraChoice::Legacy, "initialize", "server/discover"),
        (EraChoice::Modern, "server/discover", "initialize"),
        (EraChoice::Version(pinned.into()), "initialize", "server/discover"),
        (
            EraChoice::Version(MODERN_VERSION.into()),
            "server/discover",
            "initialize",
        ),
    ] {
        let dir = TestDir::new();
        let config = with_era(process(&dir.fake().era(Era::Both)), choice.clone());
        let spoken = version_of(board(config)).await;
        if choice == EraChoice::Version(pinned.into()) {
            assert_eq!(spoken.1, pinned);
        }
        let log = dir.log();
        assert_eq!((log.count(asks), log.count(never)), (1, 0), "{choice:?}");
    }
}

/// The error names the versions of both sides, and no process is left.
#[tokio::test]
async fn a_version_that_we_do_not_speak_is_told_with_both_sides() {
    let dir = TestDir::new();
    let board = board(process(&dir.fake().version("2023-01-01")));
    let reply = call(&board.toolset(), "fx.hello", json!({})).await;
    assert_outcome(&reply, Kind::Unavailable, false);
    assert_contains(
        &reply.text(),
        &["2023-01-01", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
    );
    assert!(reply.outcome.hint().is_some());
    dir.assert_no_process_left().await;

    let dir = TestDir::new();
    let config = with_era(process(&dir.fake().version("2027-01-01")), EraChoice::Modern);
    let board = crate::support::board(config);
    let reply = call(&board.toolset(), "fx.hello", json!({})).await;
    assert_outcome(&reply, Kind::Unavailable, false);
    assert_contains(&reply.text(), &["2027-01-01", MODERN_VERSION]);
    dir.assert_no_process_left().await;
}

/// A server that speaks only the modern era connects with at most two processes, however it rejects `initialize`, and
/// before the connect timeout of 30 s.
#[tokio::test]
async fn a_server_of_the_newest_era_only_is_reached_however_it_refuses_the_handshake() {
    for (refusal, processes) in [
        (Refusal::Error { code: -32601 }, 1),
        (Refusal::Error { code: -32602 }, 1),
        (Refusal::Error { code: -32022 }, 1),
        (Refusal::Exit { code: 1 }, 2),
        (Refusal::Silence, 1),
    ] {
        let dir = TestDir::new();
        let fake = dir.fake().era(Era::Modern).on_initialize(refusal);
        let config = with_limits(process(&fake), |limits| limits.era_silence = secs(2));
        let started = Instant::now();
        let spoken = version_of(board(config)).await;
        assert!(started.elapsed() < secs(25), "{refusal:?}: {:?}", started.elapsed());
        assert_eq!(spoken, (Spoken::Modern, MODERN_VERSION.to_owned()));
        assert_eq!(dir.starts().len(), processes, "{refusal:?}");
        dir.assert_no_process_left().await;
    }
}

/// With `era = "probe"` a legacy server that rejects, dies at or hangs on `server/discover` is connected all the same.
#[tokio::test]
async fn a_legacy_server_is_reached_by_a_probe_however_it_takes_it() {
    for (refusal, processes) in [
        (Refusal::Error { code: -32601 }, 1),
        (Refusal::Error { code: -32602 }, 1),
        (Refusal::Error { code: -32000 }, 1),
        (Refusal::Exit { code: 1 }, 2),
        (Refusal::Silence, 1),
    ] {
        let dir = TestDir::new();
        let config = with_era(process(&dir.fake().on_discover(refusal)), EraChoice::Probe);
        let spoken = version_of(board(config)).await;
        assert_eq!(spoken, (Spoken::Legacy, "2025-11-25".to_owned()), "{refusal:?}");
        assert_eq!(dir.starts().len(), processes, "{refusal:?}");
        dir.assert_no_process_left().await;
    }
}

/// The detected era is used at the next start, also by another program.
#[tokio::test]
async fn a_remembered_server_is_asked_in_its_era_at_once() {
    let dir = TestDir::new();
    let memory = dir.file("eras.json");
    let legacy = with_era(process(&dir.fake()), EraChoice::Auto);
    for start in 1..=3 {
        version_of(remembering(&memory, legacy.clone())).await;
        let log = dir.log();
        assert_eq!((log.spawned.len(), log.count("server/discover")), (start, 0));
    }

    let dir = TestDir::new();
    let modern = process(&dir.fake().era(Era::Modern).on_initialize(Refusal::Exit { code: 1 }));
    for (processes, handshakes) in [(2, 1), (3, 1), (4, 1)] {
        let spoken = version_of(remembering(&memory, modern.clone())).await;
        assert_eq!(spoken.0, Spoken::Modern);
        let log = dir.log();
        assert_eq!((log.spawned.len(), log.count("initialize")), (processes, handshakes));
    }
    dir.assert_no_process_left().await;
}

/// A server that speaks another era after a restart is detected again, however it rejects the old one.
#[tokio::test]
async fn an_era_that_changes_with_a_restart_is_found_out_anew() {
    for refusal in [
        Refusal::Error { code: -32601 },
        Refusal::Exit { code: 1 },
        Refusal::Silence,
    ] {
        let dir = TestDir::new();
        let modern = dir.fake().era(Era::Modern).on_initialize(refusal);
        let legacy = dir.fake().on_discover(refusal);
        check_change(&dir, &legacy.then_after(1, modern), Spoken::Legacy, Spoken::Modern).await;

        let dir = TestDir::new();
        let modern = dir.fake().era(Era::Modern);
        let legacy = dir.fake().on_discover(refusal);
        check_change(&dir, &modern.then_after(1, legacy), Spoken::Modern, Spoken::Legacy).await;
    }
}

async fn check_change(dir: &TestDir, fake: &FakeServer, before: Spoken, after: Spoken) {
    let config = with_limits(process(fake), |limits| limits.connect_timeout = secs(12));
    let board = board(config);
    let tools = board.toolset();
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert_eq!(board.status().servers[0].era, Some(before));
    let first = board.status().servers[0].pid;
    pegboard_testkit::kill(first.unwrap());
    let noticed = async {
        while board.status().servers[0].pid == first {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, noticed).await.unwrap();
    let reply = call(&tools, "fx.hello", json!({})).await;
    assert_eq!(reply.text(), "hi", "{before:?} to {after:?}");
    assert_eq!(board.status().servers[0].era, Some(after));
    board.shutdown().await;
    dir.assert_no_process_left().await;
}

/// A slow legacy server is not killed for being slow, and wins over the process that was started to try the other era.
#[tokio::test]
async fn a_slow_legacy_server_is_waited_for_and_wins() {
    let dir = TestDir::new();
    let board = board(process(&dir.fake().fault(Fault::SlowStart { ms: 3_000 })));
    let tools = board.toolset();
    let pid = call(&tools, "fx.pid", json!({})).await.text();
    assert_eq!(dir.starts(), [pid.parse::<u32>().unwrap()], "one process is started");
    assert_eq!(board.status().servers[0].era, Some(Spoken::Legacy));
    board.shutdown().await;
    dir.assert_no_process_left().await;
}

/// A handshake that is rejected for another reason fails with the server's own message.
#[tokio::test]
async fn a_refused_handshake_is_told_with_the_servers_words() {
    let dir = TestDir::new();
    let refusal = |message: &str| Fault::AnswersError {
        code: -32000,
        message: message.into(),
        data: None,
    };
    let fake = dir
        .fake()
        .fault_on(When::method("initialize"), refusal("licence expired"))
        .fault_on(When::method("server/discover"), refusal("what?"));
    let started = Instant::now();
    let board = board(process(&fake));
    let reply = call(&board.toolset(), "fx.hello", json!({})).await;
    assert_outcome(&reply, Kind::Unavailable, false);
    assert_contains(&reply.text(), &["licence expired"]);
    assert!(started.elapsed() < secs(25));
    board.shutdown().await;
    dir.assert_no_process_left().await;
}
