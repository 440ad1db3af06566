//! Several processes with one store of tokens.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use pegboard::config::OAuthConfig;
use pegboard_testkit::oauth::{AuthFault, AuthorizationServer};
use tokio::process::Child;

use crate::{
    sign_in::fixtures::{Site, assert_greeted, board_at, hello},
    support::PATIENCE,
};

/// Names the server and the store for a process that [`call_in_a_process`] started.
const URL: &str = "PEGBOARD_TEST_SIGN_IN_URL";
const STORE: &str = "PEGBOARD_TEST_SIGN_IN_STORE";

/// The other process: one call. Without the variables this is not one, and there is nothing to test.
#[tokio::test]
async fn one_call_of_another_process() {
    let (Ok(url), Ok(store)) = (std::env::var(URL), std::env::var(STORE)) else {
        return;
    };
    let board = board_at(&url, Path::new(&store), OAuthConfig::default());
    assert_greeted(&hello(&board.toolset()).await);
    board.shutdown().await;
}

fn call_in_a_process(site: &Site) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "sign_in::processes::one_call_of_another_process"])
        .env(URL, site.server.url())
        .env(STORE, site.folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true).spawn().unwrap()
}

async fn greeted(child: Child) {
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[tokio::test]
async fn eight_processes_that_refresh_at_once_make_one_request() {
    let site = Site::new().await;
    site.signed_in("alice").await.shutdown().await;
    site.issuer.expire_access_tokens();
    // The first request waits until all processes have been refused.
    site.issuer.add_fault_times(1, AuthFault::TokenWaitsFirst);
    let refused = site.server.seen().len();
    let children: Vec<Child> = (0..8).map(|_| call_in_a_process(&site)).collect();
    tokio::time::timeout(PATIENCE, site.server.wait_refused(refused + 8))
        .await
        .unwrap();
    site.issuer.open_gate();
    for child in children {
        greeted(child).await;
    }
    assert_eq!(site.issuer.token_requests("refresh_token"), 1);
    assert_eq!(site.issuer.count("/authorize"), 1);
    assert_eq!(site.issuer.reuses(), 0);
}

#[tokio::test]
async fn a_process_killed_before_its_refresh_was_served_loses_no_session() {
    let site = Site::new().await;
    killed_in_a_refresh(&site, AuthFault::TokenHangs).await;
    assert_eq!(site.issuer.reuses(), 0);
}

#[tokio::test]
async fn a_process_killed_before_the_answer_came_loses_no_session() {
    // The refresh token was replaced, and nobody has the new one. Only an issuer with a grace can save such a session.
    let site = Site::with(AuthorizationServer::new().reuse_grace(PATIENCE)).await;
    killed_in_a_refresh(&site, AuthFault::TokenWaits).await;
}

/// Kills a process (SIGKILL) while it waits for the answer to a refresh, and expects that the next process goes on.
async fn killed_in_a_refresh(site: &Site, fault: AuthFault) {
    site.signed_in("alice").await.shutdown().await;
    site.issuer.expire_access_tokens();
    site.issuer.add_fault_times(1, fault);
    let mut child = call_in_a_process(site);
    // The first request was that of the sign-in.
    let asked = site.issuer.wait_for("/token", 2);
    tokio::time::timeout(PATIENCE, asked).await.unwrap();
    child.kill().await.unwrap();
    greeted(call_in_a_process(site)).await;
    assert_eq!(site.issuer.count("/authorize"), 1);
}
