//! Failing and slow starts: the error messages, and the processes that are left.

use std::{path::Path, time::Duration};

use pegboard::{ServerConfig, config::EraChoice};
use tempfile::TempDir;

use crate::{peer::*, support::*, talk::*};

/// Opens a board over a server that cannot start, and checks parts of the error and the hint.
async fn check(config: ServerConfig, error: &str, hint: &str) {
    let board = board(config);
    let listing = board.toolset().list(PATIENCE).await;
    let [down] = &listing.unavailable[..] else {
        panic!("it started: {listing:?}");
    };
    assert!(down.error.contains(error), "{}", down.error);
    let told = down.hint.as_deref().unwrap_or_default();
    assert!(told.contains(hint), "{} -> {told}", down.error);
    board.shutdown().await;
}

fn with(mut command: Words, argument: &str) -> ServerConfig {
    command.push(argument.to_owned());
    stdio(&command)
}

#[tokio::test]
async fn a_server_with_wrong_arguments_speaks_for_itself() {
    let folder = TempDir::new().unwrap();
    let own_words = "the server's own words above";
    check(with(everything(), "bogus"), "Unknown transport: bogus", own_words).await;
    let nowhere = stdio(&filesystem(Path::new("/nowhere")));
    check(nowhere, "Cannot access directory /nowhere", own_words).await;
    check(with(time(), "--bogus"), "unrecognized arguments: --bogus", own_words).await;
    let no_repository = stdio(&git(folder.path()));
    check(no_repository, "is not a valid Git repository", own_words).await;
    // It prints its version to stdout, and exits.
    let version = stdio(&[everything()[0].clone(), "--version".to_owned()]);
    check(version, "v22.", own_words).await;
}

#[tokio::test]
async fn a_server_that_listens_on_a_port_instead_is_found_out() {
    let mut command = typescript_modern();
    command.push("--http".to_owned());
    let mut config = with(command, "0");
    // Long enough for Node to start on a busy machine. The test waits for all of it.
    config.limits.connect_timeout = Duration::from_secs(20);
    config.limits.stop_timeout = Duration::from_millis(100);
    check(config, "listening on http://127.0.0.1:", "own words").await;
}

#[tokio::test]
async fn a_server_that_does_not_speak_the_chosen_era_leads_to_the_setting() {
    let http = Listening::everything_http().await;
    for config in [stdio(&everything()), http.config()] {
        check(
            in_era(config, EraChoice::Modern),
            "the server answered with error",
            "leave `era` out",
        )
        .await;
    }
}

#[tokio::test]
async fn a_slow_server_is_asked_in_both_eras_by_one_process() {
    for command in [filesystem, git] {
        let folder = TempDir::new().unwrap();
        let root = crate::time_and_git::repository_in(folder.path());
        let mut config = stdio(&command(&root));
        config.limits.era_silence = Duration::from_millis(1);
        let board = board(config);
        listed(&board.toolset()).await;
        assert_eq!(started_with(&root), 1);
        board.shutdown().await;
        assert_eq!(started_with(&root), 0);
    }
}

/// The number of processes with this path among their arguments.
fn started_with(path: &Path) -> usize {
    let path = path.to_str().unwrap().as_bytes();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let arguments = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    arguments
        .filter(|arguments| arguments.split(|byte| *byte == 0).any(|argument| argument == path))
        .count()
}
