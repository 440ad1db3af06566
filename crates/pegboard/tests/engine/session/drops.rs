//! Drops every future of the API after each number of polls: no slot stays taken, no subscription stays, and the next call succeeds.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use pegboard::{Pegboard, ToolCall, Toolset, status::Era, toolset::CompletionOf, watch::LogLevel};
use serde_json::{Map, Value, json};

use crate::{session::scripted::*, support::*};

/// More polls than any of these futures needs.
const MANY: usize = 200;

/// Polls a future `polls` times, yielding to other tasks in between, and drops it. Returns whether it completed.
async fn ends_within(polls: usize, future: impl Future) -> bool {
    let mut future = pin!(future);
    for _ in 0..polls {
        if poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    false
}

/// A server with every feature, most of which take two input rounds or a task.
fn board(era: Era) -> (Scripted, Pegboard) {
    let mut task = tool("task");
    task["execution"] = json!({"taskSupport": "required"});
    let offers = json!({
        "capabilities": {"tools": {}, "prompts": {}, "resources": {"subscribe": true}, "completions": {}, "logging": {},
            "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
        "tools": [tool("t"), task],
    });
    let server = Scripted::new(era, offers);
    let this = server.clone();
    let user = User::types(json!({"colour": "red"})).after(Duration::from_millis(2));
    let board = server.board(user, move |message| {
        let (method, params) = (message["method"].as_str().unwrap(), &message["params"]);
        let task = |status: &str| {
            json!({"taskId": "t-1", "status": status, "pollInterval": 50, "result": {"content": []}, "resultType": "complete"})
        };
        match method {
            "tools/call" if params["name"] == "task" => match era {
                Era::Legacy => result(json!({"task": task("working")})),
                _ => {
                    let mut task = task("working");
                    task["resultType"] = "task".into();
                    result(task)
                }
            },
            "tools/call" | "prompts/get" | "resources/read" if era == Era::Modern && params["inputResponses"].is_null() => {
                let request = json!({"method": "elicitation/create", "params": colour()});
                result(json!({"resultType": "input_required", "inputRequests": {"c": request}, "requestState": "s"}))
            }
            "tools/call" => said("done"),
            "prompts/get" => result(json!({"messages": []})),
            "resources/read" => result(json!({"contents": []})),
            "completion/complete" => result(json!({"completion": {"values": []}})),
            "tasks/get" => result(task("completed")),
            "tasks/result" => said("made"),
            "subscriptions/listen" => {
                let (this, wanted) = (this.clone(), params["notifications"].clone());
                tokio::spawn(async move {
                    let params = json!({ "notifications": wanted });
                    this.say(json!({"method": "notifications/subscriptions/acknowledged", "params": params})).await;
                });
                Answer::Silence
            }
            _ => result(json!({})),
        }
    });
    (server, board)
}

/// Drops the future of `begin` after 0, 1, 2, … polls, until it completes.
async fn check<F: Future>(what: &str, board: &Pegboard, tools: &Toolset, begin: impl Fn() -> F) {
    for polls in 0..MANY {
        let ended = ends_within(polls, Box::pin(begin())).await;
        let status = &board.status().servers[0];
        assert_eq!(
            (status.in_flight, status.queued),
            (0, 0),
            "{what} kept a place after {polls} polls"
        );
        assert_eq!(status.restarts, 0, "{what} cost the session after {polls} polls");
        if ended {
            assert_eq!(call(tools, "fx.t", json!({})).await.text(), "done", "after {what}");
            return;
        }
    }
    panic!("{what} did not end");
}

/// Dropping any future is safe.
#[tokio::test(start_paused = true)]
async fn every_future_of_a_view_can_be_dropped_at_any_time() {
    for era in ERAS {
        let (server, board) = board(era);
        let (tools, fx, none) = (board.toolset(), name("fx"), Map::<String, Value>::new());
        tools.list(PATIENCE).await;
        let (board, tools, fx, none) = (&board, &tools, &fx, &none);
        check("a call", board, tools, || tools.call(ToolCall::new("fx.t"))).await;
        check("a task", board, tools, || tools.call(ToolCall::new("fx.task"))).await;
        check("a start", board, tools, || tools.start(ToolCall::new("fx.task"))).await;
        check("a background task", board, tools, || async {
            let mut handle = tools.start(ToolCall::new("fx.task")).await.unwrap();
            handle.status().await.unwrap();
            handle.result(PATIENCE).await;
            handle.cancel().await.unwrap();
        })
        .await;
        check("a listing", board, tools, || tools.list(PATIENCE)).await;
        check("resources", board, tools, || tools.resources(PATIENCE)).await;
        check("prompts", board, tools, || tools.prompts(PATIENCE)).await;
        check("reading", board, tools, || tools.read_resource(fx, "a:a")).await;
        check("a prompt", board, tools, || tools.get_prompt(fx, "p", none)).await;
        let of = &CompletionOf::Prompt("p".into());
        check("a completion", board, tools, || tools.complete(fx, of, "a", "", none)).await;
        check("a subscription", board, tools, || async {
            let mut subscription = tools.subscribe(fx, "a:a").await.unwrap();
            server
                .say(json!({"method": "notifications/resources/updated", "params": {"uri": "a:a"}}))
                .await;
            assert!(subscription.changed().await);
        })
        .await;
        check("a log level", board, tools, || tools.set_log_level(fx, LogLevel::Info)).await;
        check("settling", board, tools, || board.settle(PATIENCE)).await;
        let subscribed = || match era {
            Era::Legacy => {
                server.received("resources/subscribe").len() == server.received("resources/unsubscribe").len()
            }
            _ => server.was_cancelled("subscriptions/listen"),
        };
        until("nothing is subscribed to any more", subscribed).await;
        board.shutdown().await;
    }
}

/// A shutdown that was dropped can be repeated.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_board_can_be_given_up_and_asked_for_again() {
    for polls in 0..20 {
        let (_server, board) = board(Era::Legacy);
        board.settle(PATIENCE).await;
        ends_within(polls, board.shutdown()).await;
        tokio::time::timeout(secs(30), board.shutdown()).await.unwrap();
    }
}
