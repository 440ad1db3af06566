//! Servers that do not start: the full reason is reported soon, and no process is left.

use std::{os::unix::fs::PermissionsExt, process::Command as Shell, time::Duration};

use pegboard::{
    Kind, ServerConfig,
    config::{Command, EnvPolicy, Transport},
    toolset::Unavailable,
};
use pegboard_testkit::{Fault, When, kill};
use serde_json::json;
use tokio::time::Instant;

use crate::{stdio::fixtures::TestDir, support::*};

/// Before the default connect timeout, which is 30 s.
const SOON: Duration = Duration::from_secs(25);

fn stdio(command: Command) -> ServerConfig {
    ServerConfig::new(Transport::Stdio(command))
}

fn shell(script: &str) -> ServerConfig {
    stdio(Command::new("sh").args(["-c", script]))
}

/// Asserts that the start fails: the listing has the reason, and a call has the same and did not run.
async fn failed(config: ServerConfig, kind: Kind) -> Unavailable {
    let board = board(config);
    let tools = board.toolset();
    let started = Instant::now();
    let mut listing = tools.list(PATIENCE).await;
    assert!(started.elapsed() < SOON, "it took {:?}", started.elapsed());
    assert!(listing.tools.is_empty());
    let failure = listing.unavailable.pop().unwrap();
    assert!(failure.hint.is_some(), "no hint for: {}", failure.error);
    let reply = call(&tools, "fx.hello", json!({})).await;
    assert_outcome(&reply, kind, false);
    assert_contains(&reply.text(), &["server `fx` is down"]);
    assert!(reply.outcome.hint().is_some());
    let status = &board.status().servers[0];
    assert_eq!(status.state, pegboard::State::Down);
    assert!(status.last_error.is_some());
    board.shutdown().await;
    failure
}

/// The error names the directories that were searched, which are those of the child's own PATH.
#[tokio::test]
async fn a_missing_program_is_told_with_the_folders_that_were_searched() {
    let command = Command::new("no-such-mcp-server").env("PATH", "/nowhere/bin:/nowhere/else");
    let failure = failed(stdio(command), Kind::Unavailable).await;
    assert_contains(
        &failure.error,
        &["`no-such-mcp-server`", "/nowhere/bin", "/nowhere/else"],
    );
    assert_contains(&failure.hint.unwrap(), &["absolute path", "env.PATH"]);

    let mut alone = Command::new("sh");
    alone.env_policy = EnvPolicy::Explicit;
    let failure = failed(stdio(alone), Kind::Unavailable).await;
    assert_contains(&failure.error, &["`sh` was not found"]);

    let failure = failed(stdio(Command::new("/no/such/file")), Kind::Unavailable).await;
    assert_contains(&failure.error, &["`/no/such/file` was not found"]);
}

/// A file that exists and is not executable.
#[tokio::test]
async fn a_file_that_cannot_be_run_is_told_with_the_reason() {
    let dir = TestDir::new();
    let file = |name: &str, content: &str, mode: u32| {
        let path = dir.file(name);
        // Written by another process: a descriptor of ours, open for writing while a third process is spawned, would make exec fail.
        let script = format!("printf '{content}' > {}", path.display());
        assert!(Shell::new("sh").args(["-c", &script]).status().unwrap().success());
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        Command::new(path.to_str().unwrap())
    };
    let plain = file("plain", "hello", 0o644);
    let failure = failed(stdio(plain), Kind::Unavailable).await;
    assert_contains(&failure.error, &["/plain` may not be executed"]);

    let script = file("script", "#!/no/such/interpreter\\n", 0o755);
    let failure = failed(stdio(script), Kind::Unavailable).await;
    assert_contains(&failure.error, &["/script` may not be executed", "interpreter"]);

    let folder = Command::new(dir.file("").to_str().unwrap());
    let failure = failed(stdio(folder), Kind::Unavailable).await;
    assert_contains(&failure.error, &["may not be executed"]);

    let garbage = file("garbage", "\\001\\002\\003", 0o755);
    let failure = failed(stdio(garbage), Kind::Unavailable).await;
    assert_contains(&failure.error, &["/garbage`"]);
}

/// A working directory that does not exist.
#[tokio::test]
async fn a_missing_folder_to_run_in_is_told() {
    let mut command = Command::new("sh");
    command.cwd = Some("/no/such/folder".into());
    let failure = failed(stdio(command), Kind::Unavailable).await;
    assert_contains(&failure.error, &["the folder /no/such/folder does not exist"]);
    assert_contains(&failure.hint.unwrap(), &["`cwd`"]);
}

/// The error has the exit code, whatever it is, and the end of stderr.
#[tokio::test]
async fn a_server_that_exits_at_once_is_told_with_its_code_and_last_words() {
    for (code, words) in [(3, "missing API key"), (0, "usage: server [options]"), (1, "")] {
        let dir = TestDir::new();
        let fake = dir.fake().fault(Fault::ExitsAtStart {
            code,
            stderr: words.into(),
        });
        let failure = failed(process(&fake), Kind::Unavailable).await;
        assert_contains(&failure.error, &[&format!("exit code {code}"), words]);
        dir.assert_no_process_left().await;
    }
}

/// The same if it exits or is killed during the handshake.
#[tokio::test]
async fn a_server_that_exits_at_the_handshake_is_told_in_the_same_way() {
    let dir = TestDir::new();
    let fake = dir.fake().fault(Fault::ExitsAtHandshake {
        code: 7,
        stderr: "cannot reach the database".into(),
    });
    let failure = failed(process(&fake), Kind::Unavailable).await;
    assert_contains(&failure.error, &["exit code 7", "cannot reach the database"]);
    dir.assert_no_process_left().await;

    let failure = failed(shell("echo dying >&2; kill -9 $$"), Kind::Unavailable).await;
    assert_contains(&failure.error, &["killed by signal 9", "dying"]);
}

/// A server that exits during its first listing is down with the same error, and no part of the listing is used.
#[tokio::test]
async fn a_server_that_exits_at_the_listing_is_told_in_the_same_way() {
    let dir = TestDir::new();
    let fake = dir.fake().pages_of(1).fault_on(
        When::method("tools/list").nth(2),
        Fault::DiesBeforeExecuting { code: 8 },
    );
    let failure = failed(process(&fake), Kind::Unavailable).await;
    assert_contains(&failure.error, &["exit code 8"]);
    dir.assert_no_process_left().await;
}

/// The end of stderr is never missed, however late it is written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_words_of_a_dying_process_are_never_missed() {
    for round in 0..40 {
        let board = board(shell(&format!("exec 1>&-; echo 'last words {round}' >&2; exit 5")));
        let listing = board.toolset().list(PATIENCE).await;
        assert_contains(
            &listing.unavailable[0].error,
            &["exit code 5", &format!("last words {round}")],
        );
        board.shutdown().await;
    }
}

/// A silent server times out in both eras, and its process is ended.
#[tokio::test]
async fn a_silent_server_is_given_up_and_ended() {
    let dir = TestDir::new();
    let fake = dir.fake().fault(Fault::SilentHandshake);
    let config = with_limits(process(&fake), |limits| {
        limits.connect_timeout = secs(2);
        limits.era_silence = Duration::from_millis(500);
    });
    let failure = failed(config, Kind::Unavailable).await;
    assert_contains(&failure.error, &["no answer within 2"]);
    assert_contains(&failure.hint.unwrap(), &["connect_timeout"]);
    assert!(dir.log().count("server/discover") >= 1);
    dir.assert_no_process_left().await;
}

/// The error quotes a prompt that the server wrote without a newline.
#[tokio::test]
async fn a_question_without_a_newline_is_quoted() {
    let dir = TestDir::new();
    let fake = dir.fake().fault(Fault::Prompts {
        text: "Ok to proceed? (y) ".into(),
    });
    let config = with_limits(process(&fake), |limits| limits.connect_timeout = secs(1));
    let failure = failed(config, Kind::Unavailable).await;
    assert_contains(&failure.error, &["Ok to proceed? (y)"]);
    dir.assert_no_process_left().await;
}

/// A few lines of text before the first message are skipped; a program that prints nothing else is not a server.
#[tokio::test]
async fn text_before_the_first_message_is_let_pass_but_not_for_ever() {
    let dir = TestDir::new();
    let board = board(process(&dir.fake().fault(Fault::NoiseAtStart { lines: 500 })));
    assert_eq!(call(&board.toolset(), "fx.hello", json!({})).await.text(), "hi");
    board.shutdown().await;
    dir.assert_no_process_left().await;

    let failure = failed(shell("yes welcome"), Kind::Unavailable).await;
    assert_contains(&failure.error, &["lines of text and no message", "welcome"]);
    assert_contains(&failure.hint.unwrap(), &["prints nothing else"]);
}

/// The exit of the main process ends the connection, even if one of its children holds the pipe.
#[tokio::test]
async fn a_server_that_leaves_a_child_and_exits_is_down_at_once() {
    for keeps_stdout in [false, true] {
        let dir = TestDir::new();
        let fake = dir.fake().fault(Fault::ForksAndExits {
            pid_file: dir.pid_file(),
            keeps_stdout,
        });
        let failure = failed(process(&fake), Kind::Unavailable).await;
        assert_contains(&failure.error, &["exit code 0"]);
        // They are in their own sessions, so a kill of the process group does not reach them.
        dir.children().into_iter().for_each(kill);
        dir.assert_no_process_left().await;
    }
}

/// A start that is abandoned leaves no process.
#[tokio::test]
async fn closing_the_board_during_a_start_leaves_no_process() {
    let dir = TestDir::new();
    let board = board(process(&dir.fake().fault(Fault::SilentHandshake)));
    dir.wait_for("initialize", 1).await;
    board.shutdown().await;
    for pid in dir.starts() {
        assert!(!pegboard_testkit::is_alive(pid), "{pid} still lives after shutdown");
    }
}
