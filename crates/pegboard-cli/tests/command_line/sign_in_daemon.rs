//! A sign-in and a sign-out while a daemon runs, and where the tokens are meanwhile.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, path::PathBuf};

use pegboard_testkit::{FakeServer, Tool};

use super::{
    gateway::Served,
    home::{Ran, until},
    sign_in::Site,
};

/// The state of `fx` in the daemon, and its last error.
fn state(site: &Site) -> (String, String) {
    let status = site.home.run(&["status", "-o", "json"]).json();
    assert!(status["daemon"]["pid"].is_number(), "{status}");
    let row = &status["servers"][0];
    (row["state"].as_str().unwrap().to_owned(), row["last_error"].to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_uses_a_sign_in_when_login_returns_and_ends_it_when_logout_does() {
    let site = Site::new().await;
    let daemon = Served::start(&site.home, &[]);
    let refused = site.home.run(&["call", "fx.hello"]);
    refused.ends_with(4).says("pegboard login fx");
    site.sign_in(&[]).await.ends_with(0);
    assert_eq!(site.home.run(&["call", "fx.hello"]).ends_with(0).out, "hi\n");
    assert_eq!(state(&site), ("ready".to_owned(), "null".to_owned()));

    site.home.run(&["logout", "fx"]).ends_with(0);
    let (state, error) = state(&site);
    assert_eq!(state, "needs_auth", "{error}");
    assert!(error.contains("pegboard login fx"), "{error}");
    site.home.run(&["call", "fx.hello"]).ends_with(4);
    // The other way round once more: the daemon has not ended.
    site.sign_in(&[]).await.ends_with(0);
    assert_eq!(site.home.run(&["call", "fx.hello"]).ends_with(0).out, "hi\n");
    daemon.signal("TERM");
    assert_eq!(daemon.code(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_nobody_tells_notices_both_by_itself() {
    let site = Site::new().await;
    let daemon = Served::start(&site.home, &[]);
    site.home.run(&["call", "fx.hello"]).ends_with(4);
    // A command with another config has the same tokens and another daemon.
    let url = site.server.url();
    let other = site.home.write("other.toml", &format!("[servers.fx]\nurl = {url:?}\n"));
    let other = other.to_str().unwrap();
    site.sign_in(&["--config", other]).await.ends_with(0);
    until("the daemon uses the sign-in", || state(&site).0 == "ready");
    assert_eq!(site.home.run(&["call", "fx.hello"]).ends_with(0).out, "hi\n");
    site.home.run(&["logout", "fx", "--config", other]).ends_with(0);
    until("the daemon ends the sign-in", || state(&site).0 == "needs_auth");
    drop(daemon);
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => found.extend(files(&entry.path())),
            kind if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}

/// Everything that a run has written, and the arguments and the environment of the process.
fn said(ran: &Ran) -> String {
    format!("{}{}", ran.out, ran.err)
}

async fn no_token_leaves_its_place(with_daemon: bool) {
    let site = Site::new().await;
    // A child of the board, which sees its environment.
    let local = FakeServer::new("local").tool(Tool::new("env").shows_env());
    let config = fs::read_to_string(site.home.path(".config/pegboard/pegboard.toml")).unwrap();
    site.home
        .config(&format!("{config}{}", site.home.entry("local", local, "")));
    let daemon = with_daemon.then(|| Served::start(&site.home, &["-vv", "--log", "trace"]));
    let loud = ["-vv", "--log", "trace"];
    let run = |args: &[&str]| said(&site.home.run(&[args, &loud].concat()));
    let mut all = run(&["call", "fx.hello"]);
    all += &said(&site.sign_in(&loud).await);
    let called = run(&["call", "fx.hello", "-o", "json"]);
    assert!(called.contains("hi"), "{called}");
    all += &called;
    let environment = run(&["call", "local.env"]);
    assert!(environment.contains("PATH"), "{environment}");
    all += &environment;
    all += &run(&["status", "-o", "json"]);
    all += &run(&["config", "show"]);
    let issued = site.issuer.issued();
    assert!(issued.len() >= 2, "{}", issued.len());
    let is_somewhere = |file: &PathBuf| {
        let content = fs::read(file).unwrap_or_default();
        let content = String::from_utf8_lossy(&content).into_owned();
        issued.iter().any(|token| content.contains(&token.value))
    };
    let holding: Vec<PathBuf> = files(&site.home.path("."))
        .into_iter()
        .filter(|file| is_somewhere(file))
        .collect();
    let tokens = site.home.path(".local/state/pegboard/tokens").canonicalize().unwrap();
    for file in &holding {
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
        assert!(file.canonicalize().unwrap().starts_with(&tokens), "{}", file.display());
    }
    if let Some(daemon) = &daemon {
        for part in ["cmdline", "environ"] {
            let content = fs::read(format!("/proc/{}/{part}", daemon.pid())).unwrap_or_default();
            all += &String::from_utf8_lossy(&content);
        }
    }
    all += &run(&["logout", "fx"]);
    all += &daemon.as_ref().map(Served::err).unwrap_or_default();
    let is_sign_out = |line: &str| line.contains("a sign-in has changed") && line.contains("sign_out");
    assert!(all.lines().any(is_sign_out), "{all}");
    for token in &issued {
        assert!(!all.contains(&token.value), "a {:?} token was written", token.kind);
        for request in site.issuer.requests() {
            let is_in_url = request.query.contains(&token.value) || request.path.contains(&token.value);
            assert!(!is_in_url, "a {:?} token is in a URL", token.kind);
        }
    }
    // After the sign-out they are nowhere.
    assert_eq!(
        files(&site.home.path("."))
            .iter()
            .filter(|file| is_somewhere(file))
            .count(),
        0
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn no_token_leaves_its_place_without_a_daemon() {
    no_token_leaves_its_place(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_token_leaves_its_place_with_a_daemon() {
    no_token_leaves_its_place(true).await;
}
