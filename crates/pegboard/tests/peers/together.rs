//! All peers on one board, side by side.

use std::path::PathBuf;

use futures_util::future::join_all;
use pegboard::{Config, Pegboard, ServerConfig, State, Toolset, config::Transport, status::Era};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{peer::*, support::*, talk::*, time_and_git::repository_in};

/// The peers that listen on ports, the folder of those that work on files, and the board over all of them.
struct All {
    board: Pegboard,
    websocket: Listening,
    /// They are killed when this is dropped.
    _others: [Listening; 4],
    root: PathBuf,
    _folder: TempDir,
}

async fn all() -> All {
    let folder = TempDir::new().unwrap();
    let root = repository_in(folder.path());
    let (http, sse, python, typescript, websocket) = tokio::join!(
        Listening::everything_http(),
        Listening::everything_sse(),
        Listening::python_modern(),
        Listening::typescript_modern(),
        Listening::python_websocket(),
    );
    let servers = [
        ("everything", stdio(&everything())),
        ("everything-http", http.config()),
        ("everything-sse", sse.config()),
        ("files", stdio(&filesystem(&root))),
        ("git", stdio(&git(&root))),
        ("memory", memory_in(&root.join("memory.jsonl"))),
        ("python", stdio(&python_modern())),
        ("python-http", python.config()),
        ("time", stdio(&time())),
        ("typescript", stdio(&typescript_modern())),
        ("typescript-http", typescript.config()),
        (
            "websocket",
            ServerConfig::new(Transport::websocket(websocket.endpoint())),
        ),
    ];
    All {
        board: boards(servers),
        websocket,
        _others: [http, sse, python, typescript],
        root,
        _folder: folder,
    }
}

/// The number of tools of each server, and a call with a part of its answer.
fn calls(root: &std::path::Path) -> Vec<(&'static str, usize, &'static str, Value, &'static str)> {
    let hi = || json!({"message": "hi"});
    let sum = || json!({"a": 2, "b": 3});
    vec![
        ("everything", 13, "echo", hi(), "Echo: hi"),
        ("everything-http", 13, "echo", hi(), "Echo: hi"),
        ("everything-sse", 13, "echo", hi(), "Echo: hi"),
        ("files", 14, "list_directory", json!({"path": root}), "[FILE] tree.txt"),
        ("git", 12, "git_log", json!({"repo_path": root}), "Plant a tree"),
        ("memory", 9, "read_graph", json!({}), "entities"),
        ("python", 6, "add", sum(), "5"),
        ("python-http", 6, "add", sum(), "5"),
        ("time", 2, "get_current_time", json!({"timezone": "UTC"}), "+00:00"),
        ("typescript", 6, "add", sum(), "5"),
        ("typescript-http", 6, "add", sum(), "5"),
        ("websocket", 4, "add", sum(), "5"),
    ]
}

/// Calls every server at the same time, except those in `but`.
async fn call_each(tools: &Toolset, root: &std::path::Path, but: &[&str]) {
    let calls = calls(root).into_iter().filter(|(server, ..)| !but.contains(server));
    let calling = calls.map(|(server, _, tool, arguments, expected)| async move {
        let told = text(tools, &format!("{server}.{tool}"), arguments).await;
        assert!(told.contains(expected), "{server}: {told}");
    });
    join_all(calling).await;
}

#[tokio::test]
async fn all_servers_share_a_board_and_one_that_dies_costs_only_itself() {
    let all = all().await;
    let (board, tools) = (&all.board, all.board.toolset());
    let names = listed(&tools).await;
    assert_eq!(
        names.len(),
        calls(&all.root).iter().map(|(_, count, ..)| count).sum::<usize>()
    );
    for (server, count, ..) in calls(&all.root) {
        let its = names.iter().filter(|name| name.starts_with(&format!("{server}__")));
        assert_eq!(its.count(), count, "{server}");
    }
    assert!(board.status().healthy && board.status().ready);
    call_each(&tools, &all.root, &[]).await;

    // A name that several servers have is ambiguous.
    let ambiguous = call(&tools, "add", json!({"a": 2, "b": 3})).await;
    assert!(
        ambiguous.text().contains("python.add or python-http.add"),
        "{}",
        ambiguous.text()
    );

    let before = status(board, "time").pid.unwrap();
    pegboard_testkit::kill(before);
    pegboard_testkit::kill(all.websocket.pid());
    call_each(&tools, &all.root, &["time", "websocket"]).await;
    // A process is restarted by the board; a remote server is down until it is restarted elsewhere.
    until("the process is back", || {
        let time = status(board, "time");
        time.state == State::Ready && time.pid != Some(before)
    })
    .await;
    until("the end is seen", || status(board, "websocket").state == State::Down).await;
    let now = text(&tools, "time.get_current_time", json!({"timezone": "UTC"})).await;
    assert!(now.contains("+00:00"), "{now}");
    assert_ne!(status(board, "time").pid, Some(before));
    assert_eq!(status(board, "time").restarts, 1);
    let gone = call(&tools, "websocket.add", json!({"a": 2, "b": 3})).await;
    assert!(!gone.outcome.may_have_executed());
    assert!(
        gone.outcome.hint().unwrap().contains("nothing listens"),
        "{:?}",
        gone.outcome
    );
    call_each(&tools, &all.root, &["websocket"]).await;

    let pids: Vec<u32> = board.status().servers.iter().filter_map(|server| server.pid).collect();
    assert_eq!(pids.len(), 7);
    board.shutdown().await;
    for pid in pids {
        assert!(!pegboard_testkit::is_alive(pid), "{pid}");
    }
}

#[tokio::test]
async fn servers_that_speak_different_eras_share_a_board() {
    let (modern, handshake) = tokio::join!(Listening::python_modern(), Listening::everything_http());
    let mut config = Config::default();
    config.servers.insert(name("modern"), modern.config());
    config.servers.insert(name("handshake"), handshake.config());
    let folder = TempDir::new().unwrap();
    let memory = folder.path().join("eras.json");
    // The second start uses what the first one detected.
    for _ in 0..2 {
        let board = Pegboard::builder(config.clone()).era_memory(&memory).open();
        listed(&board.toolset()).await;
        assert_eq!(status(&board, "modern").era, Some(Era::Modern));
        assert_eq!(status(&board, "handshake").era, Some(Era::Legacy));
        board.shutdown().await;
        assert!(memory.exists());
    }
}
