//! No token, code or secret shows up anywhere but in requests to where it belongs.

use std::{io::Write, os::unix::fs::PermissionsExt, path::Path, sync::Arc};

use futures_util::FutureExt;
use pegboard_base::sync::Mutex;
use pegboard_testkit::oauth::{AuthFault, TokenKind};
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::{
    sign_in::fixtures::{Site, assert_greeted, assert_needs_auth, hello, sign_in, try_sign_in},
    support::call,
};

/// All text that was logged, at every level.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Logged {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Whether a file below this folder contains the text.
pub(crate) fn is_in_files(folder: &Path, text: &str) -> bool {
    files(folder).into_iter().any(|file| {
        let content = std::fs::read(&file).unwrap_or_default();
        String::from_utf8_lossy(&content).contains(text)
    })
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[tokio::test]
async fn no_token_is_in_logs_events_errors_or_open_files() {
    let logged = Logged::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(logged.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    let mut said = String::new();

    let site = Site::new().await;
    let board = site.board();
    let mut events = board.events();
    let tools = board.toolset();
    said += &assert_needs_auth(&hello(&tools).await);
    site.issuer.add_fault_times(1, AuthFault::TokenError("invalid_grant"));
    said += &try_sign_in(&board, "alice").await.unwrap_err();
    site.issuer
        .add_fault_times(1, AuthFault::CallbackState("forged".to_owned()));
    said += &try_sign_in(&board, "alice").await.unwrap_err();
    sign_in(&board, "alice").await;
    assert_greeted(&hello(&tools).await);
    site.issuer.expire_access_tokens();
    assert_greeted(&hello(&tools).await);
    site.issuer.add_fault_times(1, AuthFault::TokenStatus(500));
    site.issuer.expire_access_tokens();
    said += &format!("{:?}", hello(&tools).await);
    site.issuer.revoke_sessions();
    said += &format!("{:?}", hello(&tools).await);
    said += &format!("{:?}", call(&tools, "fx.publish", json!({})).await);
    said += &format!("{:?} {board:?} {tools:?}", board.status());
    board.shutdown().await;
    while let Some(Some(event)) = events.next().now_or_never() {
        said += &format!("{event:?}");
    }
    drop(guard);
    let logged = String::from_utf8_lossy(&logged.0.lock().clone()).into_owned();

    assert!(!logged.is_empty() && !said.is_empty());
    let issued = site.issuer.issued();
    assert!(issued.len() > 5, "{}", issued.len());
    for token in &issued {
        assert!(!logged.contains(&token.value), "a {:?} is in the log", token.kind);
        assert!(
            !said.contains(&token.value),
            "a {:?} is in an event or error",
            token.kind
        );
    }
    // In URLs there are codes alone, and they come from the issuer.
    for request in site.issuer.requests() {
        for token in &issued {
            assert!(!request.query.contains(&token.value), "a {:?} is in a URL", token.kind);
            assert!(!request.path.contains(&token.value), "a {:?} is in a URL", token.kind);
        }
    }
    for path in files(site.folder.path()) {
        let mode = path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o077, 0, "{} has mode {mode:o}", path.display());
    }
    assert!(issued.iter().any(|token| token.kind == TokenKind::Refresh));
}

#[tokio::test]
async fn no_process_of_another_server_sees_a_token() {
    use pegboard_testkit::{FakeServer, Tool};

    let site = Site::new().await;
    let board = site.signed_in("alice").await;
    assert_greeted(&hello(&board.toolset()).await);
    let fake = FakeServer::new("local").tool(Tool::new("env").shows_env());
    board
        .connect(crate::support::name("local"), crate::support::process(&fake))
        .await
        .unwrap();
    assert!(!call(&board.toolset(), "local.env", json!({})).await.is_error());
    let own = std::process::id();
    let children: Vec<u32> = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own)
        .collect();
    for token in site.issuer.issued() {
        for pid in &children {
            for file in ["environ", "cmdline"] {
                let content = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                assert!(
                    !String::from_utf8_lossy(&content).contains(&token.value),
                    "a {:?} is in the {file} of process {pid}",
                    token.kind
                );
            }
        }
    }
    board.shutdown().await;
}
