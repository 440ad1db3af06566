//! Pins belong to what a server is, not to its name.

use crate::{pins::fixtures::*, support::*};

async fn listed_as(config: &str, description: &str, pins: &std::path::Path) -> usize {
    let (board, _handle) = open(load(config), &server([tool("t").description(description)]), pins);
    let listing = board.toolset().list(PATIENCE).await;
    board.shutdown().await;
    listing.tools.iter().filter(|listed| listed.tool.name == "t").count()
}

#[tokio::test(start_paused = true)]
async fn a_renamed_server_keeps_its_pins_and_another_command_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let config = |name: &str, command: &str| format!("[servers.{name}]\ncommand = '{command}'\npins = 'block'\n");
    assert_eq!(listed_as(&config("a", "srv"), "One.", folder.path()).await, 1);
    assert_eq!(
        listed_as(&config("a", "srv"), "Two.", folder.path()).await,
        0,
        "changed"
    );
    assert_eq!(
        listed_as(&config("b", "srv"), "Two.", folder.path()).await,
        0,
        "renamed and changed"
    );
    assert_eq!(
        listed_as(&config("b", "srv"), "One.", folder.path()).await,
        1,
        "renamed"
    );
    assert_eq!(
        listed_as(&config("a", "other"), "Two.", folder.path()).await,
        1,
        "another server under the name"
    );
    assert_eq!(
        listed_as(&config("a", "other"), "One.", folder.path()).await,
        0,
        "which has pins of its own"
    );
}
