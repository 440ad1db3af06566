//! What was listed after a sign-in is not listed after the sign-in of another account.

use pegboard::{Pegboard, SignInOptions, View};
use pegboard_testkit::oauth::follow_redirect;

use crate::{sign_in::fixtures::Site, support::*};

async fn sign_in(board: &Pegboard) {
    let pending = board.sign_in("fx", SignInOptions::default()).await.unwrap();
    let redirected = follow_redirect(pending.url().as_str(), Some("user")).await.unwrap();
    pending.finish(&redirected).await.unwrap();
}

#[tokio::test]
async fn the_tools_of_a_server_that_needs_a_sign_in_are_neither_listed_nor_kept() {
    let site = Site::new().await;
    let catalogs = tempfile::tempdir().unwrap();
    let files = || std::fs::read_dir(catalogs.path()).map_or(0, Iterator::count);
    let open = || site.builder_of(&["fx"]).catalog_store(catalogs.path()).open();
    let board = open();
    sign_in(&board).await;
    assert_eq!(board.toolset().list(PATIENCE).await.tools.len(), 2);
    board.shutdown().await;
    assert_eq!(files(), 1);

    // Another program signs the user out.
    let other = site.board_of(&["fx"]);
    other.sign_out("fx").await.unwrap();
    other.shutdown().await;
    let board = open();
    while board.awaiting_sign_in().is_empty() {
        tokio::task::yield_now().await;
    }
    let tools = board.toolset_with(View::new().list_known());
    assert_eq!(tools.list(PATIENCE).await.tools.len(), 0);
    assert_eq!(files(), 0);
    board.shutdown().await;
}
