//! The tools of Pegboard itself in a view.

use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

use crate::in_memory::client::{Client, ERAS, PATIENCE, board, told};

const CONFIG: &str = r#"
    [servers.git]
    command = "in-memory"
    [views.tight]
    budget = 1
    [views.long]
    naming = "bare"
    result = { mode = "spill", max_bytes = "1KiB" }
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

#[tokio::test(start_paused = true)]
async fn tools_of_ours_have_their_plain_names_unless_a_server_has_such_a_tool() {
    let own = board(CONFIG, &git(&["log"]));
    own.settle(PATIENCE).await;
    let taken = board(CONFIG, &git(&["log", "call_tool", "read_output"]));
    taken.settle(PATIENCE).await;
    for era in ERAS {
        let mut client = Client::of_view(&own, "tight", era).await;
        let names = client.tools().await;
        assert_eq!(names, ["find_tools", "describe_tool", "call_tool"]);

        let mut client = Client::of_view(&taken, "tight", era).await;
        let names = client.tools().await;
        assert_eq!(names, ["find_tools", "describe_tool", "pegboard__call_tool"]);

        let mut client = Client::of_view(&taken, "long", era).await;
        let names = client.tools().await;
        assert_eq!(names, ["call_tool", "log", "read_output", "pegboard__read_output"]);
        let of_server = client.call("read_output", json!({})).await;
        assert_eq!(of_server["result"]["content"][0]["text"], "ran");
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_result_says_how_it_is_read_by_the_name_that_is_listed() {
    let long = Tool::new("long").answers_text("line\n".repeat(1000));
    let board = board(CONFIG, &[("git", FakeServer::new("git").tool(long))]);
    for era in ERAS {
        let mut client = Client::of_view(&board, "long", era).await;
        let result = client.call("long", json!({})).await;
        let text = result["result"]["content"][0]["text"].as_str().expect("a text");
        assert!(text.contains("read parts with read_output ("), "{text}");
        let handle = text.split_whitespace().find(|word| word.starts_with("out_"));
        let handle = handle.expect("a handle").trim_end_matches(':');
        let read = client
            .call("read_output", json!({ "handle": handle, "range": "1-2" }))
            .await;
        assert_eq!(read["result"]["isError"], json!(null), "{read}");
    }
}
