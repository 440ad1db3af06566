//! Credentials of stdio servers: variables of their processes, at each start.

#![cfg(unix)]

use std::path::Path;

use pegboard::{
    Credential, ServerConfig,
    config::{Command, Transport},
};
use pegboard_testkit::{Era, FakeServer, Tool};
use serde_json::json;

use crate::{credentials::fixtures::*, support::*};

/// A server whose start appends `TOKEN` and `KEPT` to a file.
fn writing(fake: &FakeServer, file: &Path) -> Command {
    let (program, args) = fake.command();
    let mut all = vec![
        "-c".to_owned(),
        r#"printf '%s %s\n' "$TOKEN" "$KEPT" >> "$0"; exec "$@""#.to_owned(),
        file.to_str().unwrap().to_owned(),
        program.to_str().unwrap().to_owned(),
    ];
    all.extend(args);
    Command::new("sh").args(all)
}

fn lines(file: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_process_gets_the_variables_of_the_credential_at_each_start() {
    for era in [Era::Legacy, Era::Modern] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("starts");
        let issuer = Issuer::of_processes(|number| Ok(Credential::none().env("TOKEN", token(number))));
        let server = fake(era)
            .log(folder.path().join("log"))
            .tool(Tool::new("env").shows_env());
        let command = writing(&server, &file)
            .env("TOKEN", "of-the-config")
            .env("KEPT", "kept");
        let board = board_with(ServerConfig::new(Transport::Stdio(command)), &issuer);
        let tools = board.toolset();
        assert_greeted(&hello(&tools).await);
        let shown = call(&tools, "fx.env", json!({})).await.text();
        assert!(
            shown.contains("[MASKED_SECRET]") && !shown.contains("t0ken-"),
            "{shown}"
        );
        let pid = *spawned(&folder.path().join("log")).last().unwrap();
        let before = lines(&file).len();
        pegboard_testkit::kill(pid);
        gone(pid, PATIENCE).await;
        until_greeted(&tools).await;
        board.shutdown().await;
        let starts = lines(&file);
        assert!(starts.len() > before, "{starts:?}");
        let expected: Vec<_> = (1..=starts.len())
            .map(|number| format!("{} kept", token(number)))
            .collect();
        assert_eq!(starts, expected, "{era:?}");
        let asked = issuer.asked();
        assert_eq!(asked[0], Asked::FirstUse);
        assert!(asked[1..].iter().all(|asked| *asked == Asked::Refresh), "{asked:?}");
    }
}

#[tokio::test]
async fn a_credential_cannot_make_a_process_load_other_code() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("starts");
    let issuer = Issuer::of_processes(|_| Ok(Credential::none().env("LD_PRELOAD", "t0ken-canary.so")));
    let command = writing(&fake(Era::Legacy), &file);
    let board = board_with(ServerConfig::new(Transport::Stdio(command)), &issuer);
    let reply = hello(&board.toolset()).await;
    assert_contains(&reply.text(), &["`LD_PRELOAD`", "load code"]);
    assert!(!reply.text().contains("t0ken-"), "{}", reply.text());
    assert!(lines(&file).is_empty(), "it was not started");
}

#[tokio::test]
async fn a_process_without_a_credential_is_not_started() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("starts");
    let issuer = Issuer::of_processes(|_| Err("nobody is signed in".into()));
    let command = writing(&fake(Era::Legacy), &file);
    let board = board_with(ServerConfig::new(Transport::Stdio(command)), &issuer);
    let tools = board.toolset();
    let text = assert_needs_auth(&hello(&tools).await);
    assert_contains(&text, &["there is no credential for server `fx`: nobody is signed in"]);
    assert!(lines(&file).is_empty(), "it was not started");
    issuer.answers(|_| Ok(Credential::none()));
    until_greeted(&tools).await;
}
