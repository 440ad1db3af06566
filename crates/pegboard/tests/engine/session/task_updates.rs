//! Task notifications: progress reaches the caller until the task ends, and status updates trigger an early poll, but never unbounded
//! polling.

use pegboard::{Pegboard, Reply, ToolCall, host::NoHost, status::Era, watch::Progress};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};

use crate::{session::scripted::*, support::*};

/// A server with one task that runs until the test ends it, and has a poll interval of one minute.
struct Working {
    era: Era,
    server: Scripted,
    board: Pegboard,
    is_done: Arc<AtomicBool>,
}

impl Working {
    fn new(era: Era) -> Self {
        let mut tool = tool("task");
        tool["execution"] = json!({"taskSupport": "required"});
        let capabilities = json!({"tools": {}, "tasks": {"cancel": {}, "requests": {"tools": {"call": {}}}},
            "extensions": {"io.modelcontextprotocol/tasks": {}}});
        let server = Scripted::new(era, json!({"capabilities": capabilities, "tools": [tool]}));
        let is_done = Arc::new(AtomicBool::new(false));
        let done = is_done.clone();
        let board = server.board(NoHost, move |message| {
            let status = if done.load(Ordering::Relaxed) {
                "completed"
            } else {
                "working"
            };
            let state = |result_type: &str| {
                let mut task = task(status, None);
                task["resultType"] = result_type.into();
                task["result"] = json!({"content": [{"type": "text", "text": "made"}]});
                task
            };
            match (message["method"].as_str().unwrap(), era) {
                ("tools/call", Era::Legacy) => result(json!({ "task": task("working", None) })),
                ("tools/call", Era::Modern) => result(state("task")),
                ("tasks/get", _) => result(state("complete")),
                ("tasks/result", _) => said("made"),
                ("subscriptions/listen", _) => Answer::Silence,
                _ => result(json!({})),
            }
        });
        Self {
            era,
            server,
            board,
            is_done,
        }
    }

    /// Calls the tool, and waits until the task exists.
    async fn call(&self) -> (JoinHandle<Reply>, mpsc::Receiver<Progress>) {
        let (sink, steps) = mpsc::channel(64);
        let tools = self.board.toolset();
        let calling = tokio::spawn(async move { tools.call(ToolCall::new("fx.task").progress(sink)).await });
        self.server.wait_for("tools/call", 1).await;
        (calling, steps)
    }

    fn token(&self) -> Value {
        self.server.received("tools/call")[0]["_meta"]["progressToken"].clone()
    }

    async fn progress(&self, progress: u32, message: &str) {
        let params = json!({"progressToken": self.token(), "progress": progress, "total": 10, "message": message});
        let notice = json!({"method": "notifications/progress", "params": params});
        self.server.say(notice).await;
    }

    /// Sends a task status notification in the form of the era.
    async fn tell(&self, status: &str, message: Option<&str>) {
        let method = match self.era {
            Era::Legacy => "notifications/tasks/status",
            _ => "notifications/tasks",
        };
        self.server
            .say(json!({"method": method, "params": task(status, message)}))
            .await;
    }

    fn asked(&self) -> usize {
        self.server.received("tasks/get").len()
    }
}

fn task(status: &str, message: Option<&str>) -> Value {
    let mut task = json!({"taskId": "t-1", "status": status, "createdAt": "2026-07-28T10:00:00Z",
        "lastUpdatedAt": "2026-07-28T10:00:00Z", "ttl": null, "ttlMs": null, "pollInterval": 60_000, "pollIntervalMs": 60_000});
    if let Some(message) = message {
        task["statusMessage"] = message.into();
    }
    task
}

fn words(steps: &mut mpsc::Receiver<Progress>) -> Vec<(f64, Option<f64>, String)> {
    let mut words = Vec::new();
    while let Ok(step) = steps.try_recv() {
        words.push((step.progress, step.total, step.message.unwrap_or_default()));
    }
    words
}

/// The progress token of a call is valid until its task ends.
#[tokio::test(start_paused = true)]
async fn progress_reaches_the_caller_until_the_task_ends() {
    for era in ERAS {
        let working = Working::new(era);
        let (calling, mut steps) = working.call().await;
        for (step, message) in [(1, "early"), (5, "half"), (9, "late")] {
            working.progress(step, message).await;
            tokio::time::sleep(secs(100)).await;
        }
        working.tell("working", Some("polishing")).await;
        tokio::time::sleep(secs(1)).await;
        working.is_done.store(true, Ordering::Relaxed);
        assert_eq!(calling.await.unwrap().text(), "made");
        let told = words(&mut steps);
        let expected = [(1.0, "early"), (5.0, "half"), (9.0, "late"), (9.0, "polishing")];
        let expected = expected.map(|(at, words)| (at, Some(10.0), words.to_owned()));
        assert_eq!(told, expected, "{era:?}");

        working.progress(10, "too late").await;
        tokio::time::sleep(secs(1)).await;
        assert_eq!(words(&mut steps), []);
        assert!(working.board.status().servers[0].restarts == 0);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_reaches_whoever_started_a_task_for_as_long_as_its_handle_is_kept() {
    let working = Working::new(Era::Legacy);
    let (sink, mut steps) = mpsc::channel(8);
    let tools = working.board.toolset();
    let handle = tools.start(ToolCall::new("fx.task").progress(sink)).await.unwrap();
    working.progress(3, "alone").await;
    tokio::time::sleep(secs(1)).await;
    assert_eq!(words(&mut steps), [(3.0, Some(10.0), "alone".to_owned())]);
    drop(handle);
    working.progress(4, "to nobody").await;
    tokio::time::sleep(secs(1)).await;
    assert_eq!(words(&mut steps), []);
}

/// A status update that reports the end of the task triggers a poll at once, before the interval is over.
#[tokio::test(start_paused = true)]
async fn news_of_the_end_of_a_task_bring_the_next_question_forward() {
    for era in ERAS {
        let working = Working::new(era);
        let (calling, _steps) = working.call().await;
        tokio::time::sleep(secs(10)).await;
        assert_eq!(working.asked(), 0);
        working.is_done.store(true, Ordering::Relaxed);
        let told = Instant::now();
        working.tell("completed", None).await;
        assert_eq!(calling.await.unwrap().text(), "made");
        assert!(told.elapsed() < secs(1), "{era:?}: {:?}", told.elapsed());
        assert_eq!(working.asked(), 1);
    }
}

/// In the modern era the client must subscribe to task updates. It does so for long tasks, and unsubscribes when they end.
#[tokio::test(start_paused = true)]
async fn news_of_a_task_that_takes_long_are_asked_for_where_they_must_be() {
    for era in ERAS {
        let working = Working::new(era);
        let (calling, _steps) = working.call().await;
        tokio::time::sleep(secs(1)).await;
        assert_eq!(working.server.received("subscriptions/listen").len(), 0);
        tokio::time::sleep(secs(200)).await;
        let asked: Vec<Value> = working.server.received("subscriptions/listen");
        let asked: Vec<_> = asked.iter().map(|params| params["notifications"].clone()).collect();
        match era {
            Era::Legacy => assert_eq!(asked, [] as [Value; 0]),
            _ => assert_eq!(asked, [json!({"taskIds": ["t-1"]})]),
        }
        calling.abort();
        working.server.wait_for("tasks/cancel", 1).await;
        if era == Era::Modern {
            until("nobody listens", || {
                working.server.was_cancelled("subscriptions/listen")
            })
            .await;
        }
    }
}

/// A flood of status updates causes only a few polls.
#[tokio::test(start_paused = true)]
async fn a_flood_of_news_does_not_make_us_ask_without_end() {
    for era in ERAS {
        for (status, most) in [("working", 2), ("completed", 15)] {
            let working = Working::new(era);
            let (calling, _steps) = working.call().await;
            for _ in 0..10_000 {
                working.tell(status, None).await;
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            let asked = working.asked();
            assert!(asked <= most, "{era:?} {status}: asked {asked} times in 100 s");
            working.is_done.store(true, Ordering::Relaxed);
            assert_eq!(calling.await.unwrap().text(), "made");
        }
    }
}
