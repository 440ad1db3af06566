//! The texts of failures name tools as the client was offered them.

use pegboard_testkit::{FakeServer, Fault, Tool, When};
use serde_json::{Value, json};

use crate::in_memory::client::{Client, ERAS, PATIENCE, board};

const CONFIG: &str = r#"
    [servers.git]
    command = "in-memory"
    [servers.git.tools]
    never = { approval = "never" }
    seldom = { rate = "1/h" }
    [views.default]
    [views.mcp]
    naming = "mcp_dunder"
    [views.bare]
    naming = "bare"
    [views.short]
    result = { max_bytes = 600, mode = "error" }
"#;

fn git() -> [(&'static str, FakeServer); 1] {
    let add = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let git = FakeServer::new("git")
        .tools(["never", "seldom", "dies", "show"].map(|name| Tool::new(name).answers_text("ran")))
        .tool(Tool::new("add").schema(add).answers_text("ran"))
        .tool(Tool::new("long").answers_text("x".repeat(1000)))
        .fault_on(When::tool("dies"), Fault::DiesAfterExecuting { code: 1 });
    [("git", git)]
}

/// The text that a response has for a model or a client.
fn text(response: &Value) -> String {
    let of_error = response["error"]["message"].as_str();
    let of_result = response["result"]["content"][0]["text"].as_str();
    of_error.or(of_result).expect("a text").to_owned()
}

fn has_dotted_name(text: &str) -> bool {
    let tools = ["add", "dies", "long", "never", "seldom", "show"];
    tools.iter().any(|tool| text.contains(&format!("git.{tool}")))
}

#[tokio::test(start_paused = true)]
async fn a_failure_names_the_tool_as_it_is_listed() {
    for era in ERAS {
        for (view, prefix) in [("default", "git__"), ("mcp", "mcp__git__"), ("bare", "")] {
            let board = board(CONFIG, &git());
            board.settle(PATIENCE).await;
            let mut client = Client::of_view(&board, view, era).await;
            let named = |tool: &str| format!("{prefix}{tool}");
            assert!(client.tools().await.contains(&named("show")));

            let cases = [
                ("add", json!({}), "was not called"),
                ("never", json!({}), "calls of `"),
                ("dies", json!({}), "the call to "),
            ];
            for (tool, arguments, part) in cases {
                let told = text(&client.call(&named(tool), arguments).await);
                assert!(told.contains(part), "{told}");
                assert!(told.contains(&named(tool)) && !has_dotted_name(&told), "{told}");
            }
            client.call(&named("seldom"), json!({})).await;
            let told = text(&client.call(&named("seldom"), json!({})).await);
            assert!(told.contains(&format!("of `{}` is reached", named("seldom"))), "{told}");

            let told = text(&client.call("git__shoow", json!({})).await);
            assert!(
                told.contains(&format!("The closest names are `{}`.", named("show"))),
                "{told}"
            );
            assert!(told.contains(&format!("{}, {}", named("add"), named("dies"))), "{told}");
            assert!(!has_dotted_name(&told), "{told}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_too_long_names_the_tool_as_it_is_listed() {
    let board = board(CONFIG, &git());
    let mut client = Client::of_view(&board, "short", ERAS[0]).await;
    let told = text(&client.call("git__long", json!({})).await);
    assert!(told.starts_with("the result of git__long is too long"), "{told}");
}
