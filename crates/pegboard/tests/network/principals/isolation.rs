//! Single rules of isolation between principals, with real servers.

use std::time::Duration;

use pegboard::{Answer, NativeTool, NativeTools, Pegboard, ServerConfig, ToolCall, Toolset, View, config::Transport};
use pegboard_testkit::{Era, Fault, NetHandle, When};
use serde_json::json;

use crate::{principals::fixtures::*, support::*};

#[tokio::test]
async fn of_tokens_that_allow_the_same_the_newest_is_sent() {
    let server = fake(Era::Legacy).serve_http().await.unwrap();
    let board = board_of(at(&server.url()));
    let first = board.toolset_with(of("alice"));
    call(&first, "fx.act", json!({})).await;
    let second = board.toolset_with(of("alice"));
    call(&first, "fx.act", json!({})).await;
    call(&second, "fx.act", json!({})).await;
    let requests = server.requests();
    let calls: Vec<_> = requests
        .iter()
        .filter(|request| request.method == "tools/call")
        .collect();
    let tokens: Vec<_> = calls.iter().map(|call| call.header("authorization").unwrap()).collect();
    assert_ne!(tokens[0], tokens[1]);
    assert_eq!(tokens[1], tokens[2]);
    let sessions: Vec<_> = calls
        .iter()
        .map(|call| call.header("mcp-session-id").unwrap())
        .collect();
    assert_eq!(sessions[0], sessions[2], "the session of the principal goes on");
    board.shutdown().await;
}

/// The wires on which a credential is sent, and a server at each.
async fn wires() -> [(ServerConfig, NetHandle); 3] {
    let http = fake(Era::Legacy).serve_http().await.unwrap();
    let sse = fake(Era::Legacy).serve_sse().await.unwrap();
    let ws = fake(Era::Modern).serve_ws().await.unwrap();
    let websocket = ServerConfig::new(Transport::websocket(endpoint(&ws.url())));
    [(at(&http.url()), http), (at(&sse.url()), sse), (websocket, ws)]
}

#[tokio::test]
async fn a_call_uses_the_credentials_of_its_own_view() {
    for (settings, server) in wires().await {
        let board = board_of(settings);
        let owner = async |tools: &Toolset| told(&call(tools, "fx.act", json!({})).await)["owner"].clone();
        let read = board.toolset_with(with(Token::of("alice:read").unnamed()));
        let write = board.toolset_with(with(Token::of("alice:write").unnamed()));
        let admin = board.toolset_with(of("alice:admin"));
        let bare = board.toolset_with(View::new().principal("alice"));
        for _ in 0..2 {
            assert_eq!(owner(&write).await, "alice:write");
            assert_eq!(owner(&admin).await, "alice:admin");
            assert_eq!(owner(&read).await, "alice:read");
            assert_eq!(owner(&bare).await, "");
        }
        // Nothing is lent by views that are gone either, to those that are open nor to later ones.
        drop((write, admin));
        assert_eq!(owner(&read).await, "alice:read");
        assert_eq!(owner(&bare).await, "");
        drop((read, bare));
        assert_eq!(owner(&board.toolset_with(View::new().principal("alice"))).await, "");
        assert_eq!(owner(&board.toolset_with(of("alice:read"))).await, "alice:read");
        board.shutdown().await;
        drop(server);
    }
}

#[tokio::test]
async fn a_process_with_the_credentials_of_a_view_is_not_lent_to_others_of_its_principal() {
    let board = board_of(process(&fake(Era::Legacy)));
    let views = [
        ("alice:write", with(Token::for_processes("alice:write").unnamed())),
        ("alice:read", with(Token::for_processes("alice:read"))),
        ("", View::new().principal("alice")),
        ("", of("alice:read-remote")),
    ];
    let views = views.map(|(owner, view)| (owner, board.toolset_with(view)));
    for (owner, tools) in &views {
        assert_eq!(told(&call(tools, "fx.act", json!({})).await)["owner"], *owner);
    }
    board.shutdown().await;
}

#[tokio::test]
async fn results_keys_and_outputs_are_not_lent_to_views_with_other_credentials() {
    let server = fake(Era::Legacy).serve_http().await.unwrap();
    let board = board_of(caching(at(&server.url())));
    let views = [
        ("alice:write", of("alice:write")),
        ("alice:read", with(Token::of("alice:read").unnamed())),
        ("", View::new().principal("alice")),
    ];
    let views = views.map(|(owner, view)| (owner, board.toolset_with(view)));
    let mut handles = Vec::new();
    for (owner, tools) in &views {
        let cached = call(tools, "fx.whoami", json!({})).await;
        assert_eq!((cached.cached, told(&cached)["owner"].as_str()), (false, Some(*owner)));
        let keyed = tools.call(ToolCall::new("fx.act").key("key-1")).await;
        assert_eq!(told(&keyed)["owner"], *owner);
        handles.push(call(tools, "fx.act", json!({"pad": 20_000})).await.handle.unwrap());
    }
    for (number, (_, tools)) in views.iter().enumerate() {
        for (owner, handle) in handles.iter().enumerate() {
            let read = call(tools, "read_output", json!({"handle": handle, "grep": "line 19999"})).await;
            assert_eq!(read.text().contains("line 19999"), owner == number, "{}", read.text());
        }
    }
    board.shutdown().await;
}

#[tokio::test]
async fn no_principal_gets_the_token_or_the_session_of_the_board_or_of_another() {
    let server = fake(Era::Legacy).serve_http().await.unwrap();
    let board = board_of(at(&server.url()));
    let (alice, bob, anonymous) = (
        board.toolset_with(of("alice")),
        board.toolset_with(of("bob")),
        board.toolset(),
    );
    // Without credentials of its own, a principal still has a session of its own.
    let carol = board.toolset_with(View::new().principal("carol"));
    let mut sessions = Vec::new();
    for (tools, owner) in [(&alice, "alice"), (&bob, "bob"), (&anonymous, ""), (&carol, "")] {
        let told = told(&call(tools, "fx.act", json!({})).await);
        assert_eq!(told["owner"], owner);
        sessions.push(told["session"].as_str().unwrap().to_owned());
    }
    sessions.sort();
    sessions.dedup();
    assert_eq!(sessions.len(), 4);
    board.shutdown().await;
}

#[tokio::test]
async fn caches_keys_and_outputs_stay_within_a_view() {
    let server = fake(Era::Legacy).serve_http().await.unwrap();
    let board = board_of(caching(at(&server.url())));
    let views = ["alice", "bob"].map(|owner| (owner, board.toolset_with(of(owner))));
    let mut handles = Vec::new();
    for round in 0..2 {
        for (owner, tools) in &views {
            let cached = call(tools, "fx.whoami", json!({})).await;
            assert_eq!(
                (cached.cached, told(&cached)["owner"].as_str()),
                (round == 1, Some(*owner))
            );
            let keyed = tools.call(ToolCall::new("fx.act").id("call-1").key("key-1")).await;
            assert_eq!(told(&keyed)["owner"], *owner);
            let long = call(tools, "fx.act", json!({"pad": 20_000})).await;
            handles.push((*owner, long.handle.clone().unwrap()));
        }
    }
    for (reader, tools) in &views {
        for (owner, handle) in &handles {
            let read = call(tools, "read_output", json!({"handle": handle, "grep": "line 19999"})).await;
            assert_eq!(
                read.text().contains(&format!("{owner} line 19999")),
                reader == owner,
                "{}",
                read.text()
            );
        }
    }
    let calls = server.requests();
    let keyed = calls
        .iter()
        .filter(|call| call.method == "tools/call" && call.params["arguments"].get("pad").is_none());
    assert_eq!(keyed.count(), 4, "one `whoami` and one `act` for each");
    board.shutdown().await;
}

#[tokio::test]
async fn a_toolset_per_request_goes_on_with_the_cache_keys_and_outputs_of_its_principal() {
    let server = fake(Era::Legacy).serve_http().await.unwrap();
    let board = board_of(caching(at(&server.url())));
    let first = board.toolset_with(of("alice"));
    let whoami = call(&first, "fx.whoami", json!({})).await;
    let keyed = first.call(ToolCall::new("fx.act").key("key-1")).await;
    let handle = call(&first, "fx.act", json!({"pad": 20_000})).await.handle.unwrap();
    first.close().await;
    let calls = server.count("tools/call");

    let second = board.toolset_with(of("alice"));
    let cached = call(&second, "fx.whoami", json!({})).await;
    assert!(cached.cached);
    assert_eq!(told(&cached), told(&whoami));
    let again = second.call(ToolCall::new("fx.act").key("key-1")).await;
    assert_eq!(told(&again), told(&keyed));
    let read = call(&second, "read_output", json!({"handle": handle, "grep": "line 19999"})).await;
    assert!(read.text().contains("alice line 19999"), "{}", read.text());
    assert_eq!(server.count("tools/call"), calls, "nothing was carried out twice");
    board.shutdown().await;
}

/// A tool of one request may do something else than that of another.
#[tokio::test]
async fn a_key_for_a_tool_of_the_view_itself_holds_for_that_view_only() {
    let board = Pegboard::open(pegboard::Config::default());
    for answer in ["first", "second"] {
        let tool = NativeTool::new(
            "basket",
            "Shows the basket.",
            json!({"type": "object"}),
            move |_| async move { Ok(Answer::from_text(answer)) },
        );
        let tools = board.toolset_with(View::new().principal("alice").tools(NativeTools::new([tool])));
        for _ in 0..2 {
            assert_eq!(tools.call(ToolCall::new("basket").key("key-1")).await.text(), answer);
        }
    }
    board.shutdown().await;
}

#[tokio::test]
async fn the_catalog_store_neither_has_nor_gets_the_catalog_of_a_principal() {
    let folder = tempfile::tempdir().unwrap();
    let server = fake(Era::Legacy).serve_http().await.unwrap();
    let mut settings = at(&server.url());
    settings.start = pegboard::config::Start::Lazy;
    let board = Pegboard::builder(config(settings)).catalog_store(folder.path()).open();
    let files = || std::fs::read_dir(folder.path()).map_or(0, |files| files.count());
    assert_eq!(board.toolset_with(of("alice")).list(PATIENCE).await.tools.len(), 2);
    assert_eq!(files(), 0, "alice's catalog is not kept");
    assert_eq!(board.toolset().list(PATIENCE).await.tools.len(), 2);
    assert!(files() > 0, "the board's is");
    let before = server.count("tools/list");
    assert_eq!(board.toolset_with(of("bob")).list(PATIENCE).await.tools.len(), 2);
    assert_eq!(server.count("tools/list"), before + 1, "bob's is listed anew");
    board.shutdown().await;
}

#[tokio::test]
async fn what_was_seen_without_a_principal_or_for_another_is_not_listed_for_a_principal() {
    let folder = tempfile::tempdir().unwrap();
    let server = fake(Era::Legacy).serve_http().await.unwrap();
    let board = || {
        Pegboard::builder(config(at(&server.url())))
            .catalog_store(folder.path())
            .open()
    };
    let first = board();
    assert_eq!(first.toolset().list(PATIENCE).await.tools.len(), 2);
    let alice = first.toolset_with(of("alice").list_known());
    assert_eq!(alice.list(PATIENCE).await.tools.len(), 2);
    let hanging = fake(Era::Legacy).fault_on(When::method("initialize"), Fault::NeverAnswers);
    server.change(|script| *script = hanging.script().clone());
    let bob = first.toolset_with(of("bob").list_known());
    assert_eq!(bob.list(Duration::from_millis(200)).await.tools.len(), 0);
    drop((alice, bob));
    first.shutdown().await;

    let second = board();
    let list = async |view: View| {
        let tools = second.toolset_with(view.list_known());
        tools.list(Duration::from_millis(200)).await.tools.len()
    };
    assert_eq!(list(View::new()).await, 2);
    assert_eq!(list(of("alice")).await, 0);
    assert_eq!(list(View::new().principal("alice")).await, 0);
    second.shutdown().await;
}

#[tokio::test]
async fn a_process_per_principal_gets_its_credentials_and_ends_with_the_board() {
    let board = board_of(process(&fake(Era::Legacy)));
    let mut pids = Vec::new();
    for owner in ["alice", "bob"] {
        let view = View::new().principal(owner).credentials(Token::for_processes(owner));
        let told = told(&call(&board.toolset_with(view), "fx.act", json!({})).await);
        assert_eq!(told["owner"], owner);
        pids.push(told["session"].as_str().unwrap().parse::<u32>().unwrap());
    }
    assert_ne!(pids[0], pids[1]);
    let rows = board.status().servers;
    let mut owners: Vec<_> = rows
        .iter()
        .filter_map(|row| Some((row.principal.as_ref()?.as_str(), row.pid?)))
        .collect();
    owners.sort_unstable();
    assert_eq!(owners, [("alice", pids[0]), ("bob", pids[1])]);
    board.shutdown().await;
    assert!(!pids.iter().any(|pid| pegboard_testkit::is_alive(*pid)));
}
