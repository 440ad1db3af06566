//! Two people with views of their own share a server, on every wire and in both eras.

use pegboard::{Config, Pegboard, ServerConfig, config::Transport};
use pegboard_testkit::{Ask, Era, FakeServer, MemoryHandle, Tool};
use serde_json::Value;

use crate::{
    hosts::fixtures::{Person, ask, until},
    support::*,
};

/// A server whose tool `ask` asks for a colour, and returns the answer.
pub(crate) fn asking(era: Era) -> FakeServer {
    let tool = Tool::new("ask")
        .answers_text("done")
        .asks(Ask::Elicitation)
        .needs_input(1);
    FakeServer::new("fx").era(era).tool(tool)
}

fn board_of(server: ServerConfig, host: &Person) -> Pegboard {
    let mut config = Config::default();
    config.servers.insert(name("fx"), server);
    Pegboard::builder(config).host(host.clone()).open()
}

pub(crate) fn in_memory_of(fake: &FakeServer, settings: ServerConfig, host: &Person) -> (Pegboard, MemoryHandle) {
    let (_unused, handle) = fake.connect();
    let builder = Pegboard::builder(Config::default()).host(host.clone());
    let board = builder.in_process_with(name("fx"), dialer(&handle), settings).open();
    (board, handle)
}

/// Whether the connection or the protocol says which call a question belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Named {
    Yes,
    No,
}

/// Alice is asked and takes her time. Meanwhile a question for Bob reaches Bob, or no one at all; never Alice, never the board's host.
async fn each_is_asked_for_their_own_calls(board: Pegboard, operator: &Person, named: Named, wire: &str) {
    let (alice, bob) = (Person::slow("alice"), Person::new("bob"));
    let (alices, bobs) = (board.toolset_with(alice.view()), board.toolset_with(bob.view()));
    let hers = tokio::spawn({
        let alices = alices.clone();
        async move { ask(&alices, "a1").await }
    });
    until(wire, || alice.open() == 1).await;
    assert_eq!(alice.asked(), ["fx: a1 alices alice a1"], "{wire}");

    let his = ask(&bobs, "b1").await;
    match named {
        Named::Yes => {
            assert_eq!(bob.asked(), ["fx: b1 bobs bob b1"], "{wire}: {}", his.text());
            assert!(!his.is_error(), "{wire}: {}", his.text());
        }
        Named::No => {
            assert_eq!(bob.asked(), Vec::<String>::new(), "{wire}");
            assert_contains(&his.text(), &["-32603", "so no client was asked"]);
        }
    }
    assert_eq!(alice.asked().len(), 1, "{wire}");

    alice.answer();
    let hers = hers.await.unwrap();
    assert!(!hers.is_error(), "{wire}: {}", hers.text());
    if named == Named::No {
        assert_contains(&hers.text(), &["alice"]);
    }
    // Alone, his call can be told by itself.
    let before = bob.asked().len();
    let his = ask(&bobs, "b2").await;
    assert!(!his.is_error(), "{wire}: {}", his.text());
    assert_eq!(bob.asked()[before..], ["fx: b2 bobs bob b2"], "{wire}");
    assert_eq!(operator.asked(), Vec::<String>::new(), "{wire}");
    board.shutdown().await;
}

async fn check(server: ServerConfig, named: Named, wire: &str) {
    let operator = Person::new("operator");
    let board = board_of(server, &operator);
    each_is_asked_for_their_own_calls(board, &operator, named, wire).await;
}

#[tokio::test]
async fn people_who_share_a_server_are_asked_for_their_own_calls_only() {
    for (era, pipes) in [(Era::Legacy, Named::No), (Era::Modern, Named::Yes)] {
        let fake = asking(era);
        let operator = Person::new("operator");
        let (board, _handle) = in_memory_of(&fake, in_process_settings(), &operator);
        each_is_asked_for_their_own_calls(board, &operator, pipes, &format!("in memory, {era:?}")).await;
        check(process(&fake), pipes, &format!("stdio, {era:?}")).await;
        // Principals do not share connections to remote servers, so a question on one belongs to its principal.
        let ws = fake.serve_ws().await.unwrap();
        let transport = Transport::websocket(endpoint(&ws.url()));
        check(ServerConfig::new(transport), Named::Yes, &format!("websocket, {era:?}")).await;
        let http = asking(era).streams().serve_http().await.unwrap();
        let transport = Transport::http(endpoint(&http.url()));
        check(ServerConfig::new(transport), Named::Yes, &format!("http, {era:?}")).await;
    }
    let sse = asking(Era::Legacy).serve_sse().await.unwrap();
    let transport = Transport::sse(endpoint(&sse.url()));
    check(ServerConfig::new(transport), Named::Yes, "sse").await;
}

/// Views of one principal that answer through the board's host are told apart as far as possible.
#[tokio::test(start_paused = true)]
async fn a_question_for_one_of_several_calls_of_one_principal_names_the_principal() {
    let operator = Person::slow("operator");
    let (board, _handle) = in_memory_of(&asking(Era::Legacy), in_process_settings(), &operator);
    let view = |name: &str| pegboard::View::new().name(name).principal("alice");
    let views = [board.toolset_with(view("one")), board.toolset_with(view("two"))];
    let first = tokio::spawn({
        let tools = views[0].clone();
        async move { ask(&tools, "1").await }
    });
    until("the first is asked", || operator.open() == 1).await;
    let second = tokio::spawn({
        let tools = views[1].clone();
        async move { ask(&tools, "2").await }
    });
    until("the second is asked", || operator.open() == 2).await;
    assert_eq!(operator.asked(), ["fx: 1 one alice 1", "fx:   alice -"]);
    (0..2).for_each(|_| operator.answer());
    for reply in [first.await.unwrap(), second.await.unwrap()] {
        assert!(!reply.is_error(), "{}", reply.text());
    }
}

/// Without principals and hosts of views, the board's host is asked as it always was.
#[tokio::test(start_paused = true)]
async fn a_board_without_principals_asks_its_host_whatever_is_in_flight() {
    let operator = Person::slow("operator");
    let (board, _handle) = in_memory_of(&asking(Era::Legacy), in_process_settings(), &operator);
    let calls: Vec<_> = (0..3)
        .map(|number| {
            let tools = board.toolset_with(pegboard::View::new().name(format!("v{number}")));
            tokio::spawn(async move { ask(&tools, &number.to_string()).await })
        })
        .collect();
    until("all are asked", || operator.open() == 3).await;
    (0..3).for_each(|_| operator.answer());
    for call in calls {
        assert!(!call.await.unwrap().is_error());
    }
}

/// Dropping a call drops the question that it led to, and the server is told.
#[tokio::test(start_paused = true)]
async fn a_dropped_call_withdraws_its_question() {
    for era in [Era::Legacy, Era::Modern] {
        let alice = Person::slow("alice");
        let (board, handle) = in_memory_of(&asking(era), in_process_settings(), &Person::new("operator"));
        let tools = board.toolset_with(alice.view());
        let call = tokio::spawn({
            let tools = tools.clone();
            async move { ask(&tools, "a1").await }
        });
        until("she is asked", || alice.open() == 1).await;
        call.abort();
        until("the question is withdrawn", || alice.open() == 0).await;
        if era == Era::Legacy {
            handle.wait_for("$response", 1).await;
            let requests = handle.requests();
            let response = requests.iter().find(|message| message.method == "$response").unwrap();
            assert_eq!(response.params["error"]["code"], Value::from(-32800), "{response:?}");
        }
        board.shutdown().await;
    }
}

/// The server may still ask for a cancelled call, so for a while no question on the same connection is certain to be another client's.
#[tokio::test(start_paused = true)]
async fn a_cancelled_question_keeps_others_from_being_asked_for_seconds_only() {
    for fake in [asking(Era::Legacy), asking(Era::Legacy).ignores_cancel()] {
        let (alice, bob) = (Person::slow("alice"), Person::new("bob"));
        let (board, _handle) = in_memory_of(&fake, in_process_settings(), &Person::new("operator"));
        let (alices, bobs) = (board.toolset_with(alice.view()), board.toolset_with(bob.view()));
        let hers = tokio::spawn(async move { ask(&alices, "a1").await });
        until("she is asked", || alice.open() == 1).await;
        hers.abort();
        until("her question is withdrawn", || alice.open() == 0).await;
        let cancelled = tokio::time::Instant::now();
        loop {
            let his = ask(&bobs, "b1").await;
            if !bob.asked().is_empty() {
                break;
            }
            assert_contains(&his.text(), &["so no client was asked"]);
            assert!(cancelled.elapsed() < secs(10), "{}", his.text());
            tokio::time::sleep(secs(1)).await;
        }
        assert_eq!((alice.asked().len(), bob.asked().len()), (1, 1));
        board.shutdown().await;
    }
}

/// A client that leaves its questions open holds up its own at most.
#[tokio::test]
async fn questions_that_one_client_leaves_open_hold_up_no_other() {
    let server = asking(Era::Legacy).streams().serve_http().await.unwrap();
    let settings = ServerConfig::new(Transport::http(endpoint(&server.url())));
    let board = board_of(settings, &Person::new("operator"));
    let (alice, bob) = (Person::slow("alice"), Person::new("bob"));
    let view = |person: &Person| pegboard::View::new().host(person.clone());
    let (alices, bobs) = (board.toolset_with(view(&alice)), board.toolset_with(view(&bob)));
    let hers: Vec<_> = (0..20)
        .map(|number| {
            let alices = alices.clone();
            tokio::spawn(async move { ask(&alices, &format!("a{number}")).await })
        })
        .collect();
    server.wait_for("tools/call", 20).await;
    until("as many as may are asked", || alice.open() == 16).await;
    let his = ask(&bobs, "b1").await;
    assert!(!his.is_error(), "{}", his.text());
    assert_eq!(bob.asked().len(), 1);
    (0..20).for_each(|_| alice.answer());
    for call in hers {
        assert!(!call.await.unwrap().is_error());
    }
    board.shutdown().await;
}

/// A task that needs input asks for the call that started it.
#[tokio::test(start_paused = true)]
async fn a_task_asks_for_the_call_that_started_it() {
    let tool = Tool::new("ask").answers_text("done").needs_input(1).runs_as_task();
    let fake = FakeServer::new("fx").era(Era::Modern).tool(tool);
    let (alice, operator) = (Person::new("alice"), Person::new("operator"));
    let (board, _handle) = in_memory_of(&fake, in_process_settings(), &operator);
    let reply = ask(&board.toolset_with(alice.view()), "a1").await;
    assert!(!reply.is_error(), "{}", reply.text());
    assert_eq!(alice.asked(), ["fx: a1 alices alice a1"]);
    assert_eq!(operator.asked(), Vec::<String>::new());
}
