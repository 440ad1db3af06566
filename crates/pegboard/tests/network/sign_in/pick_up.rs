//! A sign-in is used by what already runs.

use std::{path::Path, time::Duration};

use pegboard::State;
use serde_json::json;

use crate::{
    sign_in::fixtures::{
        Site, accepted_subjects, assert_greeted, assert_needs_auth, hello, sign_in, sign_in_to, until_greeted,
    },
    support::{PATIENCE, call},
};

#[tokio::test]
async fn a_running_board_uses_a_sign_in_of_its_own_at_once() {
    let site = Site::new().await;
    let board = site.board();
    let tools = board.toolset();
    assert_needs_auth(&hello(&tools).await);
    assert_eq!(board.status().servers[0].state, State::NeedsAuth);
    sign_in(&board, "alice").await;
    assert_greeted(&hello(&tools).await);
    board.shutdown().await;
}

#[tokio::test]
async fn a_running_board_picks_up_the_sign_in_of_another_program() {
    let site = Site::new().await;
    let running = site.board();
    let tools = running.toolset();
    assert_needs_auth(&hello(&tools).await);
    let command = site.board();
    sign_in(&command, "alice").await;
    command.shutdown().await;
    until_greeted(&tools).await;
    assert_eq!(accepted_subjects(&site.server), ["alice"]);
    running.shutdown().await;
}

#[tokio::test]
async fn a_sign_in_as_another_user_replaces_a_refused_one() {
    let site = Site::new().await;
    let board = site.signed_in("alice").await;
    let tools = board.toolset();
    assert_greeted(&hello(&tools).await);
    site.issuer.revoke_sessions();
    sign_in(&board, "bob").await;
    assert_greeted(&hello(&tools).await);
    assert_eq!(accepted_subjects(&site.server), ["alice", "bob"]);
    board.shutdown().await;
}

#[tokio::test]
async fn a_server_whose_token_works_no_more_is_not_ready() {
    let site = Site::new().await;
    let board = site.signed_in("alice").await;
    let tools = board.toolset();
    assert_greeted(&hello(&tools).await);
    assert_eq!(board.status().servers[0].state, State::Ready);
    site.issuer.revoke_sessions();
    assert_needs_auth(&hello(&tools).await);
    let noticed = async {
        while board.status().servers[0].state != State::NeedsAuth {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, noticed)
        .await
        .expect("the status says so in time");
    sign_in(&board, "bob").await;
    assert_greeted(&hello(&tools).await);
    assert_eq!(board.status().servers[0].state, State::Ready);
    board.shutdown().await;
}

#[tokio::test]
async fn a_damaged_file_is_kept_aside_and_named_until_the_next_sign_in() {
    let site = Site::new().await;
    site.signed_in("alice").await.shutdown().await;
    let is_account = |path: &Path| {
        let is_file = path.extension().is_some_and(|ending| ending == "json");
        is_file && std::fs::read_to_string(path).unwrap().contains("access_token")
    };
    let files = std::fs::read_dir(site.folder.path()).unwrap();
    let mut files = files.map(|file| file.unwrap().path());
    let file = files.find(|path| is_account(path)).unwrap();
    std::fs::write(&file, r#"{"version":1,"plain":{"cut"#).unwrap();
    let board = site.board();
    let tools = board.toolset();
    let told = assert_needs_auth(&hello(&tools).await);
    assert!(told.contains("was damaged") && told.contains(".damaged"), "{told}");
    let kept = file.with_extension("damaged");
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), r#"{"version":1,"plain":{"cut"#);
    let detail = board.status().servers[0].last_error.clone().unwrap().message;
    assert!(detail.contains("was damaged"), "{detail}");
    sign_in(&board, "bob").await;
    assert_greeted(&hello(&tools).await);
    assert!(!kept.exists());
    board.shutdown().await;
}

#[tokio::test]
async fn a_sign_out_reaches_every_server_that_shares_the_sign_in() {
    let site = Site::new().await;
    let board = site.board_of(&["one", "two"]);
    let tools = board.toolset();
    let hello = async |server: &str| call(&tools, &format!("{server}.hello"), json!({})).await;
    for by_another_program in [false, true] {
        let signing = if by_another_program {
            site.board_of(&["one"])
        } else {
            board.clone()
        };
        sign_in_to(&signing, "one", "alice").await;
        for server in ["one", "two"] {
            let greeted = async {
                while hello(server).await.is_error() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            };
            tokio::time::timeout(PATIENCE, greeted).await.expect(server);
        }
        signing.sign_out("one").await.unwrap();
        board.follow_sign_ins().await;
        for server in ["one", "two"] {
            assert_needs_auth(&hello(server).await);
        }
        if by_another_program {
            signing.shutdown().await;
        }
    }
    board.shutdown().await;
}
