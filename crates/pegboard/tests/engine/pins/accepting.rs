//! A person accepts definitions, here or in another process.

use pegboard::{
    Kind,
    pin::{PinState, PinStore},
};
use serde_json::json;

use crate::{pins::fixtures::*, support::*};

#[tokio::test(start_paused = true)]
async fn accepted_tools_are_usable_at_once_and_in_later_runs() {
    let folder = tempfile::tempdir().unwrap();
    let fake = server([tool("t"), tool("u")]);
    let (board, _handle) = open(fx("pins = 'approve'"), &fake, folder.path());
    let tools = board.toolset();
    assert_eq!(list(&tools).await.0, Vec::<String>::new());
    assert_outcome(&call(&tools, "fx.t", json!({})).await, Kind::NotPermitted, false);
    let mut changes = board.pin_changes();
    changes.retain(|change| change.tool.as_deref() == Some("t"));
    assert_eq!(changes[0].state, PinState::NewServer);
    assert!(!changes[0].reason().contains("was pinned"), "{}", changes[0].reason());
    let warnings = tools.list(PATIENCE).await.warnings;
    assert!(
        !warnings.iter().any(|warning| warning.contains("no tools")),
        "{warnings:?}"
    );
    assert_eq!(board.accept_pins(&changes).unwrap(), 1);
    assert_outcome(&call(&tools, "fx.t", json!({})).await, Kind::Ok, true);
    assert_outcome(&call(&tools, "fx.u", json!({})).await, Kind::NotPermitted, false);
    board.shutdown().await;
    assert_eq!(run("pins = 'approve'", &fake, folder.path()).await.0, ["t"]);
    let pinned = PinStore::new(folder.path()).servers().unwrap();
    assert_eq!(
        (pinned.len(), pinned[0].server.as_str(), pinned[0].shown.as_str()),
        (1, "fx", "srv")
    );
    assert!(pinned[0].tools["t"].accepted);
}

#[tokio::test(start_paused = true)]
async fn a_running_program_notices_what_another_process_accepts() {
    let folder = tempfile::tempdir().unwrap();
    run("pins = 'block'", &server([tool("t")]), folder.path()).await;
    let changed = server([tool("t").description("Does another.")]);
    let (board, _handle) = open(fx("pins = 'block'"), &changed, folder.path());
    let tools = board.toolset();
    list(&tools).await;
    assert_outcome(&call(&tools, "fx.t", json!({})).await, Kind::NotPermitted, false);

    let (other, _handle) = open(fx("pins = 'block'"), &changed, folder.path());
    list(&other.toolset()).await;
    other.accept_pins(&other.pin_changes()).unwrap();
    other.shutdown().await;

    assert_outcome(&call(&tools, "fx.t", json!({})).await, Kind::Ok, true);
    assert_eq!(list(&tools).await.0, ["t"]);
    board.shutdown().await;
}

/// A server that shows one definition to the person and another afterwards gains nothing.
#[tokio::test(start_paused = true)]
async fn what_is_accepted_is_what_was_shown() {
    let folder = tempfile::tempdir().unwrap();
    run("pins = 'block'", &server([tool("t")]), folder.path()).await;
    let (board, fake) = open(
        fx("pins = 'block'"),
        &server([tool("t").description("Harmless.")]),
        folder.path(),
    );
    let tools = board.toolset();
    list(&tools).await;
    let shown = board.pin_changes();
    let fields = shown[0].changed_fields();
    assert_eq!((fields.len(), fields[0].field.as_str()), (1, "description"));
    assert_eq!(fields[0].old.as_deref(), Some("Does one thing."));
    assert_eq!(fields[0].new.as_deref(), Some("Harmless."));
    fake.change(|script| script.tools = vec![tool("t").description(CANARY)]);
    fake.tools_changed().await;
    while board.pin_changes() == shown {
        tokio::time::sleep(secs(1)).await;
    }
    board.accept_pins(&shown).unwrap();
    assert_eq!(list(&tools).await.0, Vec::<String>::new());
    assert!(!all_text(&board).await.contains(CANARY));
    board.shutdown().await;
}
