//! The reference servers with external effects: files in a folder, and a persistent graph.

use serde_json::json;
use tempfile::TempDir;

use crate::{peer::*, support::*, talk::*};

#[tokio::test]
async fn files_are_written_read_and_listed_and_others_are_refused() {
    let folder = TempDir::new().unwrap();
    // The server compares canonical paths; the folder for temporary files may be a symlink.
    let root = folder.path().canonicalize().unwrap();
    let path = |file: &str| root.join(file).display().to_string();
    let board = board(stdio(&filesystem(&root)));
    let tools = board.toolset();
    let names = listed(&tools).await;
    assert!(names.is_sorted() && names.len() == 14, "{names:?}");

    let content = "first\nzweite — „Zeile“\n";
    text(&tools, "write_file", json!({"path": path("a.txt"), "content": content})).await;
    assert_eq!(std::fs::read_to_string(root.join("a.txt")).unwrap(), content);
    let read = answer(&tools, "read_text_file", json!({"path": path("a.txt")})).await;
    assert_eq!(read.text(), content);
    assert_eq!(read.structured.unwrap()["content"], content);
    std::fs::create_dir(root.join("sub")).unwrap();
    let listing = text(&tools, "list_directory", json!({"path": path("")})).await;
    assert_eq!(listing.lines().collect::<Vec<_>>(), ["[FILE] a.txt", "[DIR] sub"]);

    let refused = complaint(&tools, "read_text_file", json!({"path": "/etc/hostname"})).await;
    assert!(refused.contains("outside allowed directories"), "{refused}");
    let missing = complaint(&tools, "read_text_file", json!({"path": path("none")})).await;
    assert!(missing.contains("ENOENT"), "{missing}");
    board.shutdown().await;
}

#[tokio::test]
async fn roots_replace_the_folder_on_the_command_line() {
    let (first, second) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let second = second.path().canonicalize().unwrap();
    let mut config = stdio(&filesystem(first.path()));
    config.roots = vec![format!("file://{}", second.display())];
    let board = board(config);
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    // The server requests the roots after the handshake, so the first answer may come before it knows them.
    let waiting = async {
        while !text(&tools, "list_allowed_directories", json!({}))
            .await
            .contains(second.to_str().unwrap())
        {}
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .expect("the roots are asked for");
    board.shutdown().await;
}

#[tokio::test]
async fn a_graph_is_remembered_between_calls_and_starts() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("memory.jsonl");
    let board = boards([("fx", memory_in(&file))]);
    let tools = board.toolset();
    let names = listed(&tools).await;
    assert!(names.is_sorted() && names.len() == 9, "{names:?}");
    let ada = json!({"name": "Ada", "entityType": "person", "observations": ["writes"]});
    let created = answer(&tools, "create_entities", json!({"entities": [ada]})).await;
    assert_eq!(created.structured, Some(json!({"entities": [ada]})));
    let observed = json!({"observations": [{"entityName": "Ada", "contents": ["calculates"]}]});
    text(&tools, "add_observations", observed).await;
    board.shutdown().await;

    let again = boards([("fx", memory_in(&file))]);
    let graph = answer(&again.toolset(), "read_graph", json!({}))
        .await
        .structured
        .unwrap();
    assert_eq!(graph["entities"][0]["observations"], json!(["writes", "calculates"]));
    again.shutdown().await;
}
