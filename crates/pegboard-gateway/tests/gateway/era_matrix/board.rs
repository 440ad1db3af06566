//! The whole board and its views as one server: names lead back to the servers that they belong to.

use serde_json::{Value, json};

use crate::era_matrix::{
    client::{Client, Era},
    fixture::{serve, server},
};

/// Two servers with the same tools, resources and prompts, of different eras.
async fn two_servers() -> (Servers, String) {
    let (a, b) = (
        server(Era::Legacy).serve_http().await,
        server(Era::Modern).serve_http().await,
    );
    let (a, b) = (a.expect("a server"), b.expect("a server"));
    let config = format!(
        "[servers.a]\nurl = \"{}\"\n[servers.b]\nurl = \"{}\"\n\
         [views.small]\ndescription = \"A small view.\"\nservers = [\"a\"]\ntools = [\"echo\"]\n\
         [views.tight]\nbudget = 1\n",
        a.url(),
        b.url()
    );
    let (board, address, serving) = serve(&config, |gateway| gateway).await;
    board.settle(crate::era_matrix::http::PATIENCE).await;
    (
        Servers {
            _both: [a, b],
            board,
            serving,
        },
        address,
    )
}

struct Servers {
    _both: [pegboard_testkit::NetHandle; 2],
    board: pegboard::Pegboard,
    serving: tokio::task::AbortHandle,
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

fn texts<'a>(list: &'a Value, key: &str, field: &str) -> Vec<&'a str> {
    let items = list[key].as_array().expect("a list").iter();
    items.map(|item| item[field].as_str().expect("a text")).collect()
}

#[tokio::test]
async fn the_board_shows_all_servers_as_one() {
    let (servers, address) = two_servers().await;
    for era in [Era::Legacy, Era::Modern] {
        let mut client = Client::connect(&address, "/mcp", era, json!({})).await;

        let tools = client.ask("tools/list", json!({})).await;
        let names = texts(tools.result(), "tools", "name");
        assert!(names.contains(&"a__echo") && names.contains(&"b__echo"), "{names:?}");
        for name in ["a__echo", "b__echo"] {
            assert!(client.call(name, json!({ "to": name })).await.text().contains(name));
        }

        let resources = client.ask("resources/list", json!({})).await;
        let uris = texts(resources.result(), "resources", "uri");
        assert_eq!(uris, ["pegboard:a/note://1", "pegboard:b/note://1"]);
        for uri in uris {
            let read = client.ask("resources/read", json!({ "uri": uri })).await;
            let contents = &read.result()["contents"][0];
            assert_eq!((&contents["uri"], &contents["text"]), (&json!(uri), &json!("first")));
        }
        let missing = client.ask("resources/read", json!({"uri": "other://1"})).await;
        let code = if era == Era::Modern { -32602 } else { -32002 };
        assert_eq!(missing.error()["code"], code);

        let prompts = client.ask("prompts/list", json!({})).await;
        assert_eq!(texts(prompts.result(), "prompts", "name"), ["a__greet", "b__greet"]);
        let filled = client
            .ask("prompts/get", json!({"name": "b__greet", "arguments": {"who": "Ada"}}))
            .await;
        assert_eq!(filled.result()["messages"][0]["content"]["text"], "Hello Ada.");
        let completion =
            json!({"ref": {"type": "ref/prompt", "name": "a__greet"}, "argument": {"name": "who", "value": "A"}});
        let completed = client.ask("completion/complete", completion).await;
        assert_eq!(completed.result()["completion"]["values"], json!(["Ada", "Alan"]));
    }
    servers.board.shutdown().await;
}

#[tokio::test]
async fn a_view_shows_and_calls_only_what_it_allows() {
    let (servers, address) = two_servers().await;
    for era in [Era::Legacy, Era::Modern] {
        let mut client = Client::connect(&address, "/mcp/view/small", era, json!({})).await;
        let tools = client.ask("tools/list", json!({})).await;
        assert_eq!(texts(tools.result(), "tools", "name"), ["a__echo"]);
        assert!(client.call("a__echo", json!({"x": 1})).await.text().contains('1'));
        for hidden in ["b__echo", "a__elicit"] {
            let refused = client.call(hidden, json!({})).await;
            let is_refused = refused.response.get("error").is_some() || refused.result()["isError"] == true;
            assert!(is_refused, "{hidden}: {}", refused.response);
        }
    }
    let described = Client::connect(&address, "/mcp/view/small", Era::Modern, json!({}))
        .await
        .ask("server/discover", json!({}))
        .await;
    let instructions = described.result()["instructions"].as_str().expect("instructions");
    assert!(instructions.starts_with("A small view."), "{instructions}");
    servers.board.shutdown().await;
}

#[tokio::test]
async fn a_view_with_a_budget_finds_describes_and_calls_tools() {
    let (servers, address) = two_servers().await;
    for era in [Era::Legacy, Era::Modern] {
        let mut client = Client::connect(&address, "/mcp/view/tight", era, json!({})).await;
        let tools = client.ask("tools/list", json!({})).await;
        assert_eq!(
            texts(tools.result(), "tools", "name"),
            ["find_tools", "describe_tool", "call_tool"]
        );
        let found = client.call("find_tools", json!({"query": "echo"})).await;
        assert!(found.text().contains("a__echo"), "{}", found.text());
        let called = client
            .call("call_tool", json!({"name": "b__echo", "arguments": {"x": "through"}}))
            .await;
        assert!(called.text().contains("through"), "{}", called.text());
    }
    servers.board.shutdown().await;
}
