//! The tools of Pegboard itself in a view.

use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::client::{Client, ERAS, PATIENCE, board, told};

const CONFIG: &str = r#"
    [servers.git]
    command = "in-memory"
    [views.tight]
    budget = 1
"#;

fn git(tools: &[&str]) -> [(&'static str, FakeServer); 1] {
    let tools = tools.iter().map(|name| Tool::new(*name).answers_text("ran"));
    [("git", FakeServer::new("git").tools(tools))]
}

#[tokio::test(start_paused = true)]
async fn a_model_reads_that_the_tool_it_named_does_not_exist() {
    let board = board(CONFIG, &git(&["log", "show"]));
    board.settle(PATIENCE).await;
    for era in ERAS {
        let mut client = Client::of_view(&board, "tight", era).await;
        for through in ["describe_tool", "call_tool", "pegboard__call_tool"] {
            let refused = client.call(through, json!({"name": "git__shoow"})).await;
            let text = told(&refused);
            assert!(text.starts_with("there is no tool `git__shoow`."), "{through}: {text}");
            assert_eq!(refused["result"]["_meta"]["pegboard/kind"], "unknown_tool");
        }
        // A tool that the client calls itself is the client's mistake.
        assert_eq!(client.call("git__shoow", json!({})).await["error"]["code"], -32602);
        let ran = client.call("call_tool", json!({"name": "git__show"})).await;
        assert_eq!(ran["result"]["content"][0]["text"], "ran");
    }
}
