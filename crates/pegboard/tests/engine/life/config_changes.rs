//! Config changes on a running board: `apply` touches only the servers that differ.

use pegboard::{Config, Kind, Pegboard, ServerConfig, State};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::support::*;

fn good(server: &str) -> FakeServer {
    FakeServer::new(server)
        .tool(Tool::new("hello").answers_text("hi"))
        .tool(Tool::new("pid").shows_pid())
}

fn config<const N: usize>(servers: [(&str, ServerConfig); N]) -> Config {
    let mut config = Config::default();
    for (server, settings) in servers {
        config.servers.insert(name(server), settings);
    }
    config
}

fn pid(board: &Pegboard, server: &str) -> Option<u32> {
    board
        .status()
        .servers
        .iter()
        .find(|status| status.name.as_str() == server)?
        .pid
}

/// Unchanged servers keep their process, a changed filter needs no restart, and all other servers are added, removed or replaced.
#[tokio::test]
async fn a_new_config_touches_only_what_differs() {
    let board = boards([
        ("filtered", process(&good("filtered"))),
        ("moved", process(&good("moved"))),
        ("old", process(&good("old"))),
        ("same", process(&good("same"))),
    ]);
    let tools = board.toolset();
    board.settle(PATIENCE).await;
    let before = |server| pid(&board, server).expect("a process");
    let (filtered, moved, old, same) = (before("filtered"), before("moved"), before("old"), before("same"));
    let mut only_pid = process(&good("filtered"));
    only_pid.deny = vec!["hello".into()];
    let wanted = config([
        ("filtered", only_pid),
        ("moved", process(&good("moved").instructions("other"))),
        ("new", process(&good("new"))),
        ("same", process(&good("same"))),
    ]);
    let applied = board.apply(wanted).await;
    let names = |names: &[pegboard::ServerName]| names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    assert_eq!(names(&applied.added), "new");
    assert_eq!(names(&applied.removed), "old");
    assert_eq!(names(&applied.replaced), "moved");
    assert_eq!(names(&applied.retuned), "filtered");
    gone(old, secs(10)).await;
    gone(moved, secs(10)).await;
    board.settle(PATIENCE).await;
    assert_eq!(pid(&board, "same"), Some(same));
    assert_eq!(pid(&board, "filtered"), Some(filtered));
    assert_ne!(pid(&board, "moved"), Some(moved));
    assert_eq!(
        call(&tools, "filtered.hello", json!({})).await.outcome.kind(),
        Kind::NotPermitted
    );
    assert_eq!(call(&tools, "new.hello", json!({})).await.text(), "hi");
    assert_eq!(
        call(&tools, "old.hello", json!({})).await.outcome.kind(),
        Kind::UnknownTool
    );
    board.shutdown().await;
}

/// Disables, enables, reconnects, disconnects and connects one server.
#[tokio::test]
async fn one_server_is_switched_off_and_on_and_started_anew() {
    let board = board(process(&good("fx")));
    let tools = board.toolset();
    board.settle(PATIENCE).await;
    let first = pid(&board, "fx").expect("a process");
    assert!(board.disable(&name("fx")).await);
    gone(first, secs(10)).await;
    let reply = call(&tools, "fx.hello", json!({})).await;
    assert_eq!(reply.outcome.kind(), Kind::Unavailable);
    assert!(reply.text().contains("switched off"), "{}", reply.text());
    assert!(board.enable(&name("fx")).await);
    board.settle(PATIENCE).await;
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    let second = pid(&board, "fx").expect("a process");
    assert!(board.reconnect(&name("fx")).await);
    gone(second, secs(10)).await;
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert!(board.disconnect(&name("fx")).await);
    assert!(!board.disconnect(&name("fx")).await);
    assert_eq!(
        call(&tools, "fx.hello", json!({})).await.outcome.kind(),
        Kind::UnknownTool
    );
    board.connect(name("fx"), process(&good("fx"))).await.unwrap();
    assert_eq!(call(&tools, "fx.hello", json!({})).await.text(), "hi");
    assert_eq!(board.status().servers[0].state, State::Ready);
    board.shutdown().await;
}
