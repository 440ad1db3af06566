//! Notifications from servers: resource updates and log messages, in both eras and across restarts.

use pegboard::{
    Config, Kind, Pegboard, ServerConfig, State, View,
    config::{Command, Scope, Start, Transport},
    host::{NoHost, Root},
    status::Era,
    watch::{LogLevel, ServerEvent},
};
use pegboard_testkit::{Ask, FakeServer, Fault, Tool, When};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{session::scripted::*, support::*};

const SUBSCRIBED: &str = "notifications/resources/updated";

fn offers() -> Value {
    json!({"capabilities": {"resources": {"subscribe": true}, "logging": {}}})
}

/// A server that accepts every request but those for `a:no`.
fn board(server: &Scripted) -> Pegboard {
    board_with(server, in_process_settings())
}

fn board_with(server: &Scripted, settings: ServerConfig) -> Pegboard {
    let this = server.clone();
    server.board_with(settings, NoHost, move |message| match message["method"].as_str() {
        Some("subscriptions/listen") => {
            let mut wanted = message["params"]["notifications"].clone();
            if let Some(uris) = wanted["resourceSubscriptions"].as_array_mut() {
                uris.retain(|uri| uri != "a:no");
            }
            let this = this.clone();
            tokio::spawn(async move {
                this.say(
                    json!({"method": "notifications/subscriptions/acknowledged", "params": {"notifications": wanted}}),
                )
                .await;
            });
            Answer::Silence
        }
        Some("resources/subscribe") if message["params"]["uri"] == "a:no" => {
            Answer::Error(-32602, "not that one", Value::Null)
        }
        _ => result(json!({})),
    })
}

/// Legacy servers get subscribe requests, modern ones a listen stream; dropping a subscription unsubscribes.
#[tokio::test(start_paused = true)]
async fn news_of_a_resource_reach_those_who_subscribed_to_it() {
    for era in ERAS {
        let server = Scripted::new(era, offers());
        let board = board(&server);
        let (tools, fx) = (board.toolset(), name("fx"));
        let mut a = tools.subscribe(&fx, "a:a").await.unwrap();
        let mut b = tools.subscribe(&fx, "a:b").await.unwrap();
        let refused = tools.subscribe(&fx, "a:no").await.unwrap_err();
        assert_eq!(refused.kind, Kind::ToolError, "{}", refused.message);
        // Updates up to here were already consumed.
        while tokio::time::timeout(secs(5), b.changed()).await.is_ok() {}
        while tokio::time::timeout(secs(5), a.changed()).await.is_ok() {}
        server
            .say(json!({"method": SUBSCRIBED, "params": {"uri": "a:b"}}))
            .await;
        assert!(tokio::time::timeout(secs(5), b.changed()).await.unwrap());
        assert!(tokio::time::timeout(secs(5), a.changed()).await.is_err(), "{era:?}");
        drop(b);
        match era {
            Era::Legacy => assert_eq!(server.wait_for("resources/unsubscribe", 2).await[1]["uri"], "a:b"),
            _ => {
                let left = || server.received("subscriptions/listen").last().cloned().unwrap();
                until("a:b is not asked for", || {
                    left()["notifications"]["resourceSubscriptions"] == json!(["a:a"])
                })
                .await;
            }
        }
        board.shutdown().await;
        drop((board, tools));
        // A stopped server sends no more updates.
        let ending = async { while a.changed().await {} };
        tokio::time::timeout(secs(5), ending).await.unwrap();
    }
}

/// By the schema, the URI of an update may be a sub-resource of the subscribed one.
#[tokio::test(start_paused = true)]
async fn news_of_a_part_reach_those_who_subscribed_to_the_whole() {
    for era in ERAS {
        let server = Scripted::new(era, offers());
        let board = board(&server);
        let mut folder = board.toolset().subscribe(&name("fx"), "file:///a").await.unwrap();
        while tokio::time::timeout(secs(5), folder.changed()).await.is_ok() {}
        let mut tells = async |uri: &str| {
            let update = json!({"method": SUBSCRIBED, "params": {"uri": uri}});
            server.say(update).await;
            tokio::time::timeout(secs(5), folder.changed()).await.is_ok()
        };
        assert!(tells("file:///a/b/c.txt").await, "{era:?}");
        assert!(!tells("file:///ab").await, "{era:?}");
        assert!(tells("file:///a").await, "{era:?}");
    }
}

/// Changes between two sessions are not missed.
#[tokio::test(start_paused = true)]
async fn a_subscription_is_renewed_after_a_restart_and_tells_that_something_may_have_been_missed() {
    for era in ERAS {
        let server = Scripted::new(era, offers());
        let board = board(&server);
        let (tools, fx) = (board.toolset(), name("fx"));
        let mut a = tools.subscribe(&fx, "a:a").await.unwrap();
        while tokio::time::timeout(secs(5), a.changed()).await.is_ok() {}
        server.hang_up();
        assert!(tokio::time::timeout(secs(60), a.changed()).await.unwrap());
        assert_eq!(server.starts(), 2);
        let asked = match era {
            Era::Legacy => server.received("resources/subscribe").len(),
            _ => server.received("subscriptions/listen").len(),
        };
        assert_eq!(asked, 2, "{era:?}");
        board.shutdown().await;
    }
}

/// A subscription counts as use, so the server is not stopped as idle until the subscription is dropped.
#[tokio::test(start_paused = true)]
async fn a_subscription_keeps_a_server_awake_and_lets_it_rest_when_it_is_dropped() {
    for era in ERAS {
        let server = Scripted::new(era, offers());
        let board = board_with(&server, set_to(|settings| settings.start = Start::Lazy));
        let (tools, fx) = (board.toolset(), name("fx"));
        let state = || board.status().servers[0].state;
        let mut a = tools.subscribe(&fx, "a:a").await.unwrap();
        let b = tools.subscribe(&fx, "a:b").await.unwrap();
        tokio::time::sleep(secs(3600)).await;
        assert_eq!((state(), server.starts()), (State::Ready, 1), "{era:?}");
        assert_eq!(board.status().servers[0].in_flight, 0, "it takes no place of a call");
        server.hang_up();
        until("it has started again", || server.starts() == 2).await;
        drop(b);
        tokio::time::sleep(secs(3600)).await;
        assert_eq!(
            (state(), server.starts()),
            (State::Ready, 2),
            "also in the next session"
        );
        server
            .say(json!({"method": SUBSCRIBED, "params": {"uri": "a:a"}}))
            .await;
        assert!(tokio::time::timeout(secs(5), a.changed()).await.unwrap());
        drop(a);
        tokio::time::sleep(secs(299)).await;
        assert_eq!(state(), State::Ready);
        tokio::time::sleep(secs(60)).await;
        assert_eq!(state(), State::Idle, "{era:?}");
    }
}

/// A listen stream that the server closes is reopened.
#[tokio::test(start_paused = true)]
async fn a_stream_of_news_that_the_server_ends_is_asked_for_anew() {
    let server = Scripted::new(Era::Modern, offers());
    let board = board(&server);
    let mut a = board.toolset().subscribe(&name("fx"), "a:a").await.unwrap();
    while tokio::time::timeout(secs(5), a.changed()).await.is_ok() {}
    let id = server.ids("subscriptions/listen")[0].clone();
    server
        .say(json!({"method": "notifications/cancelled", "params": {"requestId": id}}))
        .await;
    server.wait_for("subscriptions/listen", 2).await;
    assert!(tokio::time::timeout(secs(5), a.changed()).await.unwrap());
    assert_eq!(server.starts(), 1);
}

#[tokio::test(start_paused = true)]
async fn two_who_want_the_same_cost_the_server_one_subscription() {
    let server = Scripted::new(Era::Legacy, offers());
    let board = board(&server);
    let (tools, fx) = (board.toolset(), name("fx"));
    let first = tools.subscribe(&fx, "a:a").await.unwrap();
    let second = tools.subscribe(&fx, "a:a").await.unwrap();
    drop(first);
    tokio::time::sleep(secs(1)).await;
    assert_eq!(
        (
            server.received("resources/subscribe").len(),
            server.received("resources/unsubscribe").len()
        ),
        (1, 0)
    );
    drop(second);
    server.wait_for("resources/unsubscribe", 1).await;
}

/// The level is set by a request or sent in every request, and set again after a restart.
#[tokio::test(start_paused = true)]
async fn a_server_logs_from_the_level_that_it_was_told_also_after_a_restart() {
    for era in ERAS {
        let server = Scripted::new(era, offers());
        let board = board(&server);
        let (tools, fx) = (board.toolset(), name("fx"));
        let mut events = tools.events(&fx).unwrap();
        tools.set_log_level(&fx, LogLevel::Warning).await.unwrap();
        let _ = tools.read_resource(&fx, "a:a").await;
        let level = |server: &Scripted| match era {
            Era::Legacy => server
                .received("logging/setLevel")
                .last()
                .map(|params| params["level"].clone()),
            _ => server
                .received("resources/read")
                .last()
                .map(|params| params["_meta"]["io.modelcontextprotocol/logLevel"].clone()),
        };
        assert_eq!(level(&server), Some(json!("warning")));
        server.say(json!({"method": "notifications/message", "params": {"level": "error", "logger": "db", "data": {"a": 1}}})).await;
        let event = tokio::time::timeout(PATIENCE, events.next()).await.unwrap().unwrap();
        let ServerEvent::Log(message) = &*event else {
            panic!("{event:?}")
        };
        assert_eq!(
            (message.level, message.logger.as_deref(), &message.data),
            (LogLevel::Error, Some("db"), &json!({"a": 1}))
        );

        server.hang_up();
        until("it has started again", || server.starts() == 2).await;
        if era == Era::Legacy {
            server.wait_for("logging/setLevel", 2).await;
        } else {
            tools.set_log_level(&fx, LogLevel::Warning).await.unwrap();
            let _ = tools.read_resource(&fx, "a:a").await;
        }
        assert_eq!(level(&server), Some(json!("warning")));
        board.shutdown().await;
    }
}

/// A server that requested the roots is notified when they change, and gets the new ones.
#[tokio::test(start_paused = true)]
async fn a_server_is_told_when_its_roots_change() {
    let server = Scripted::new(Era::Legacy, json!({"capabilities": {}}));
    let board = server.board(NoHost, |_| Answer::Silence);
    assert!(board.set_roots(name("fx"), &[Root::new("file:///one")]));
    board.settle(PATIENCE).await;
    let hello = server.received("initialize").remove(0);
    assert_eq!(hello["capabilities"], json!({"roots": {"listChanged": true}}));
    let roots = async |id: &str| {
        let before = server.answers().len();
        server.say(json!({"id": id, "method": "roots/list"})).await;
        until("the roots are told", || server.answers().len() > before).await;
        server.answers().pop().unwrap()["result"]["roots"].clone()
    };
    assert_eq!(roots("r1").await, json!([{"uri": "file:///one"}]));
    tokio::time::sleep(secs(1)).await;
    assert_eq!(server.received("notifications/roots/list_changed").len(), 0);

    board
        .toolset()
        .set_roots(name("fx"), &[Root::new("file:///two").name("Two")])
        .unwrap();
    server.wait_for("notifications/roots/list_changed", 1).await;
    assert_eq!(roots("r2").await, json!([{"uri": "file:///two", "name": "Two"}]));
    board
        .toolset()
        .set_roots(name("fx"), &[Root::new("file:///two").name("Two")])
        .unwrap();
    tokio::time::sleep(secs(1)).await;
    assert_eq!(
        server.received("notifications/roots/list_changed").len(),
        1,
        "nothing changed"
    );
    assert!(!board.set_roots(name("nobody"), &[]));
}

/// A server that only one view uses gets the roots of that view.
#[tokio::test(start_paused = true)]
async fn a_view_has_roots_of_its_own_for_the_servers_that_only_it_uses() {
    let (first, handle) = FakeServer::new("fx")
        .tool(Tool::new("t").answers_text("roots:").asks(Ask::Roots))
        .connect();
    drop(first);
    let mut settings = ServerConfig::new(Transport::Stdio(Command::new("in-process")));
    settings.policy.scope = Scope::Session;
    let board = Pegboard::builder(Config::default())
        .in_process_with(name("fx"), dialer(&handle), settings)
        .open();
    for folder in ["file:///one", "file:///two"] {
        let tools = board.toolset_with(View::new().roots(vec![Root::new(folder)]));
        assert_contains(&text(&tools, "fx.t").await, &["roots:", folder]);
    }
}

/// A rejected log level is requested again only when it is set again.
#[tokio::test(start_paused = true)]
async fn a_level_that_was_refused_may_be_asked_for_again() {
    let server = Scripted::new(Era::Legacy, offers());
    let this = server.clone();
    let board = server.board(NoHost, move |message| match message["method"].as_str() {
        Some("logging/setLevel") if this.received("logging/setLevel").len() == 1 => {
            Answer::Error(-32603, "not now", Value::Null)
        }
        _ => result(json!({})),
    });
    let (tools, fx) = (board.toolset(), name("fx"));
    let refused = tools.set_log_level(&fx, LogLevel::Info).await.unwrap_err();
    assert_contains(&refused.message, &["not now"]);
    let _subscription = tools.subscribe(&fx, "a:a").await.unwrap();
    assert_eq!(server.received("logging/setLevel").len(), 1);
    tools.set_log_level(&fx, LogLevel::Info).await.unwrap();
    tools.set_log_level(&fx, LogLevel::Info).await.unwrap();
    assert_eq!(
        server.received("logging/setLevel").len(),
        2,
        "what is set is not set again"
    );
}

fn promises_news() -> FakeServer {
    let capabilities = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}});
    FakeServer::new("fx")
        .era(pegboard_testkit::Era::Modern)
        .capabilities(capabilities)
        .resource("a:a", "x")
        .tool(Tool::new("t"))
}

fn refuses(code: i64) -> Fault {
    Fault::AnswersError {
        code,
        message: "no news today".to_owned(),
        data: None,
    }
}

/// A server that declares subscriptions but supports no way to request them is not relied on, and blocks no caller.
#[tokio::test(start_paused = true)]
async fn a_server_that_promises_news_and_gives_none_holds_nobody_up() {
    let fake = promises_news()
        .cached(60_000, "private")
        .fault_on(When::method("subscriptions/listen"), refuses(-32601));
    let (board, handle) = in_memory(&fake);
    let (tools, fx) = (board.toolset(), name("fx"));
    board.settle(PATIENCE).await;
    handle.wait_for("subscriptions/listen", 1).await;
    let began = Instant::now();
    for _ in 0..2 {
        let refused = tools.subscribe(&fx, "a:a").await.unwrap_err();
        assert_eq!(refused.kind, Kind::ToolError, "{}", refused.message);
        assert_contains(&refused.message, &["the server does not send notifications"]);
        tools.set_log_level(&fx, LogLevel::Info).await.unwrap();
    }
    assert!(began.elapsed() < secs(1), "{:?}", began.elapsed());
    assert_eq!(handle.count("subscriptions/listen"), 1);
    // The TTL of the listing counts, because the server sends no change notifications.
    handle.change(|script| script.tools.push(Tool::new("added")));
    tokio::time::sleep(secs(90)).await;
    assert_eq!(tools.list(PATIENCE).await.tools.len(), 2);
}

/// Other requests are served while a failed listen stream waits for its next retry.
#[tokio::test(start_paused = true)]
async fn a_stream_of_news_that_fails_for_a_while_holds_nobody_up() {
    let fake = promises_news().fault_on(When::method("subscriptions/listen").first(6), refuses(-32000));
    let (board, handle) = in_memory(&fake);
    let (tools, fx) = (board.toolset(), name("fx"));
    board.settle(PATIENCE).await;
    // By now the stream is retried at most once a minute.
    handle.wait_for("subscriptions/listen", 5).await;
    tokio::time::sleep(secs(1)).await;
    let began = Instant::now();
    tools.set_log_level(&fx, LogLevel::Info).await.unwrap();
    let refused = tools.subscribe(&fx, "a:a").await.unwrap_err();
    assert_contains(&refused.message, &["no news today"]);
    assert!(began.elapsed() < secs(1), "{:?}", began.elapsed());
    assert!(
        tokio::time::timeout(secs(60), tools.subscribe(&fx, "a:a"))
            .await
            .unwrap()
            .is_ok()
    );
    assert!(began.elapsed() < secs(5), "{:?}", began.elapsed());
}
