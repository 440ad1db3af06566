//! A tool that is not offered is answered like one that does not exist.

use pegboard_gateway::BoardPart;
use pegboard_testkit::{FakeServer, Fault, Tool};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::in_memory::client::{Client, ERAS, PATIENCE, board};

const CONFIG: &str = r#"
    [servers.git]
    command = "in-memory"
    deny = ["*disk*"]
    [servers.k8s]
    command = "in-memory"
    [views.small]
    servers = ["git"]
    tools = ["log", "show"]
    [views.tight]
    servers = ["git"]
    tools = ["log", "show"]
    budget = 1
    [views.slow]
    servers = ["git", "slow"]
    tools = ["log", "show"]
    [servers.slow]
    command = "in-memory"
"#;

/// Names of hidden tools: by the view, by the config, by the view's list of servers. Beside each stands a name of the same form that no tool has.
const HIDDEN: [(&str, &str); 8] = [
    ("git__push_now", "git__qxz_qxz"),
    ("git.push_now", "git.qxz_qxz"),
    ("push_now", "qxz_qxz"),
    ("git__Push-Now", "git__Qxz-Qxz"),
    ("git__wipe_disk", "git__qxzq_qxz"),
    ("wipe_disk", "qxzq_qxz"),
    ("k8s__get_pods", "k8s__qxz_qxzz"),
    ("get_pods", "qxz_qxzz"),
];

fn servers() -> [(&'static str, FakeServer); 3] {
    let tools =
        |names: &[&str]| -> Vec<Tool> { names.iter().map(|name| Tool::new(*name).answers_text("ran")).collect() };
    [
        (
            "git",
            FakeServer::new("git").tools(tools(&["log", "show", "push_now", "wipe_disk"])),
        ),
        ("k8s", FakeServer::new("k8s").tools(tools(&["get_pods"]))),
        ("slow", FakeServer::new("slow").fault(Fault::SilentHandshake)),
    ]
}

/// A response without the name that it repeats, and without its id.
fn without(mut response: Value, name: &str) -> Value {
    response["id"] = 0.into();
    serde_json::from_str(&response.to_string().replace(name, "NAME")).expect("JSON")
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_tool_that_is_not_offered_is_one_of_an_unknown_tool() {
    let board = board(CONFIG, &servers());
    board.settle(PATIENCE).await;
    for era in ERAS {
        for view in ["small", "tight"] {
            let mut client = Client::of_view(&board, view, era).await;
            for (hidden, unknown) in HIDDEN {
                let refused = client.call(hidden, json!({})).await;
                assert_eq!(refused["error"]["code"], -32602, "{refused}");
                let expected = client.call(unknown, json!({})).await;
                assert_eq!(
                    without(refused, hidden),
                    without(expected, unknown),
                    "{hidden} in {view}, {era:?}"
                );
            }
        }
        let mut whole = Client::connect(&board, BoardPart::Whole, era).await;
        let refused = whole.call("wipe_disk", json!({})).await;
        let expected = whole.call("qxzq_qxz", json!({})).await;
        assert_eq!(without(refused, "wipe_disk"), without(expected, "qxzq_qxz"));
    }
}

#[tokio::test(start_paused = true)]
async fn the_tools_of_a_budget_do_not_tell_hidden_tools_from_unknown_ones() {
    let board = board(CONFIG, &servers());
    board.settle(PATIENCE).await;
    for era in ERAS {
        let mut client = Client::of_view(&board, "tight", era).await;
        for through in ["describe_tool", "call_tool"] {
            for (hidden, unknown) in HIDDEN {
                let refused = client.call(through, json!({ "name": hidden })).await;
                let expected = client.call(through, json!({ "name": unknown })).await;
                assert_eq!(
                    without(refused, hidden),
                    without(expected, unknown),
                    "{hidden}, {era:?}"
                );
            }
        }
        let found = client
            .call("find_tools", json!({"query": "push now wipe disk get pods"}))
            .await;
        let text = found["result"]["content"][0]["text"].as_str().expect("a text");
        assert!(
            !["push", "wipe", "pods"].iter().any(|hidden| text.contains(hidden)),
            "{text}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn suggestions_name_only_tools_that_are_offered() {
    let board = board(CONFIG, &servers());
    board.settle(PATIENCE).await;
    for view in ["small", "tight"] {
        let mut client = Client::of_view(&board, view, ERAS[0]).await;
        for near in [
            "git__push_noww",
            "push_noww",
            "git__wipe_dis",
            "k8s__get_pod",
            "get_podz",
            "shoow",
        ] {
            let refused = client.call(near, json!({})).await.to_string();
            let told = refused.replace(near, "NAME");
            assert!(
                !["push", "wipe", "pod", "k8s"]
                    .iter()
                    .any(|hidden| told.contains(hidden)),
                "{told}"
            );
        }
        let refused = client.call("shoow", json!({})).await.to_string();
        assert!(refused.contains("show"), "{refused}");
    }
}

/// A name alone waits for a server of the view that is still starting, because it might have the tool. A name with its server waits for no other.
#[tokio::test(start_paused = true)]
async fn the_time_of_the_answer_does_not_tell_that_a_tool_is_hidden() {
    let mut times = Vec::new();
    for name in ["push_now", "qxz_qxz", "git__wipe_disk", "git__qxz_qxzz"] {
        let board = board(CONFIG, &servers());
        let listed = board.toolset_with(pegboard::View::new().servers(["git"]));
        assert_eq!(listed.list(PATIENCE).await.tools.len(), 3);
        let mut client = Client::of_view(&board, "slow", ERAS[1]).await;
        let asked = Instant::now();
        let refused = client.call(name, json!({})).await;
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        times.push(asked.elapsed());
    }
    let [hidden, unknown, hidden_of_server, unknown_of_server] = times[..] else {
        unreachable!("four names")
    };
    assert!(hidden.as_secs() > 1 && hidden == unknown, "{times:?}");
    assert!(
        hidden_of_server.is_zero() && hidden_of_server == unknown_of_server,
        "{times:?}"
    );
}
