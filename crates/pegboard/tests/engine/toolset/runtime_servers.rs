//! Servers in this process that are added, replaced and removed while the board runs.

use std::sync::Arc;

use pegboard::{
    Answer, Config, NativeTool, NativeTools, Pegboard, ServerConfig, ToolCall,
    board::NotConnected,
    config::{Command, Transport},
    in_process::dialer,
};
use serde_json::json;
use tokio::{io::DuplexStream, sync::Notify};

use crate::support::*;

/// A set of one tool, `where`, that answers with a text.
fn tools(text: &'static str) -> NativeTools {
    let tool = NativeTool::new("where", "", json!({"type": "object"}), move |_| async move {
        Ok(Answer::from_text(text))
    });
    NativeTools::new([tool])
}

fn elsewhere() -> Config {
    let mut config = Config::default();
    let missing = ServerConfig::new(Transport::Stdio(Command::new("/nonexistent/server")));
    config.servers.insert(name("fx"), missing);
    config
}

fn servers(board: &Pegboard) -> Vec<String> {
    board
        .status()
        .servers
        .iter()
        .map(|server| server.name.to_string())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_added_is_in_every_open_view_and_survives_a_new_config() {
    let board = Pegboard::open(Config::default());
    let view = board.toolset();
    assert!(view.list(PATIENCE).await.tools.is_empty());
    board.add_in_process(name("fx"), tools("here")).await.unwrap();
    assert_eq!(view.list(PATIENCE).await.tools[0].name, "fx__where");
    assert_eq!(call(&view, "fx.where", json!({})).await.text(), "here");
    for config in [elsewhere(), Config::default()] {
        let applied = board.apply(config).await;
        assert!(applied.removed.is_empty() && applied.replaced.is_empty() && applied.added.is_empty());
        assert_eq!(call(&view, "fx.where", json!({})).await.text(), "here");
    }
    assert!(board.disconnect(&name("fx")).await);
    assert!(call(&view, "fx.where", json!({})).await.is_error());
    assert!(servers(&board).is_empty());
    // The name is free again, also for a config.
    board.add_in_process(name("fx"), tools("again")).await.unwrap();
    assert_eq!(call(&view, "fx.where", json!({})).await.text(), "again");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_taken_is_refused_and_nothing_changes() {
    let board = Pegboard::builder(Config::default())
        .in_process(name("fx"), tools("first"))
        .open();
    let refused = board.add_in_process(name("fx"), tools("second")).await.unwrap_err();
    assert!(matches!(&refused, NotConnected::NameTaken(taken) if *taken == name("fx")));
    assert_contains(&refused.to_string(), &["`fx`", "replace_in_process", "disconnect"]);
    assert_eq!(call(&board.toolset(), "fx.where", json!({})).await.text(), "first");
}

#[tokio::test(start_paused = true)]
async fn a_replaced_server_completes_its_calls() {
    let (started, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begin, end) = (started.clone(), go_on.clone());
    let slow = NativeTool::new("where", "", json!({"type": "object"}), move |_| {
        let (begin, end) = (begin.clone(), end.clone());
        async move {
            begin.notify_one();
            end.notified().await;
            Ok(Answer::from_text("old"))
        }
    });
    let board = Pegboard::open(Config::default());
    board
        .add_in_process(name("fx"), NativeTools::new([slow]))
        .await
        .unwrap();
    let view = board.toolset();
    let calling = tokio::spawn({
        let view = view.clone();
        async move { view.call(ToolCall::new("fx.where")).await.text() }
    });
    started.notified().await;
    let settings = ServerConfig::in_process();
    board
        .replace_in_process(name("fx"), tools("new"), settings)
        .await
        .unwrap();
    assert_eq!(call(&view, "fx.where", json!({})).await.text(), "new");
    go_on.notify_one();
    assert_eq!(calling.await.unwrap(), "old");
}

#[tokio::test(start_paused = true)]
async fn a_replacement_that_cannot_be_dialled_does_not_replace_a_working_server() {
    let board = Pegboard::open(Config::default());
    board.add_in_process(name("fx"), tools("first")).await.unwrap();
    let broken = dialer(|_| async { Err::<(DuplexStream, DuplexStream), _>("the cable is cut") });
    let settings = ServerConfig::in_process();
    let refused = board
        .replace_in_process(name("fx"), broken, settings)
        .await
        .unwrap_err();
    assert!(matches!(refused, NotConnected::NotReplaced(_)), "{refused:?}");
    assert_contains(&refused.to_string(), &["fx", "the cable is cut"]);
    assert_eq!(call(&board.toolset(), "fx.where", json!({})).await.text(), "first");
}

#[tokio::test(start_paused = true)]
async fn a_full_board_and_a_closing_one_take_no_more_servers() {
    let mut config = Config::default();
    config.limits.max_servers = 1;
    let board = Pegboard::open(config);
    board.add_in_process(name("a"), tools("a")).await.unwrap();
    let refused = board.add_in_process(name("b"), tools("b")).await.unwrap_err();
    assert!(
        matches!(refused, NotConnected::TooManyServers { most: 1 }),
        "{refused:?}"
    );
    board.shutdown().await;
    let refused = board.add_in_process(name("c"), tools("c")).await.unwrap_err();
    assert!(matches!(refused, NotConnected::Closing), "{refused:?}");
}
