//! Stopping servers: first asked, then killed, with all their descendants, also if the board is never closed.

use std::time::Duration;

use pegboard::{
    Pegboard, ServerConfig,
    config::{Command, Transport},
};
use pegboard_testkit::{Child, FakeServer, Fault};
use serde_json::json;
use tokio::time::Instant;

use crate::{stdio::fixtures::TestDir, support::*};

/// Starts the server, closes the board and returns how long that took.
async fn close(fake: &FakeServer) -> Duration {
    let board = board(process(fake));
    assert_eq!(call(&board.toolset(), "fx.hello", json!({})).await.text(), "hi");
    let closing = Instant::now();
    board.shutdown().await;
    closing.elapsed()
}

/// A cooperative server exits at EOF on stdin, and is reaped.
#[tokio::test]
async fn a_server_ends_with_its_input_and_is_reaped() {
    let dir = TestDir::new();
    let config = with_limits(process(&dir.fake()), |limits| limits.stop_timeout = secs(3600));
    let board = board(config);
    assert_eq!(call(&board.toolset(), "fx.hello", json!({})).await.text(), "hi");
    let closed = tokio::time::timeout(PATIENCE, board.shutdown()).await;
    assert!(closed.is_ok(), "it has waited for the stop timeout");
    assert_eq!(dir.log().count("$eof"), 1);
    for pid in dir.starts() {
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "{pid} is left");
    }
}

/// A server that ignores EOF gets SIGTERM after 2 s, and SIGKILL after 2 s more.
#[tokio::test]
async fn a_server_that_will_not_end_is_killed_after_the_stop_timeout() {
    let dir = TestDir::new();
    let took = close(&dir.fake().fault(Fault::IgnoresEof)).await;
    assert!(took > Duration::from_millis(1_900) && took < PATIENCE, "{took:?}");
    let stubborn = TestDir::new();
    let took = close(&stubborn.fake().fault(Fault::IgnoresEof).fault(Fault::IgnoresTerm)).await;
    assert!(took > Duration::from_millis(3_900) && took < PATIENCE, "{took:?}");
    for pid in dir.starts().into_iter().chain(stubborn.starts()) {
        assert!(!pegboard_testkit::is_alive(pid), "{pid} is alive after shutdown");
    }
}

/// Children in the server's process group end with it.
#[tokio::test]
async fn children_in_the_same_group_go_with_the_server() {
    let dir = TestDir::new();
    let children = Fault::SpawnsChildren {
        how: Child::SameGroup,
        count: 3,
        pid_file: dir.pid_file(),
    };
    close(&dir.fake().fault(children)).await;
    assert_eq!(dir.children().len(), 3);
    dir.assert_no_process_left().await;
}

/// The same for a shell that leaves a background process behind and was never a server.
#[tokio::test]
async fn a_sleeper_behind_a_shell_goes_with_it() {
    let dir = TestDir::new();
    let script = format!("sleep 300 & echo $! > {}; cat > /dev/null", dir.pid_file().display());
    let command = Command::new("sh").args(["-c", &script]);
    let config = ServerConfig::new(Transport::Stdio(command));
    let board = board(with_limits(config, |limits| limits.connect_timeout = secs(1)));
    assert_eq!(board.toolset().list(PATIENCE).await.unavailable.len(), 1);
    board.shutdown().await;
    assert!(!dir.children().is_empty());
    dir.assert_no_process_left().await;
}

/// Children end also if the server died by itself.
#[tokio::test]
async fn children_go_when_the_server_dies_by_itself() {
    let dir = TestDir::new();
    let children = Fault::SpawnsChildren {
        how: Child::SameGroup,
        count: 2,
        pid_file: dir.pid_file(),
    };
    let fake = dir.fake().fault(children).fault(Fault::DiesBeforeExecuting { code: 1 });
    let board = board(process(&fake));
    let reply = call(&board.toolset(), "fx.hello", json!({})).await;
    assert!(reply.is_error());
    assert_eq!(dir.children().len(), 2);
    dir.assert_no_process_left().await;
    board.shutdown().await;
}

/// Dropping the last handle is enough.
#[tokio::test]
async fn dropping_the_board_without_closing_it_ends_its_servers() {
    let dir = TestDir::new();
    let board = board(process(&dir.fake().fault(Fault::IgnoresEof)));
    assert_eq!(call(&board.toolset(), "fx.hello", json!({})).await.text(), "hi");
    drop(board);
    dir.assert_no_process_left().await;
}

/// So is the end of the runtime, in every phase of a server; dropping a handle after that is harmless.
#[test]
fn the_end_of_the_runtime_leaves_no_process_and_no_panic() {
    for multi_thread in [false, true] {
        for (fault, answers) in [
            (Fault::IgnoresEof, true),
            (Fault::SilentHandshake, false),
            (Fault::NeverAnswers, false),
        ] {
            let dir = TestDir::new();
            let children = Fault::SpawnsChildren {
                how: Child::SameGroup,
                count: 1,
                pid_file: dir.pid_file(),
            };
            let fake = dir.fake().fault(children).fault(Fault::IgnoresTerm).fault(fault);
            let runtime = runtime(multi_thread);
            let board: Pegboard = runtime.block_on(async {
                let board = board(process(&fake));
                let tools = board.toolset();
                if answers {
                    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
                } else {
                    let waiting = tokio::time::timeout(Duration::from_millis(700), call(&tools, "fx.hello", json!({})));
                    let ended = waiting.await.ok().map(|reply| reply.text());
                    assert_eq!(ended, None);
                }
                board
            });
            drop(runtime);
            runtime_free_check(&dir);
            drop(board);
        }
    }
}

fn runtime(multi_thread: bool) -> tokio::runtime::Runtime {
    let mut builder = if multi_thread {
        tokio::runtime::Builder::new_multi_thread()
    } else {
        tokio::runtime::Builder::new_current_thread()
    };
    builder.enable_all().build().unwrap()
}

/// Waits on its own runtime until no process is left.
fn runtime_free_check(dir: &TestDir) {
    assert!(!dir.starts().is_empty());
    assert_eq!(dir.children().len(), dir.starts().len());
    runtime(false).block_on(dir.assert_no_process_left());
}
