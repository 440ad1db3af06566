//! The list of all sign-ins of a store.

use std::time::Duration;

use pegboard::{Pegboard, SignInOptions, SignedOut, StoredSignIn};
use pegboard_testkit::oauth::follow_redirect;

use crate::{sign_in::fixtures::Site, support::PATIENCE};

async fn sign_in(board: &Pegboard, server: &str, options: SignInOptions) {
    let pending = board.sign_in(server, options).await.unwrap();
    let redirected = follow_redirect(pending.url().as_str(), Some("user")).await.unwrap();
    pending.finish(&redirected).await.unwrap();
}

/// The servers and principals of a list.
fn whose(listed: &[StoredSignIn]) -> Vec<(Option<&str>, Option<&str>)> {
    listed
        .iter()
        .map(|entry| {
            (
                entry.server.as_ref().map(|server| server.as_str()),
                entry.principal.as_ref().map(|principal| principal.as_str()),
            )
        })
        .collect()
}

#[tokio::test]
async fn every_sign_in_of_every_principal_is_listed_without_its_tokens() {
    let site = Site::new().await;
    let board = site.board_of(&["fx"]);
    assert_eq!(board.sign_ins().await.unwrap(), []);
    sign_in(&board, "fx", SignInOptions::default()).await;
    sign_in(&board, "fx", SignInOptions::default().principal("ada")).await;
    let listed = board.sign_ins().await.unwrap();
    assert_eq!(whose(&listed), [(Some("fx"), None), (Some("fx"), Some("ada"))]);
    for entry in &listed {
        assert_eq!(entry.url, site.server.url());
        assert_eq!(entry.signed_in.issuer, site.issuer.url());
        assert!(entry.signed_in.is_renewable);
        assert!(
            entry
                .signed_in
                .since
                .is_some_and(|since| since < entry.signed_in.expires_at)
        );
    }
    let shown = format!("{listed:?}");
    for token in site.issuer.issued() {
        assert!(!shown.contains(&token.value));
    }
    board.sign_out_as("fx", "ada").await.unwrap();
    assert_eq!(whose(&board.sign_ins().await.unwrap()), [(Some("fx"), None)]);
    board.shutdown().await;
}

#[tokio::test]
async fn servers_that_share_a_sign_in_are_listed_one_by_one_and_removed_ones_by_their_url() {
    let site = Site::new().await;
    let both = site.board_of(&["one", "two"]);
    sign_in(&both, "one", SignInOptions::default()).await;
    assert_eq!(
        whose(&both.sign_ins().await.unwrap()),
        [(Some("one"), None), (Some("two"), None)]
    );
    both.shutdown().await;
    let without = site.board_of(&[]);
    let listed = without.sign_ins().await.unwrap();
    assert_eq!(whose(&listed), [(None, None)]);
    assert_eq!(listed.first().unwrap().url, site.server.url());
    without.shutdown().await;
}

#[tokio::test]
async fn a_damaged_file_hides_no_other_sign_in() {
    let site = Site::new().await;
    let board = site.board_of(&["fx"]);
    sign_in(&board, "fx", SignInOptions::default()).await;
    let damaged = site.folder.path().join(format!("{}.json", "0".repeat(64)));
    std::fs::write(&damaged, "{").unwrap();
    assert_eq!(whose(&board.sign_ins().await.unwrap()), [(Some("fx"), None)]);
    // With nothing else, it is not passed off as an empty store.
    board.sign_out("fx").await.unwrap();
    for entry in std::fs::read_dir(site.folder.path()).unwrap().flatten() {
        if entry.path() != damaged {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    assert!(board.sign_ins().await.unwrap_err().to_string().contains("0000"));
    board.shutdown().await;
}

#[tokio::test]
async fn all_sign_ins_are_ended_at_once_also_those_that_cannot_be_read() {
    let site = Site::new().await;
    let board = site.board_of(&["fx"]);
    let sign_in_both = async || {
        sign_in(&board, "fx", SignInOptions::default()).await;
        sign_in(&board, "fx", SignInOptions::default().principal("ada")).await;
    };
    sign_in_both().await;
    let file = |digit: &str, ending: &str| site.folder.path().join(format!("{}.{ending}", digit.repeat(64)));
    std::fs::write(file("0", "json"), "{").unwrap();
    std::fs::write(file("1", "json"), r#"{"version":1,"sealed":"AAAA"}"#).unwrap();
    std::fs::write(file("2", "damaged"), "{").unwrap();
    let ada = "ada".into();
    let ended = board.sign_out_all(Some(&ada), PATIENCE).await;
    assert_eq!(ended.len(), 1);
    assert!(ended.iter().all(|ended| ended.result == Ok(SignedOut::Revoked)));
    let ended = board.sign_out_all(None, PATIENCE).await;
    let (read, unread): (Vec<_>, Vec<_>) = ended.iter().partition(|ended| ended.stored.is_some());
    assert_eq!((read.len(), unread.len()), (1, 3));
    assert!(read.iter().all(|ended| ended.result == Ok(SignedOut::Revoked)));
    for ended in unread {
        assert!(ended.file.is_some());
        assert!(matches!(ended.result, Ok(SignedOut::OnlyForgotten { .. })), "{ended:?}");
    }
    assert!(!file("0", "json").exists() && !file("1", "json").exists() && !file("2", "damaged").exists());
    // Without time to revoke, everything is forgotten nevertheless.
    sign_in_both().await;
    let ended = board.sign_out_all(None, Duration::ZERO).await;
    assert_eq!(ended.len(), 2);
    for ended in ended {
        assert!(matches!(ended.result, Ok(SignedOut::OnlyForgotten { .. })), "{ended:?}");
    }
    assert_eq!(board.sign_ins().await.unwrap(), []);
    board.shutdown().await;
}
