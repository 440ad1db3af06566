//! Credentials from outside of the config: a file with a token, and a program that prints headers.

use std::{fs, path::Path, time::Duration};

use pegboard::{Config, Env, Format, Kind, Outcome, Pegboard, State};
use pegboard_testkit::{Era, FakeServer, Fault, NetHandle, Tool, When};
use serde_json::json;
use tempfile::TempDir;

use crate::support::*;

/// A server whose answers to some calls are these statuses, by the number of the call.
async fn server(refusals: &[(u32, u16)]) -> NetHandle {
    let mut fake = FakeServer::new("fx")
        .era(Era::Legacy)
        .tool(Tool::new("hello").answers_text("hi"));
    for (call, status) in refusals {
        let refused = Fault::Status {
            status: *status,
            headers: Vec::new(),
            body: String::new(),
        };
        fake = fake.fault_on(When::tool("hello").nth(*call), refused);
    }
    fake.serve_http().await.unwrap()
}

fn open(server: &NetHandle, settings: &str) -> Pegboard {
    let text = format!("[servers.fx]\nurl = '{}'\nrestart = false\n{settings}\n", server.url());
    let loaded = Config::from_text(&text, Format::Toml, &Env::process());
    assert_eq!(loaded.problems, [], "{text}");
    Pegboard::open(loaded.config)
}

/// The values of a header in the calls that the server got.
fn sent(server: &NetHandle, header: &str) -> Vec<String> {
    let requests = server.requests();
    let calls = requests.iter().filter(|received| received.method == "tools/call");
    calls
        .map(|call| call.header(header).unwrap_or("none").to_owned())
        .collect()
}

async fn hello(board: &Pegboard) -> String {
    call(&board.toolset(), "fx.hello", json!({})).await.text()
}

#[tokio::test]
async fn every_kind_of_credentials_comes_from_a_variable_or_the_keyring() {
    for source in ["${SECRET}", "${keyring:fx/me}", "${secret:FX}"] {
        for (auth, header, expected) in [
            (format!("bearer = '{source}'"), "authorization", "Bearer s3cr3t-c4nary"),
            (format!("api_key = '{source}'"), "x-api-key", "s3cr3t-c4nary"),
            (
                format!("user = 'me', password = '{source}'"),
                "authorization",
                "Basic bWU6czNjcjN0LWM0bmFyeQ==",
            ),
        ] {
            let server = server(&[]).await;
            let text = format!("[servers.fx]\nurl = '{}'\nauth = {{ {auth} }}\n", server.url());
            let env = Env::from_pairs([("SECRET", "s3cr3t-c4nary")]).keyring(|service, user| match (service, user) {
                ("fx", "me") => Ok("s3cr3t-c4nary".to_owned()),
                _ => Err("unknown".to_owned()),
            });
            let env = env.secrets(|name| Ok((name == "FX").then(|| "s3cr3t-c4nary".to_owned())));
            let loaded = Config::from_text(&text, Format::Toml, &env);
            assert_eq!(loaded.problems, [], "{text}");
            assert!(
                loaded
                    .config
                    .secrets()
                    .iter()
                    .any(|secret| secret.expose() == "s3cr3t-c4nary")
            );
            let board = Pegboard::open(loaded.config);
            assert_eq!(hello(&board).await, "hi", "{auth}");
            assert_eq!(sent(&server, header), [expected], "{auth}");
            board.shutdown().await;
        }
    }
}

#[test]
fn a_keyring_that_has_no_secret_is_an_error_of_the_field() {
    let text = "[servers.fx]\nurl = 'https://h.example/'\nauth = { bearer = '${keyring:fx/me}' }\n";
    let env = || Env::new(|_| None);
    for (env, expected) in [
        (env(), "there is no keyring here"),
        (env().keyring(|_, _| Err("it is locked".to_owned())), "it is locked"),
    ] {
        let loaded = Config::from_text(text, Format::Toml, &env);
        let problems: Vec<String> = loaded.errors().map(ToString::to_string).collect();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_contains(
            &problems[0],
            &["auth.bearer", "`${keyring:fx/me}` cannot be read", expected],
        );
    }
    let text = text.replace("fx/me", "fx");
    let loaded = Config::from_text(&text, Format::Toml, &env());
    let problems: Vec<String> = loaded.errors().map(ToString::to_string).collect();
    assert_contains(&problems[0], &["`${keyring:fx}`", "write `${keyring:SERVICE/USER}`"]);
}

#[test]
fn a_secret_that_is_not_stored_is_an_error_of_the_field_that_says_how_to_store_it() {
    let text = "[servers.fx]\nurl = 'https://h.example/'\nauth = { bearer = '${secret:FX}' }\n";
    let env = || Env::new(|_| None);
    for (env, expected) in [
        (env(), "there is no keyring here"),
        (env().secrets(|_| Ok(None)), "(`pegboard secret set FX` stores it)"),
        (env().secrets(|_| Err("it is locked".to_owned())), "it is locked"),
        (
            env().keyring(|service, user| Err(format!("no {service}/{user}"))),
            "no pegboard-secret/FX",
        ),
    ] {
        let loaded = Config::from_text(text, Format::Toml, &env);
        let problems: Vec<String> = loaded.errors().map(ToString::to_string).collect();
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert_contains(
            &problems[0],
            &["auth.bearer", "`${secret:FX}` cannot be read", expected],
        );
        let named = loaded.errors().next().and_then(|problem| problem.variable.clone());
        assert_eq!(named.as_deref(), Some("secret:FX"));
    }
    let off = text.replace("url", "enabled = false\nurl");
    let loaded = Config::from_text(&off, Format::Toml, &env().secrets(|_| Ok(None)));
    assert!(loaded.config.misconfigured.is_empty(), "{:?}", loaded.problems);
    let loaded = Config::from_text(&text.replace("secret:FX", "secret:a b"), Format::Toml, &env());
    let problems: Vec<String> = loaded.errors().map(ToString::to_string).collect();
    assert_contains(&problems[0], &["`${secret:a b}`", "write `${secret:NAME}`"]);
}

#[tokio::test]
async fn a_token_file_is_read_again_when_the_server_refuses_its_token() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, "f1rst-t0ken\n").unwrap();
    let server = server(&[(2, 401)]).await;
    let board = open(&server, &format!("auth = {{ bearer_file = '{}' }}", file.display()));
    assert_eq!(hello(&board).await, "hi");
    fs::write(&file, "s3cond-t0ken\n").unwrap();
    assert_eq!(hello(&board).await, "hi");
    let sent = sent(&server, "authorization");
    assert_eq!(sent.first().unwrap(), "Bearer f1rst-t0ken");
    assert_eq!(sent.last().unwrap(), "Bearer s3cond-t0ken");
    board.shutdown().await;
}

#[tokio::test]
async fn a_call_that_is_refused_for_its_token_says_where_the_token_comes_from() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, "t0ken\n").unwrap();
    let server = server(&[(2, 401), (3, 401), (4, 401)]).await;
    let board = open(&server, &format!("auth = {{ bearer_file = '{}' }}", file.display()));
    assert_eq!(hello(&board).await, "hi");
    let refused = call(&board.toolset(), "fx.hello", json!({})).await;
    let Outcome::Refused(failure) = refused.outcome else {
        panic!("{refused:?}")
    };
    assert_eq!(failure.kind, Kind::NeedsAuth);
    assert_contains(
        &failure.hint.unwrap(),
        &["write a valid token to", "`auth.bearer_file`"],
    );
    board.shutdown().await;
}

#[tokio::test]
async fn without_its_token_file_a_server_is_not_asked() {
    let folder = TempDir::new().unwrap();
    let server = server(&[]).await;
    let missing = folder.path().join("missing");
    let board = open(&server, &format!("auth = {{ token_file = '{}' }}", missing.display()));
    let told = hello(&board).await;
    assert_contains(&told, &["the token file", "missing"]);
    assert!(server.requests().is_empty());
    let status = board.status().servers.remove(0);
    assert_eq!(status.state, State::Down, "no person has to sign in");
    let error = status.last_error.unwrap();
    assert_contains(&error.hint.unwrap(), &["missing", "`auth.bearer_file`"]);
    fs::write(&missing, "t0ken").unwrap();
    let written = async {
        while hello(&board).await != "hi" {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let found = tokio::time::timeout(PATIENCE, written).await;
    found.expect("the file is read again soon");
    board.shutdown().await;
}

/// A helper that counts its runs in a file of the folder, and prints the number.
fn counting(folder: &Path) -> String {
    let script = format!(
        "cd {}; echo x >> runs; echo \"X-Run: $(grep -c x runs)\"; echo \"X-Of: $PEGBOARD_SERVER_NAME\"",
        folder.display()
    );
    format!("['sh', '-c', '{script}']")
}

#[tokio::test]
async fn the_headers_of_a_helper_are_sent_until_the_server_refuses_them() {
    let folder = TempDir::new().unwrap();
    let server_one = server(&[(3, 403), (6, 401)]).await;
    let board = open(&server_one, &format!("headers_helper = {}", counting(folder.path())));
    for _ in 0..5 {
        assert_eq!(hello(&board).await, "hi");
    }
    // The third and the fifth call are sent twice.
    assert_eq!(sent(&server_one, "x-run"), ["1", "1", "1", "2", "2", "2", "3"]);
    assert_eq!(sent(&server_one, "x-of")[0], "fx");
    board.shutdown().await;

    let folder = TempDir::new().unwrap();
    let server_two = server(&[]).await;
    let settings = format!(
        "headers_helper = {}\nheaders_helper_ttl = '1ms'",
        counting(folder.path())
    );
    let board = open(&server_two, &settings);
    assert_eq!(hello(&board).await, "hi");
    assert_ne!(
        sent(&server_two, "x-run")[0],
        "1",
        "the handshake had the first headers"
    );
    board.shutdown().await;
}

#[tokio::test]
async fn a_helper_is_a_program_a_line_of_words_or_a_line_for_a_shell() {
    for (helper, expected) in [
        ("'echo X-A: b'", "b"),
        (r#""echo 'X-A: b c' | cat""#, "b c"),
        (r#"["echo", '{"X-A": "$HOME"}']"#, "$HOME"),
    ] {
        let server = server(&[]).await;
        let board = open(&server, &format!("headers_helper = {helper}"));
        assert_eq!(hello(&board).await, "hi", "{helper}");
        assert_eq!(sent(&server, "x-a"), [expected], "{helper}");
        board.shutdown().await;
    }
}

#[tokio::test]
async fn the_failure_of_a_helper_is_told_and_nothing_is_sent() {
    let server = server(&[]).await;
    let settings = "headers_helper = ['sh', '-c', 'echo no key: $KEY >&2; exit 3']\nenv = { KEY = 'c4nary-7f3a9b1e' }";
    let board = open(&server, settings);
    let told = hello(&board).await;
    assert_contains(&told, &["headers_helper", "exit status: 3", "no key"]);
    assert!(!told.contains("c4nary"), "{told}");
    assert!(server.requests().is_empty());
    let status = board.status().servers.remove(0);
    assert_eq!(status.state, State::Down, "no person has to sign in");
    assert_contains(
        &status.last_error.unwrap().hint.unwrap(),
        &["run `sh` by hand", "`headers_helper`"],
    );
    board.shutdown().await;
}
