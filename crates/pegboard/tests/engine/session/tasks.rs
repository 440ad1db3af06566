//! Calls that run as tasks: polled at the server's interval, fetched, cancelled, and never started twice.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use pegboard::{
    Event, Hook, Kind, Pegboard, Reply, ToolCall, Toolset, View, hook::Called, host::NoHost, status::Era,
    task::TaskStatus,
};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Instant};

use crate::{session::scripted::*, support::*};

fn offers(era: Era) -> Value {
    let mut tools = vec![tool("plain")];
    for support in ["optional", "required"] {
        let mut tool = tool(support);
        tool["execution"] = json!({ "taskSupport": support });
        tools.push(tool);
    }
    let capabilities = match era {
        Era::Legacy => json!({"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}}}),
        _ => json!({"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}),
    };
    json!({"capabilities": capabilities, "tools": tools})
}

/// The states of a task, one entry per poll; a poll that meets `silence` gets no response.
type Course = &'static [&'static str];

/// A server whose tasks go through these states; the last one stays.
fn working(era: Era, course: Course) -> (Scripted, Pegboard) {
    let server = Scripted::new(era, offers(era));
    let asked = Arc::new(AtomicUsize::new(0));
    let board = server.board(User::types(json!({"colour": "red"})), move |message| {
        let params = &message["params"];
        let task = |status: &str| {
            let mut task = json!({"taskId": "t-1", "status": status, "statusMessage": format!("now {status}"),
                "createdAt": "2026-07-28T10:00:00Z", "lastUpdatedAt": "2026-07-28T10:00:00Z", "ttl": null, "ttlMs": null,
                "pollInterval": 3000, "pollIntervalMs": 3000});
            if era == Era::Modern {
                task["resultType"] = "complete".into();
                match status {
                    "completed" => task["result"] = json!({"content": [{"type": "text", "text": "made"}]}),
                    "failed" => task["error"] = json!({"code": -32603, "message": "it broke"}),
                    "input_required" => {
                        task["inputRequests"] = json!({"c": {"method": "elicitation/create", "params": colour()}});
                    }
                    _ => {}
                }
            }
            task
        };
        let as_task = !params["task"].is_null() || (era == Era::Modern && params["name"] != "plain");
        match message["method"].as_str().unwrap() {
            "tools/call" if as_task => {
                let mut created = task("working");
                if era == Era::Legacy {
                    return result(json!({ "task": created }));
                }
                created["resultType"] = "task".into();
                result(created)
            }
            "tools/call" => said("plainly"),
            "tasks/get" => {
                let at = asked.fetch_add(1, Ordering::Relaxed).min(course.len() - 1);
                match course[at] {
                    "silence" => Answer::Silence,
                    status => result(task(status)),
                }
            }
            "tasks/result" if course.last() == Some(&"failed") => Answer::Error(-32603, "it broke", Value::Null),
            "tasks/result" => said("made"),
            _ => result(json!({})),
        }
    });
    (server, board)
}

async fn text_of(tools: &Toolset, call: ToolCall) -> String {
    tools.call(call).await.text()
}

/// The task is polled at the server's interval.
#[tokio::test(start_paused = true)]
async fn a_tool_that_must_run_as_a_task_is_called_like_any_other() {
    for era in ERAS {
        let (server, board) = working(era, &["working", "working", "completed"]);
        let tools = board.toolset();
        tools.list(PATIENCE).await;
        let (sink, mut steps) = mpsc::channel(8);
        let began = Instant::now();
        assert_eq!(
            text_of(&tools, ToolCall::new("fx.required").progress(sink)).await,
            "made"
        );
        let took = began.elapsed();
        assert!((secs(9)..secs(10)).contains(&took), "{took:?}");
        assert_eq!(server.received("tasks/get").len(), 3);
        assert_eq!(server.received("tasks/cancel").len(), 0);
        assert_eq!(server.received("tasks/result").len(), usize::from(era == Era::Legacy));
        let mut told = Vec::new();
        while let Ok(step) = steps.try_recv() {
            told.push(step.message.unwrap());
        }
        assert_eq!(told, ["now working", "now completed"]);
        assert_eq!(text_of(&tools, ToolCall::new("fx.plain").as_task()).await, "plainly");
    }
}

/// In the legacy era the client chooses, and starts a task only if the caller wants one.
#[tokio::test(start_paused = true)]
async fn a_tool_that_leaves_the_choice_runs_as_a_task_when_it_is_asked_to() {
    let (server, board) = working(Era::Legacy, &["completed"]);
    let tools = board.toolset();
    assert_eq!(text_of(&tools, ToolCall::new("fx.optional")).await, "plainly");
    assert_eq!(text_of(&tools, ToolCall::new("fx.optional").as_task()).await, "made");
    let asked: Vec<_> = server
        .received("tools/call")
        .iter()
        .map(|params| params["task"].clone())
        .collect();
    assert_eq!(asked, [Value::Null, json!({})]);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_or_is_cancelled_by_its_server_ends_the_call_with_its_words() {
    for era in ERAS {
        for (course, words) in [
            (&["failed"] as Course, "it broke"),
            (&["cancelled"], "the task was cancelled: now cancelled"),
        ] {
            let (server, board) = working(era, course);
            let reply = call(&board.toolset(), "fx.required", json!({})).await;
            assert_outcome(&reply, Kind::ToolError, true);
            assert_contains(&reply.text(), &[words]);
            assert_eq!(server.received("tools/call").len(), 1);
        }
    }
}

/// An input request of a task is answered once, however often it is repeated.
#[tokio::test(start_paused = true)]
async fn a_task_that_wants_input_gets_it_once() {
    let (server, board) = working(
        Era::Modern,
        &["input_required", "input_required", "working", "completed"],
    );
    assert_eq!(text(&board.toolset(), "fx.required").await, "made");
    let mut updates = server.received("tasks/update");
    assert_eq!(updates.len(), 1);
    updates[0].as_object_mut().unwrap().remove("_meta");
    let answer = json!({"action": "accept", "content": {"colour": "red"}});
    assert_eq!(updates[0], json!({"taskId": "t-1", "inputResponses": {"c": answer}}));
}

/// The task is cancelled on the server.
#[tokio::test(start_paused = true)]
async fn giving_up_a_call_cancels_its_task() {
    for era in ERAS {
        let (server, board) = working(era, &["working"]);
        let tools = board.toolset();
        let calling = tokio::time::timeout(secs(5), call(&tools, "fx.required", json!({})));
        assert!(calling.await.is_err());
        assert_eq!(server.wait_for("tasks/cancel", 1).await[0]["taskId"], "t-1");

        let reply = tools.call(ToolCall::new("fx.required").timeout(secs(10))).await;
        assert_outcome(&reply, Kind::Timeout, true);
        server.wait_for("tasks/cancel", 2).await;
        assert_eq!(server.received("tools/call").len(), 2, "a task is never made twice");
        assert_eq!(board.status().servers[0].in_flight, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_in_the_background_is_asked_after_fetched_and_cancelled_by_its_handle() {
    for era in ERAS {
        let (server, board) = working(era, &["working", "working", "completed"]);
        let tools = board.toolset();
        let mut handle = tools.start(ToolCall::new("fx.optional").id("mine")).await.unwrap();
        assert_eq!((handle.id(), handle.name()), (Some("t-1"), "fx.optional".to_owned()));
        assert_eq!(
            board.status().servers[0].in_flight,
            0,
            "it takes no place while it works"
        );
        let state = handle.status().await.unwrap();
        assert_eq!(
            (state.status, state.message.as_deref()),
            (TaskStatus::Working, Some("now working"))
        );
        assert!(!state.status.is_final());

        let early = handle.result(secs(1)).await;
        assert_outcome(&early, Kind::Timeout, true);
        assert_eq!(
            server.received("tasks/cancel").len(),
            0,
            "waiting in vain leaves the task alone"
        );
        handle.cancel().await.unwrap();
        assert_eq!(server.received("tasks/cancel").len(), 1);
        let reply = handle.result(PATIENCE).await;
        assert_eq!((reply.id.as_str(), reply.text().as_str()), ("mine", "made"));
        handle.cancel().await.unwrap();
        assert_eq!(
            server.received("tasks/cancel").len(),
            1,
            "there is nothing to give up any more"
        );
        assert_eq!(handle.id(), Some("t-1"));
    }
}

/// In the older era a task asks by requests of the server's own, at any time. They belong to the call that started the task.
#[tokio::test(start_paused = true)]
async fn the_questions_of_a_task_in_the_background_belong_to_its_handle() {
    let (server, board) = working(Era::Legacy, &["working"]);
    let tools = board.toolset_with(View::new().principal("alice"));
    let handle = tools.start(ToolCall::new("fx.optional")).await.unwrap();
    let question = |id: &str| json!({"id": id, "method": "elicitation/create", "params": colour()});
    server.say(question("q1")).await;
    until("she has answered", || server.answers().len() == 1).await;
    assert_eq!(server.answers()[0]["result"]["content"], json!({"colour": "red"}));
    drop(handle);
    server.say(question("q2")).await;
    until("it is rejected", || server.answers().len() == 2).await;
    assert_eq!(server.answers()[1]["error"]["code"], -32603, "{:?}", server.answers());
}

/// A hook that counts replies, each after a delay.
#[derive(Clone, Default)]
struct CountingHook(Arc<AtomicUsize>, std::time::Duration);

impl Hook for CountingHook {
    fn after<'a>(
        &'a self,
        _called: Called<'a>,
        _reply: &'a mut Reply,
    ) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(tokio::time::sleep(self.1))
    }
}

/// The reply is concluded once: a second request gets the same reply, and it is not counted twice.
#[tokio::test(start_paused = true)]
async fn a_result_can_be_asked_for_again_and_is_concluded_once() {
    for (era, tool, made) in [
        (Era::Legacy, "fx.optional", "made"),
        (Era::Modern, "fx.optional", "made"),
        (Era::Modern, "fx.plain", "plainly"),
    ] {
        let (server, board) = working(era, &["working", "completed"]);
        let (watcher, mut events) = (CountingHook::default(), board.events());
        let tools = board.toolset_with(View::new().hook(watcher.clone()));
        let mut handle = tools.start(ToolCall::new(tool)).await.unwrap();
        if handle.id().is_some() {
            let early = handle.result(secs(1)).await;
            assert_outcome(&early, Kind::Timeout, true);
            assert_contains(&early.text(), &["`t-1`", "has not ended within 1 s"]);
        }
        assert_eq!(watcher.0.load(Ordering::Relaxed), 0, "nothing has ended yet");
        let first = handle.result(PATIENCE).await;
        let asked = server.received("tasks/get").len();
        let second = handle.result(PATIENCE).await;
        assert_eq!((first.text().as_str(), &second), (made, &first));
        assert_eq!(server.received("tasks/get").len(), asked);
        assert_eq!(handle.status().await.unwrap().status, TaskStatus::Completed);
        assert_eq!(watcher.0.load(Ordering::Relaxed), 1);
        assert_eq!(board.status().servers[0].calls.total, 1);
        drop((handle, tools, board));
        let mut completed = 0;
        while let Some(event) = events.next().await {
            completed += usize::from(matches!(event, Event::CallCompleted { .. }));
        }
        assert_eq!(completed, 1);
    }
}

/// The error of a task is its result: the reply is final, and nothing suggests to wait for the task any longer.
#[tokio::test(start_paused = true)]
async fn a_task_in_the_background_that_fails_has_ended() {
    for era in ERAS {
        for (course, words, status) in [
            (&["failed"] as Course, "it broke", TaskStatus::Failed),
            (
                &["cancelled"],
                "the task was cancelled: now cancelled",
                TaskStatus::Cancelled,
            ),
        ] {
            let (server, board) = working(era, course);
            let hook = CountingHook::default();
            let tools = board.toolset_with(View::new().hook(hook.clone()));
            let mut handle = tools.start(ToolCall::new("fx.required")).await.unwrap();
            let reply = handle.result(PATIENCE).await;
            assert_outcome(&reply, Kind::ToolError, true);
            assert_contains(&reply.text(), &[words]);
            assert!(!reply.text().contains("may go on"), "{}", reply.text());
            let polls = server.received("tasks/get").len();
            assert_eq!(handle.result(PATIENCE).await, reply);
            assert_eq!(handle.status().await.unwrap().status, status);
            assert_eq!(server.received("tasks/get").len(), polls, "an ended task is not polled");
            assert_eq!(hook.0.load(Ordering::Relaxed), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_gives_up_while_the_reply_is_made_loses_nothing() {
    let (_server, board) = working(Era::Modern, &["completed"]);
    let watcher = CountingHook(Arc::default(), secs(5));
    let tools = board.toolset_with(View::new().hook(watcher.clone()));
    for tool in ["fx.plain", "fx.optional"] {
        let before = watcher.0.load(Ordering::Relaxed);
        let mut handle = tools.start(ToolCall::new(tool)).await.unwrap();
        assert!(tokio::time::timeout(secs(4), handle.result(PATIENCE)).await.is_err());
        assert!(!handle.result(PATIENCE).await.is_error());
        assert_eq!(watcher.0.load(Ordering::Relaxed), before + 1, "{tool}");
    }
}

/// A poll changes nothing, so one without a response is sent again while the caller waits.
#[tokio::test(start_paused = true)]
async fn a_poll_that_gets_no_response_is_repeated() {
    for era in ERAS {
        let (server, board) = working(era, &["working", "silence", "completed"]);
        let mut handle = board.toolset().start(ToolCall::new("fx.required")).await.unwrap();
        assert_eq!(handle.result(secs(600)).await.text(), "made");
        assert_eq!((server.received("tasks/get").len(), server.starts()), (3, 1));
    }
}

/// A task outlives the session that started it, if its server keeps it.
#[tokio::test(start_paused = true)]
async fn a_task_is_asked_after_in_the_next_session_when_its_own_is_gone() {
    for era in ERAS {
        let (server, board) = working(era, &["working", "working", "completed"]);
        let tools = board.toolset();
        let mut handle = tools.start(ToolCall::new("fx.optional")).await.unwrap();
        server.hang_up();
        assert_eq!(handle.status().await.unwrap().status, TaskStatus::Working);
        assert_eq!(server.starts(), 2);
        let waiting = async {
            server.wait_for("tasks/get", 2).await;
            server.hang_up();
        };
        let (reply, ()) = tokio::join!(handle.result(PATIENCE), waiting);
        assert_eq!(reply.text(), "made");
        assert_eq!(server.starts(), 3);
        assert_eq!(server.received("tools/call").len(), 1, "a task is never made twice");
    }
}

#[tokio::test(start_paused = true)]
async fn a_task_can_be_taken_up_by_its_id() {
    for era in ERAS {
        let (server, board) = working(era, &["working", "working", "completed"]);
        let id = {
            let handle = board.toolset().start(ToolCall::new("fx.optional")).await.unwrap();
            handle.id().unwrap().to_owned()
        };
        let mut handle = board.toolset().task("fx.optional", &id).await.unwrap();
        assert_eq!((handle.id(), handle.name().as_str()), (Some("t-1"), "fx.optional"));
        assert_eq!(handle.result(PATIENCE).await.text(), "made");
        assert_eq!(server.received("tools/call").len(), 1);
    }
    let unknown = Scripted::new(Era::Legacy, offers(Era::Legacy));
    let board = unknown.board(NoHost, |_| Answer::Error(-32602, "no such task", Value::Null));
    let refused = board.toolset().task("fx.optional", "t-9").await.unwrap_err();
    assert_contains(&refused.message, &["fx.optional", "no such task"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_cannot_run_as_a_task_is_not_started_as_one() {
    let (server, board) = working(Era::Legacy, &["completed"]);
    let tools = board.toolset();
    let refused = tools.start(ToolCall::new("fx.plain")).await.unwrap_err();
    assert_outcome(&refused, Kind::InvalidArguments, false);
    assert_eq!(server.received("tools/call").len(), 0);
    let nobody = tools.start(ToolCall::new("fx.nobody")).await.unwrap_err();
    assert_outcome(&nobody, Kind::UnknownTool, false);

    // In the modern era the server decides, and may answer at once.
    let (_server, board) = working(Era::Modern, &["completed"]);
    let mut handle = board.toolset().start(ToolCall::new("fx.plain")).await.unwrap();
    assert_eq!(handle.id(), None);
    assert_eq!(handle.status().await.unwrap().status, TaskStatus::Completed);
    assert_eq!(handle.result(PATIENCE).await.text(), "plainly");
}

/// A server that does not declare tasks gets none, whatever its tools declare.
#[tokio::test(start_paused = true)]
async fn a_server_without_tasks_is_called_plainly() {
    let mut offers = offers(Era::Legacy);
    offers["capabilities"] = json!({"tools": {}});
    let server = Scripted::new(Era::Legacy, offers);
    let board = server.board(NoHost, |_| said("plainly"));
    assert_eq!(text(&board.toolset(), "fx.required").await, "plainly");
    assert!(server.received("tools/call")[0]["task"].is_null());
}

/// A task may require input as often as a call may.
#[tokio::test(start_paused = true)]
async fn a_task_may_want_input_eight_times_and_no_more() {
    for wants in [8, 9] {
        let server = Scripted::new(Era::Modern, offers(Era::Modern));
        let asked = Arc::new(AtomicUsize::new(0));
        let board = server.board(User::types(json!({"colour": "red"})), move |message| {
            let state = |status: &str, more: Value| {
                let mut task =
                    json!({"taskId": "t-1", "status": status, "pollIntervalMs": 100, "resultType": "complete"});
                task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                result(task)
            };
            match message["method"].as_str().unwrap() {
                "tools/call" => state("working", json!({"resultType": "task"})),
                "tasks/get" => match asked.fetch_add(1, Ordering::Relaxed) {
                    round if round < wants => {
                        let question = json!({"method": "elicitation/create", "params": colour()});
                        state(
                            "input_required",
                            json!({"inputRequests": {format!("q{round}"): question}}),
                        )
                    }
                    _ => state(
                        "completed",
                        json!({"result": {"content": [{"type": "text", "text": "made"}]}}),
                    ),
                },
                _ => result(json!({})),
            }
        });
        let reply = call(&board.toolset(), "fx.required", json!({})).await;
        assert_eq!(server.received("tasks/update").len(), 8);
        if wants == 8 {
            assert_eq!(reply.text(), "made");
        } else {
            assert_contains(&reply.text(), &["still wants input after 8 rounds"]);
            server.wait_for("tasks/cancel", 1).await;
        }
    }
}

/// A server that does not declare task cancellation gets no cancel request: its tasks go on without a caller.
#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_cancel_tasks_is_not_asked_to() {
    let mut offers = offers(Era::Legacy);
    offers["capabilities"]["tasks"]
        .as_object_mut()
        .unwrap()
        .remove("cancel");
    let server = Scripted::new(Era::Legacy, offers);
    let board = server.board(NoHost, |message| match message["method"].as_str().unwrap() {
        "tools/call" => result(json!({"task": {"taskId": "t-1", "status": "working"}})),
        "tasks/get" => result(json!({"taskId": "t-1", "status": "working"})),
        _ => result(json!({})),
    });
    let tools = board.toolset();
    let calling = tokio::time::timeout(secs(5), call(&tools, "fx.required", json!({})));
    assert!(calling.await.is_err());
    let handle = tools.start(ToolCall::new("fx.required")).await.unwrap();
    let refused = handle.cancel().await.unwrap_err();
    assert_eq!(refused.kind, Kind::Unavailable);
    assert_contains(&refused.message, &["server `fx` does not let its tasks be cancelled"]);
    tokio::time::sleep(secs(5)).await;
    assert_eq!(server.received("tasks/cancel").len(), 0);
}
