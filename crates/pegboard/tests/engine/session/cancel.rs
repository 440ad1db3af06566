//! Cancelled calls: the server is notified, other calls are not affected, and unsent requests are never sent.

use std::sync::Arc;

use pegboard::{Arguments, Kind, ToolCall};
use pegboard_base::sync::Mutex;
use pegboard_testkit::{FakeServer, Fault, Tool};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream},
    sync::oneshot,
    time::{Instant, timeout},
};

use crate::{
    session::by_hand::{dialing, plain_answer},
    support::*,
};

/// The server gets the cancellation within 100 ms and stays connected; the other call gets its response.
#[tokio::test(start_paused = true)]
async fn dropping_a_call_cancels_it_and_no_other() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("slow").waits_at("never"))
        .tool(Tool::new("gated").waits_at("gate").answers_text("through"));
    let (board, handle) = in_memory(&fake);
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let other = tokio::spawn({
        let tools = tools.clone();
        async move { call(&tools, "fx.gated", json!({})).await }
    });
    let doomed = tokio::spawn({
        let tools = tools.clone();
        async move { call(&tools, "fx.slow", json!({})).await }
    });
    timeout(PATIENCE, handle.wait_for("tools/call", 2)).await.unwrap();
    let given_up = Instant::now();
    doomed.abort();
    timeout(PATIENCE, handle.wait_for("notifications/cancelled", 1))
        .await
        .unwrap();
    assert!(given_up.elapsed().as_millis() <= 100, "{:?}", given_up.elapsed());
    let requests = handle.requests();
    let slow = requests.iter().find(|message| message.tool() == Some("slow")).unwrap();
    let cancelled = requests
        .iter()
        .find(|message| message.method == "notifications/cancelled")
        .unwrap();
    assert_eq!(Some(&cancelled.params["requestId"]), slow.id.as_ref());
    handle.open_gate("gate");
    assert_eq!(other.await.unwrap().text(), "through");
    assert_eq!((handle.starts(), board.status().servers[0].in_flight), (1, 0));
}

/// A call that times out is cancelled, and its slot is released.
#[tokio::test(start_paused = true)]
async fn a_call_that_times_out_is_cancelled_on_the_server() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("hello"))
        .fault(Fault::NeverAnswers);
    let (board, handle) = in_memory(&fake);
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let started = Instant::now();
    let reply = call(&tools, "fx.hello", json!({})).await;
    assert_outcome(&reply, Kind::Timeout, true);
    assert_contains(
        &reply.text(),
        &["no sign of life for 60 s", "It may have been carried out"],
    );
    assert_contains(reply.outcome.hint().unwrap(), &["call_timeout"]);
    assert_eq!(started.elapsed().as_secs(), 60);
    timeout(PATIENCE, handle.wait_for("notifications/cancelled", 1))
        .await
        .unwrap();
    let status = &board.status().servers[0];
    assert_eq!((status.in_flight, status.state), (0, pegboard::State::Ready));
}

/// A call that is still queued is never written.
#[tokio::test(start_paused = true)]
async fn a_call_given_up_while_it_waits_for_its_turn_is_never_sent() {
    let fake = FakeServer::new("fx")
        .tool(Tool::new("gated").waits_at("gate"))
        .tool(Tool::new("late"));
    let (board, handle) = in_memory(&fake);
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let in_flight = pegboard::config::Limits::default().max_in_flight;
    let mut busy = tokio::task::JoinSet::new();
    for _ in 0..in_flight {
        let tools = tools.clone();
        busy.spawn(async move { call(&tools, "fx.gated", json!({})).await });
    }
    timeout(PATIENCE, handle.wait_for("tools/call", in_flight))
        .await
        .unwrap();
    // One call is dropped while it is queued, one times out in the queue.
    assert!(timeout(secs(1), call(&tools, "fx.late", json!({}))).await.is_err());
    let reply = tools.call(ToolCall::new("fx.late").timeout(secs(2))).await;
    assert_outcome(&reply, Kind::Timeout, false);
    assert_contains(&reply.text(), &["waited in queue `fx`"]);
    handle.open_gate("gate");
    assert_eq!(busy.join_all().await.len(), in_flight);
    assert_eq!(call(&tools, "fx.gated", json!({})).await.text(), "ok");
    let late = handle
        .requests()
        .into_iter()
        .filter(|message| message.tool() == Some("late"));
    assert_eq!((late.count(), handle.count("notifications/cancelled")), (0, 0));
}

/// The same for a call behind a server that stopped reading.
#[tokio::test(start_paused = true)]
async fn a_call_given_up_behind_a_full_pipe_is_never_sent() {
    let (resume, resumed) = oneshot::channel();
    let resumed = Arc::new(Mutex::new(Some(resumed)));
    let received = Arc::new(Mutex::new(Vec::new()));
    let noted = received.clone();
    let board = dialing(move |stream| {
        let resumed = resumed.lock().take();
        if let Some(resumed) = resumed {
            tokio::spawn(reads_nothing_for_a_while(stream, resumed, noted.clone()));
        }
    });
    let tools = board.toolset();
    tools.list(PATIENCE).await;
    let large = json!({ "text": "x".repeat(200 << 10) });
    let large = ToolCall::new("fx.t").arguments(Arguments::try_from(large).unwrap());
    let first = tokio::spawn({
        let tools = tools.clone();
        async move { tools.call(large).await }
    });
    tokio::time::sleep(secs(1)).await;
    let dropped = call(&tools, "fx.t", json!({"which": "dropped"}));
    assert!(timeout(secs(1), dropped).await.is_err());
    let late = ToolCall::new("fx.t").timeout(secs(1));
    let late = tools
        .call(late.arguments(Arguments::try_from(json!({"which": "late"})).unwrap()))
        .await;
    assert_outcome(&late, Kind::Timeout, false);
    assert_contains(&late.text(), &["was not carried out", "no answer within 1 s"]);
    resume.send(()).unwrap();
    assert_eq!(first.await.unwrap().text(), "{}");
    assert_eq!(call(&tools, "fx.t", json!({"which": "last"})).await.text(), "last");
    let calls: Vec<Value> = received
        .lock()
        .iter()
        .map(|call: &Value| call["which"].clone())
        .collect();
    assert_eq!(calls, [Value::Null, "last".into()]);
}

async fn reads_nothing_for_a_while(
    stream: DuplexStream,
    resumed: oneshot::Receiver<()>,
    received: Arc<Mutex<Vec<Value>>>,
) {
    let (read, mut write) = tokio::io::split(stream);
    let mut lines = BufReader::new(read).lines();
    let mut resumed = Some(resumed);
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap();
        if let Some(text) = plain_answer(&message) {
            write.write_all(text.as_bytes()).await.unwrap();
            if message["method"] == "tools/list" {
                let _ = resumed.take().unwrap().await;
            }
        } else if message["method"] == "tools/call" {
            let arguments = &message["params"]["arguments"];
            received.lock().push(arguments.clone());
            let text = arguments["which"].as_str().unwrap_or("{}");
            let result = json!({ "content": [{ "type": "text", "text": text }] });
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            write.write_all(format!("{answer}\n").as_bytes()).await.unwrap();
        }
    }
}
