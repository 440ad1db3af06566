//! Events, status and metrics during changes.

use std::{collections::BTreeMap, future::Future, pin::Pin};

use futures_util::FutureExt;
use pegboard::{
    config::{Command, Scope, Transport},
    hook::Called,
    *,
};
use pegboard_testkit::Fault;
use serde_json::json;

use crate::{
    races::fixtures::*,
    support::{board, name, process, secs},
};

#[tokio::test(flavor = "multi_thread")]
async fn the_last_event_of_a_replaced_server_tells_its_state() {
    let (_folder, [log]) = files(["log"]);
    let board = settled(process(&good(&log, "one"))).await;
    let mut events = board.events();
    board.apply(one(process(&good(&log, "two")))).await;
    let seen = state_changes(&mut events);
    assert_eq!(states(&board), [State::Ready]);
    assert_eq!(seen.last().unwrap().1, State::Ready, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replacement_that_fails_does_not_make_listeners_think_that_the_server_is_gone() {
    let (_folder, [log]) = files(["log"]);
    let mut config = process(&good(&log, "one"));
    // A shared process ends before the next is started.
    config.policy.scope = Scope::Pool(1);
    let board = settled(config).await;
    let mut events = board.events();
    board.apply(one(missing_program("x"))).await;
    let seen = state_changes(&mut events);
    assert_eq!(states(&board), [State::Ready]);
    assert!(seen.is_empty() || seen.last().unwrap().1 == State::Ready, "{seen:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_and_status_agree_about_a_misconfigured_server() {
    let board = Pegboard::open(Config::default());
    let mut events = board.events();
    board.apply(misconfigured()).await;
    assert_eq!(states(&board), [State::Misconfigured]);
    let first = state_changes(&mut events);
    board.apply(misconfigured()).await;
    board.apply(misconfigured()).await;
    let again = state_changes(&mut events);
    assert!(
        first.last().unwrap().1 == State::Misconfigured && again.is_empty(),
        "{first:?}, and without a change: {again:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_starts_hide_secrets() {
    let secret = "hunter2-SECRET-abcdef";
    let (_folder, [log]) = files(["log"]);
    let fake = good(&log, "x").fault(Fault::ExitsAtStart {
        code: 1,
        stderr: format!("bad token {secret}"),
    });
    let (program, args) = fake.command();
    let command = Command::new(program.to_str().unwrap())
        .args(args)
        .env("API_TOKEN", secret);
    let config = ServerConfig::new(Transport::Stdio(command));
    let board = Pegboard::open(Config::default());
    let mut events = board.events();
    let error = board.connect(name("fx"), config.clone()).await.unwrap_err();
    let view = board.toolset();
    let listing = view.list(secs(3)).await;
    let reply = hello(&view).await;
    let mut told = String::new();
    while let Some(Some(event)) = events.next().now_or_never() {
        told += &serde_json::to_string(&event).unwrap();
    }
    let status = serde_json::to_string(&board.status()).unwrap();
    let places = [
        ("error", error.to_string()),
        ("debug", format!("{error:?}")),
        ("listing", format!("{:?}", listing.unavailable)),
        ("reply", reply.text()),
        ("events", told),
        ("status", status),
    ];
    let leaks: Vec<_> = places.iter().filter(|(_, text)| text.contains(secret)).collect();
    assert!(leaks.is_empty(), "{leaks:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn panics_end_calls_once() {
    struct Bad;
    impl Hook for Bad {
        fn before<'a>(
            &'a self,
            _: Called<'a>,
            call: &'a mut ToolCall,
        ) -> Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>> {
            if call.id == "hook" {
                panic!("hook")
            }
            Box::pin(std::future::ready(Ok(())))
        }
    }
    let tool = NativeTool::new("boom", "x", json!({"type": "object"}), |args| async move {
        if args.contains_key("panic") {
            panic!("native")
        }
        Ok(Answer::from_text("ok"))
    });
    let board = Pegboard::builder(Config::default())
        .in_process(name("nat"), NativeTools::new([tool]))
        .open();
    let mut events = board.events();
    let view = board.toolset_with(View::new().hook(Bad));
    let v = view.clone();
    let hooked = tokio::spawn(async move { v.call(ToolCall::new("nat.boom").id("hook")).await }).await;
    assert!(hooked.unwrap().is_error());
    let reply = tokio::time::timeout(
        secs(5),
        view.call(ToolCall::new("nat.boom").id("native").arguments(json!({"panic": 1}))),
    )
    .await
    .unwrap();
    assert!(reply.is_error(), "{}", reply.text());
    let reply = view.call(ToolCall::new("nat.boom").id("after")).await;
    assert_eq!(reply.text(), "ok");
    let told = call_events(&mut events);
    assert!(told.len() == 3 && told.values().all(|t| *t == (1, 1)), "{told:?}");
    assert_eq!(board.metrics().total.in_flight, 0);
    board.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_ends_calls_that_wait_in_queues_once_each() {
    let (_folder, [log, gate]) = files(["log", "gate"]);
    for how in 0..4 {
        let mut config = process(&gated(&log, &gate, "x"));
        config.policy.serial = true;
        if how == 3 {
            config.policy.scope = Scope::Session;
        }
        let board = board(config);
        let view = board.toolset();
        hello(&view).await;
        let mut events = board.events();
        let before = calls(&log);
        let calling: Vec<_> = (0..30)
            .map(|_| {
                let v = view.clone();
                tokio::spawn(async move { v.call(ToolCall::new("fx.slow")).await })
            })
            .collect();
        until("one arrives", || calls(&log) == before + 1).await;
        until("the others wait", || board.status().servers[0].queued == 29).await;
        match how {
            0 => board.shutdown().await,
            1 => {
                board.disable(&name("fx")).await;
            }
            2 => {
                for c in &calling {
                    c.abort()
                }
            }
            _ => view.close().await,
        }
        let mut kinds = BTreeMap::<String, usize>::new();
        for c in calling {
            let kind = c
                .await
                .map(|r| r.outcome.kind().as_str().to_owned())
                .unwrap_or("aborted".into());
            *kinds.entry(kind).or_default() += 1;
        }
        assert!(!kinds.contains_key(Kind::Timeout.as_str()), "{how}: {kinds:?}");
        let told = call_events(&mut events);
        assert!(
            told.len() == 30 && told.values().all(|t| *t == (1, 1)),
            "{how}: {told:?}"
        );
        assert_eq!(
            (board.metrics().total.in_flight, board.metrics().total.calls.total),
            (0, 31),
            "{how} {kinds:?}"
        );
        board.shutdown().await;
        assert_eq!(alive(&log).len(), 0, "{how}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_never_go_back_over_many_names() {
    let board = Pegboard::open(Config::default());
    let mut last = 0;
    for n in 0..3000 {
        let server = name(&format!("s{n}"));
        let config = missing_program("x");
        let _ = board.connect(server.clone(), config).await;
        board.disconnect(&server).await;
        if n % 50 == 0 {
            let total = board.metrics().total.failed_starts;
            assert!(total >= last, "{n}: {total} after {last}");
            last = total;
        }
    }
    assert_eq!(board.metrics().total.failed_starts, 3000);
    assert!(board.metrics().servers.len() <= 1025);
}
