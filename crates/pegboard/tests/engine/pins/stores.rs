//! A server that may hold tools does not start without a place for its pins.

use std::{path::Path, sync::Arc};

use pegboard::{Pegboard, State};

use crate::{pins::fixtures::*, support::*};

async fn refused(settings: &str, pins: Option<&Path>) -> String {
    let (_unused, handle) = server([tool("t")]).connect();
    let starts = handle.starts();
    let dialled = handle.clone();
    let builder = Pegboard::builder(fx(settings)).stand_ins(move |_, _| Arc::new(dialer(&dialled)));
    let board = match pins {
        Some(pins) => builder.pins(pins).open(),
        None => builder.open(),
    };
    let listing = board.toolset().list(PATIENCE).await;
    assert_eq!(handle.starts(), starts, "it is not started");
    assert_eq!(board.status().servers[0].state, State::Down);
    board.shutdown().await;
    let why = listing
        .unavailable
        .first()
        .map(|server| format!("{} {:?}", server.error, server.hint));
    why.unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn without_a_place_for_pins_the_server_is_refused() {
    for settings in ["pins = 'block'", "pins = 'approve'"] {
        assert_contains(
            &refused(settings, None).await,
            &["this program keeps no pins", "Builder::pins"],
        );
    }
}

#[tokio::test(start_paused = true)]
async fn pins_that_cannot_be_read_or_written_refuse_the_server() {
    let folder = tempfile::tempdir().unwrap();
    run("pins = 'block'", &server([tool("t")]), folder.path()).await;
    let mut files = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let file = files.find(|file| file.extension().is_some()).unwrap();
    std::fs::write(&file, "{}").unwrap();
    assert_contains(
        &refused("pins = 'block'", Some(folder.path())).await,
        &["cannot be read"],
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    assert_contains(&refused("pins = 'block'", Some(file.path())).await, &["pins"]);
}

/// The file is damaged while the program runs.
#[tokio::test(start_paused = true)]
async fn a_store_that_breaks_later_holds_every_tool() {
    let folder = tempfile::tempdir().unwrap();
    let (board, fake) = open(fx("pins = 'block'"), &server([tool("t")]), folder.path());
    let tools = board.toolset();
    assert_eq!(list(&tools).await.0, ["t"]);
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        std::fs::write(entry.unwrap().path(), "damaged").unwrap();
    }
    fake.change(|script| script.tools.push(tool("u")));
    fake.tools_changed().await;
    while list(&tools).await.1.is_empty() {
        tokio::time::sleep(secs(1)).await;
    }
    assert_eq!(list(&tools).await.0, Vec::<String>::new());
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_store_changes_are_reported_within_the_life_of_the_board() {
    let (_unused, handle) = server([tool("t")]).connect();
    let dialled = handle.clone();
    let board = Pegboard::builder(fx("pins = 'warn'"))
        .stand_ins(move |_, _| Arc::new(dialer(&dialled)))
        .open();
    let tools = board.toolset();
    assert_eq!(list(&tools).await.1, Vec::<String>::new());
    handle.change(|script| script.tools = vec![tool("t").description("Does another.")]);
    handle.tools_changed().await;
    while board.pin_changes().is_empty() {
        tokio::time::sleep(secs(1)).await;
    }
    assert_contains(
        &list(&tools).await.1.join("\n"),
        &["definitions changed since they were pinned: `t`"],
    );
    board.shutdown().await;
}

/// A config that is applied later is held to the same rule.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_to_hold_tools_from_now_on_needs_a_store_too() {
    let (_unused, handle) = server([tool("t")]).connect();
    let board = Pegboard::builder(fx(""))
        .stand_ins(move |_, _| Arc::new(dialer(&handle)))
        .open();
    list(&board.toolset()).await;
    board.apply(fx("pins = 'block'")).await;
    let listing = board.toolset().list(PATIENCE).await;
    assert_contains(&listing.unavailable[0].error, &["keeps no pins"]);
    board.shutdown().await;
}
