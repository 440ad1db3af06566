//! An rmcp handler as an in-process server.

use std::{sync::Arc, time::Duration};

use pegboard::{Config, Event, Kind, Outcome, Pegboard, ToolCall, Toolset};
use rmcp::{ServerHandler, model::ServerConfig};
use serde_json::json;
use tokio::{
    sync::{Notify, mpsc},
    time::timeout,
};

use crate::{
    rmcp::kit::Kit,
    support::{PATIENCE, call, name},
};

pub(crate) fn board_with(kit: &Kit) -> (Pegboard, Toolset) {
    let dialer = pegboard::rmcp::in_process(kit.clone());
    let board = Pegboard::builder(Config::default())
        .in_process(name("kit"), dialer)
        .without_jitter()
        .open();
    let tools = board.toolset();
    (board, tools)
}

async fn tool_names(tools: &Toolset) -> Vec<String> {
    let listing = tools.list(PATIENCE).await;
    assert!(listing.unavailable.is_empty(), "{:?}", listing.unavailable);
    listing
        .tools
        .into_iter()
        .map(|listed| listed.tool.name.clone())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn its_tools_are_listed_and_called() {
    let (board, tools) = board_with(&Kit::default());
    let names = tool_names(&tools).await;
    assert!(names.contains(&"echo".to_owned()) && names.len() == 8, "{names:?}");
    let reply = call(&tools, "kit.echo", json!({"text": "two words"})).await;
    assert_eq!(reply.text(), "two words");
    board.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn an_error_result_and_a_json_rpc_error_are_failures_of_the_tool() {
    let (_board, tools) = board_with(&Kit::default());
    let failed = call(&tools, "kit.fails", json!({})).await;
    assert_eq!(
        (failed.outcome.kind(), failed.text()),
        (Kind::ToolError, "out of paper".to_owned())
    );
    let broken = call(&tools, "kit.breaks", json!({})).await;
    let Outcome::ToolFailed(answer) = &broken.outcome else {
        panic!("{broken:?}")
    };
    assert_eq!(answer.error_code, Some(-32603));
    assert!(broken.text().contains("the printer is on fire"), "{}", broken.text());
}

#[tokio::test(start_paused = true)]
async fn structured_content_and_meta_arrive() {
    let (_board, tools) = board_with(&Kit::default());
    let reply = call(&tools, "kit.structured", json!({})).await;
    let Outcome::Done(answer) = reply.outcome else {
        panic!("{reply:?}")
    };
    assert_eq!(answer.structured, Some(json!({"pages": 3})));
    assert_eq!(answer.meta.unwrap()["tray"], "upper");
}

#[tokio::test(start_paused = true)]
async fn progress_arrives_before_the_reply() {
    let (_board, tools) = board_with(&Kit::default());
    let (sender, mut steps) = mpsc::channel(8);
    let reply = tools.call(ToolCall::new("kit.counts").progress(sender)).await;
    assert_eq!(reply.text(), "counted");
    let mut seen = Vec::new();
    while let Ok(step) = steps.try_recv() {
        seen.push((step.progress, step.total));
    }
    assert_eq!(seen, [(1.0, Some(3.0)), (2.0, Some(3.0)), (3.0, Some(3.0))]);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_call_drops_the_handlers_future() {
    let kit = Kit::default();
    let (_board, tools) = board_with(&kit);
    {
        let calling = tools.call(ToolCall::new("kit.hangs"));
        tokio::select! {
            reply = calling => panic!("{reply:?}"),
            () = kit.hanging() => {}
        }
    }
    timeout(PATIENCE, kit.dropped())
        .await
        .expect("the handler's future is dropped");
    assert_eq!(call(&tools, "kit.echo", json!({"text": "on"})).await.text(), "on");
}

#[tokio::test(start_paused = true)]
async fn a_panic_fails_one_call_at_once_and_no_other() {
    let (_board, tools) = board_with(&Kit::default());
    let before = tokio::time::Instant::now();
    let (panicked, other) = tokio::join!(
        call(&tools, "kit.panics", json!({})),
        call(&tools, "kit.echo", json!({"text": "well"}))
    );
    assert!(
        panicked.is_error() && panicked.text().contains("panicked"),
        "{}",
        panicked.text()
    );
    assert_eq!(other.text(), "well");
    assert!(before.elapsed() < Duration::from_secs(1));
    assert_eq!(call(&tools, "kit.echo", json!({"text": "on"})).await.text(), "on");
}

#[tokio::test(start_paused = true)]
async fn a_changed_list_is_listed_again() {
    let (board, tools) = board_with(&Kit::default());
    assert!(!tool_names(&tools).await.contains(&"grown".to_owned()));
    let mut events = board.events();
    call(&tools, "kit.grows", json!({})).await;
    let changed = async { while !matches!(events.next().await, Some(Event::CatalogChanged { added: 1, .. })) {} };
    timeout(PATIENCE, changed).await.expect("the catalogue changes");
    assert!(tool_names(&tools).await.contains(&"grown".to_owned()));
}

/// Notifies when the handler of a connection is dropped.
struct Mortal(Arc<Notify>);

impl Drop for Mortal {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl ServerHandler for Mortal {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::default()
    }
}

#[tokio::test(start_paused = true)]
async fn the_handler_of_a_connection_is_dropped_when_the_board_closes() {
    let dead = Arc::new(Notify::new());
    let make = {
        let dead = dead.clone();
        move || Mortal(dead.clone())
    };
    let board = Pegboard::builder(Config::default())
        .in_process(name("mortal"), pegboard::rmcp::in_process_with(make))
        .open();
    board.toolset().list(PATIENCE).await;
    board.shutdown().await;
    timeout(PATIENCE, dead.notified())
        .await
        .expect("the handler is dropped");
}

#[tokio::test(start_paused = true)]
async fn a_handler_can_be_added_and_removed_while_the_board_runs() {
    let board = Pegboard::open(Config::default());
    let tools = board.toolset();
    let dialer = pegboard::rmcp::in_process(Kit::default());
    board.add_in_process(name("late"), dialer).await.unwrap();
    assert_eq!(call(&tools, "late.echo", json!({"text": "here"})).await.text(), "here");
    assert!(board.disconnect(&name("late")).await);
    let gone = call(&tools, "late.echo", json!({"text": "here"})).await;
    assert!(gone.is_error() && !gone.outcome.may_have_executed(), "{gone:?}");
}
