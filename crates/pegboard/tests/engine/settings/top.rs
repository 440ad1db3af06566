//! Settings at the top of a file, which hold for the whole board.

use pegboard::{Config, Env, Format, Pegboard};
use pegboard_testkit::{Answer, FakeServer, Tool};
use serde_json::json;

use crate::{settings::fixtures::*, support::*};

/// Two servers, `a` and `b`, that never answer.
#[tokio::test(start_paused = true)]
async fn so_many_servers_are_started_at_once() {
    for (most, expected) in [(1, 1), (2, 2)] {
        let text = format!("max_starts = {most}\n[servers.a]\ncommand = 'x'\n[servers.b]\ncommand = 'x'\n");
        let mut config = load(&text);
        let servers = std::mem::take(&mut config.servers);
        let (_unused, handle) = silent().connect();
        let before = handle.starts();
        let mut builder = Pegboard::builder(config);
        for (server, settings) in servers {
            builder = builder.in_process_with(server, dialer(&handle), settings);
        }
        let _board = builder.open();
        tokio::time::sleep(secs(10)).await;
        assert_eq!(handle.starts() - before, expected, "max_starts = {most}");
    }
}

/// A config with three processes and these settings at the top.
fn processes(top: &str) -> Config {
    let mut config = json!({});
    for server in ["a", "b", "c"] {
        // Servers with the same command would share a process.
        let (program, args) = FakeServer::new(server).tool(Tool::new("hello")).command();
        config["servers"][server] = json!({"command": program, "args": args, "restart": false});
    }
    let (setting, most) = top.split_once(" = ").unwrap();
    config[setting] = most.parse::<u64>().unwrap().into();
    let loaded = Config::from_text(&config.to_string(), Format::Json, &Env::new(|_| None));
    assert_eq!(loaded.problems, [], "{top}");
    loaded.config
}

#[tokio::test]
async fn a_board_has_at_most_so_many_servers_and_processes() {
    for (top, expected) in [
        ("max_servers = 2", 2),
        ("max_servers = 3", 3),
        ("max_processes = 3", 3),
        ("max_processes = 1", 1),
    ] {
        let board = Pegboard::open(processes(top));
        let tools = board.toolset();
        let mut answered = 0;
        for server in ["a", "b", "c"] {
            let reply = call(&tools, &format!("{server}.hello"), json!({})).await;
            answered += usize::from(!reply.is_error());
        }
        assert_eq!(answered, expected, "{top}");
        board.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn tools_are_named_in_the_style_of_the_config() {
    for (naming, expected) in [
        ("dunder", "fx__hello"),
        ("dot", "fx.hello"),
        ("bare", "hello"),
        ("{tool}_of_{server}", "hello_of_fx"),
    ] {
        let stage = Stage::of_file(&format!("naming = '{naming}'"), "", &good());
        let listing = stage.tools.list(PATIENCE).await;
        let names: Vec<&str> = listing.tools.iter().map(|listed| listed.name.as_str()).collect();
        assert!(names.contains(&expected), "naming = {naming}: {names:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_server_starts_from_the_preset() {
    for (preset, starts) in [("pegboard", 1), ("minion", 0)] {
        let stage = Stage::of_file(&format!("preset = '{preset}'"), "", &good());
        tokio::time::sleep(secs(5)).await;
        assert_eq!(stage.starts(), starts, "preset = {preset}");
    }
}

/// A connection takes at most a quarter of the budget.
#[tokio::test(start_paused = true)]
async fn a_message_larger_than_its_part_of_the_buffer_budget_fails() {
    let fake = FakeServer::new("fx").tool(Tool::new("big").answers(Answer::Bytes(1 << 20)));
    for (top, is_error) in [("max_buffered = '2MiB'", true), ("max_buffered = '64MiB'", false)] {
        let reply = Stage::of_file(top, "", &fake).call("big").await;
        assert_eq!(reply.is_error(), is_error, "{top}: {}", reply.text());
    }
}
