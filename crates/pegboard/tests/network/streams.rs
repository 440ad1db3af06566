//! Responses as JSON and as event streams, complete and interrupted.

use std::time::Duration;

use pegboard::{Kind, ToolCall};
use pegboard_testkit::{Era, Fault, When};
use serde_json::json;

use crate::{
    fixtures::*,
    raw::{self, Step},
    support::*,
};

#[tokio::test]
async fn both_eras_answer_as_json_and_as_events() {
    for era in BOTH_ERAS {
        for style in [Default::default(), resumable()] {
            let fake = fake(era).http(style.clone()).serve_http().await.unwrap();
            let board = board(http(&fake.url()));
            let tools = board.toolset();
            assert_greets(&tools, &format!("{era:?} {style:?}")).await;
            let reply = call(&tools, "fx.echo", json!({"deep": [1, {"é": "\u{2028}"}]})).await;
            assert_eq!(
                serde_json::to_value(&reply).unwrap()["structured"],
                json!({"deep": [1, {"é": "\u{2028}"}]})
            );
            assert_eq!(fake.count("tools/call"), 2);
            board.shutdown().await;
        }
    }
}

/// Event streams that all carry the same response; `ANSWER` stands for it, on one line.
const SHAPES: &[&str] = &[
    "data: ANSWER\n\n",
    "data:ANSWER\n\n",
    "data: ANSWER\r\n\r\n",
    "data: ANSWER\r\r",
    "\u{feff}data: ANSWER\n\n",
    "data: \u{feff}ANSWER\n\n",
    "event: message\r\ndata: ANSWER\r\n\r\n",
    ": a comment\n\n: another\nretry: 20\nid: 7\ndata: ANSWER\n\n",
    "id: 1\nretry: 20\ndata: \n\ndata: ANSWER\nid: 2\n\n",
    "id\nretry: soon\nunknown: field\nlonely\ndata: ANSWER\n\n",
    "event: other\ndata: not for us\n\ndata: ANSWER\n\n",
    "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\"}}\n\ndata: ANSWER\n\n",
    "data: ANSWER\n\ndata: ANSWER\n\n",
];

#[tokio::test]
async fn an_answer_is_read_from_every_shape_of_an_event_stream() {
    for modern in [true, false] {
        for shape in SHAPES {
            check_shape(modern, move |answer| shape.replace("ANSWER", &answer.to_string())).await;
        }
        check_shape(modern, |answer| {
            let pretty = serde_json::to_string_pretty(answer).unwrap();
            let lines: String = pretty.lines().map(|line| format!("data: {line}\r\n")).collect();
            format!("{lines}\r\n")
        })
        .await;
    }
}

async fn check_shape(modern: bool, shape: impl Fn(&serde_json::Value) -> String + Send + Sync + 'static) {
    let shown = shape(&json!("ANSWER"));
    let server = raw::serve(move |seen| match seen.method() {
        "tools/call" => {
            let events = shape(&raw::hi(seen)).into_bytes();
            // Two writes, so that an event may be split.
            let (one, two) = events.split_at(events.len() / 2);
            vec![raw::stream_head(), Step::Write(one.to_vec()), Step::Write(two.to_vec())]
        }
        _ => raw::healthy(seen, modern),
    })
    .await;
    let board = board(http(&server.url("/mcp")));
    assert_greets(&board.toolset(), &shown).await;
    assert_eq!(server.count("tools/call"), 1, "{shown}");
    board.shutdown().await;
}

#[tokio::test]
async fn a_byte_order_mark_before_a_json_answer_does_no_harm() {
    for era in BOTH_ERAS {
        for fault in [Fault::Bom, Fault::Crlf] {
            let fake = fake(era)
                .fault_on(When::tool("hello"), fault)
                .serve_http()
                .await
                .unwrap();
            assert_greets(&board(http(&fake.url())).toolset(), &format!("{era:?}")).await;
        }
    }
}

#[tokio::test]
async fn a_broken_stream_with_event_ids_is_taken_up_again_and_the_tool_runs_once() {
    let fake = fake(Era::Legacy)
        .http(resumable())
        .fault(Fault::StreamEndsEarly { resumable: true })
        .serve_http()
        .await
        .unwrap();
    let board = board(http(&fake.url()));
    assert_greets(&board.toolset(), "resumed").await;
    assert_eq!(fake.count("tools/call"), 1);
    let resumed: Vec<_> = fake
        .requests()
        .into_iter()
        .filter(|received| received.method == "GET" && received.header("last-event-id").is_some())
        .collect();
    assert_eq!(resumed.len(), 1);
    assert_eq!(resumed[0].header("mcp-session-id"), Some(fake.sessions()[0].as_str()));
    assert_eq!(resumed[0].header("mcp-protocol-version"), Some("2025-11-25"));
}

#[tokio::test]
async fn a_broken_stream_that_cannot_be_taken_up_loses_the_call() {
    let cases = [(Era::Modern, false), (Era::Modern, true), (Era::Legacy, false)];
    for (era, resumable) in cases {
        let fake = fails_once(era, Fault::StreamEndsEarly { resumable })
            .serve_http()
            .await
            .unwrap();
        let board = board(http(&fake.url()));
        let tools = board.toolset();
        let text = lost(&hello(&tools).await, Kind::Transport);
        assert!(text.contains("ended before the answer"), "{text}");
        assert_eq!(fake.count("tools/call"), 1, "{era:?}");
        assert_greets(&tools, "after a lost call").await;
    }
}

#[tokio::test]
async fn a_server_that_will_not_resume_loses_the_call_at_once() {
    for status in [404, 405, 400] {
        let fake = fake(Era::Legacy)
            .http(resumable())
            .fault_on(When::tool("hello").first(1), Fault::StreamEndsEarly { resumable: true })
            .fault_on(
                When::method("GET"),
                Fault::Status {
                    status,
                    headers: vec![],
                    body: String::new(),
                },
            )
            .serve_http()
            .await
            .unwrap();
        let board = board(http(&fake.url()));
        lost(&hello(&board.toolset()).await, Kind::Transport);
        assert_eq!((fake.count("tools/call"), fake.count("GET")), (1, 2), "HTTP {status}");
    }
}

#[tokio::test]
async fn an_event_id_that_is_no_ascii_is_sent_back_as_it_came() {
    let server = raw::serve(|seen| match (seen.verb.as_str(), seen.method()) {
        (_, "tools/call") => vec![
            raw::stream_head(),
            Step::Write(format!("retry: 10\nid: é-{}\ndata: \n\n", seen.body["id"]).into_bytes()),
        ],
        ("GET", _) => match seen.headers.get("last-event-id") {
            Some(id) => {
                let id = id.rsplit('-').next().unwrap();
                let text = r#"{"content":[{"type":"text","text":"hi"}]}"#;
                let event = format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{text}}}\n\n");
                vec![raw::stream_head(), Step::Write(event.into_bytes())]
            }
            None => raw::healthy(seen, false),
        },
        _ => raw::healthy(seen, false),
    })
    .await;
    assert_greets(&board(http(&server.url("/mcp"))).toolset(), "resumed").await;
    assert_eq!(server.count("tools/call"), 1);
}

#[tokio::test]
async fn a_reset_in_the_middle_of_an_answer_loses_the_call_and_nothing_else() {
    for era in BOTH_ERAS {
        // A body that ends early but cleanly is not a cut connection: it is unreadable.
        for (fault, kind) in [
            (Fault::ResetInBody, Kind::Transport),
            (Fault::ResetInStream, Kind::Transport),
            (Fault::CutThenEof, Kind::Internal),
        ] {
            let (_folder, ledger) = ledger();
            let fake = fake(era)
                .ledger(&ledger)
                .fault_on(When::tool("hello").first(1), fault.clone())
                .serve_http()
                .await
                .unwrap();
            let board = board(http(&fake.url()));
            let tools = board.toolset();
            let reply = call(&tools, "fx.hello", json!({"nonce": "n"})).await;
            lost(&reply, kind);
            assert_eq!(executed(&ledger), ["n"], "{era:?} {fault:?}");
            assert_greets(&tools, &format!("{era:?} after {fault:?}")).await;
            assert_eq!(
                (reply.attempts, status(&board).restarts),
                (1, 0),
                "{era:?} {fault:?}: in the same session"
            );
        }
    }
}

#[tokio::test]
async fn a_response_stream_answers_its_own_request_only() {
    for modern in [true, false] {
        let held = std::sync::Arc::new(pegboard_base::sync::Mutex::new(None));
        let server = raw::serve(move |seen| {
            if seen.method() != "tools/call" {
                return raw::healthy(seen, modern);
            }
            let mut held = held.lock();
            let Some(first) = held.take() else {
                *held = Some(seen.clone());
                return vec![Step::Hang];
            };
            // The first call is answered on the stream of the second, which has its own response as well.
            let events = format!("data: {}\n\ndata: {}\n\n", raw::hi(&first), raw::hi(seen));
            vec![raw::stream_head(), Step::Write(events.into_bytes())]
        })
        .await;
        let board = board(http(&server.url("/mcp")));
        let tools = board.toolset();
        tools.list(PATIENCE).await;
        let first = tokio::spawn({
            let tools = tools.clone();
            async move { tools.call(ToolCall::new("fx.hello").timeout(secs(2))).await }
        });
        until("the first call is there", || server.count("tools/call") == 1).await;
        assert_greets(&tools, "the second call").await;
        lost(&first.await.unwrap(), Kind::Timeout);
    }
}

#[tokio::test]
async fn a_server_that_asks_for_streams_without_a_wait_gets_one_that_grows() {
    let server = raw::serve(|seen| match (seen.verb.as_str(), seen.method()) {
        (_, "tools/call") => vec![raw::stream_head(), Step::Write(b"retry: 0\nid: 1\ndata: \n\n".to_vec())],
        ("GET", _) if seen.headers.contains_key("last-event-id") => {
            vec![raw::stream_head(), Step::Write(b"retry: 0\nid: 1\ndata: \n\n".to_vec())]
        }
        _ => raw::healthy(seen, false),
    })
    .await;
    let board = board(http(&server.url("/mcp")));
    let tools = board.toolset();
    let calling = call(&tools, "fx.hello", json!({}));
    let waited = tokio::time::timeout(Duration::from_secs(2), calling).await;
    assert!(waited.is_err(), "the answer never comes");
    let streams = server
        .seen()
        .iter()
        .filter(|seen| seen.headers.contains_key("last-event-id"))
        .count();
    assert!((1..=10).contains(&streams), "{streams} in two seconds");
}

#[tokio::test]
async fn answers_that_a_server_never_takes_do_not_pile_up() {
    let server = raw::serve(|seen| match (seen.verb.as_str(), seen.method()) {
        ("GET", _) => {
            let ping = |id| format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}\n\n");
            let pings: String = (0..70).map(ping).collect();
            vec![raw::stream_head(), Step::Write(pings.into_bytes()), Step::Hang]
        }
        ("POST", "") => vec![Step::Hang],
        (_, "tools/call") => raw::response("200 OK", "application/json", raw::hi(seen).to_string().as_bytes()),
        _ => raw::healthy(seen, false),
    })
    .await;
    let board = board(http(&server.url("/mcp")));
    let tools = board.toolset();
    let answers = || {
        server
            .seen()
            .iter()
            .filter(|seen| seen.verb == "POST" && seen.method().is_empty())
            .count()
    };
    assert_greets(&tools, "beside the pings").await;
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_greets(&tools, "after the pings").await;
    assert!((1..=16).contains(&answers()), "{} answers are on their way", answers());
}
