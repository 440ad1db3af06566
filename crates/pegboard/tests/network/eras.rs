//! Detecting the era and the transport of a URL with as few requests as possible, and remembering them.

use pegboard::{Config, Kind, Pegboard, State, config::EraChoice};
use pegboard_testkit::{Ask, Era, FakeServer, Fault, NetHandle, Refusal, Tool, When};
use serde_json::json;

use crate::{
    fixtures::*,
    raw::{self, Step},
    support::*,
};

fn remembering(url: &str, file: &std::path::Path) -> Pegboard {
    let mut config = Config::default();
    config.servers.insert(name("fx"), at(url));
    Pegboard::builder(config).era_memory(file).tools_only().open()
}

/// Checks one config against every kind of server: the requests of the first start, and those of the second.
async fn check_kind(fake: &NetHandle, url: &str, first: &[&str], second: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("eras.json");
    let mut before = 0;
    for (time, expected) in [("first", first), ("second", second)] {
        let board = remembering(url, &file);
        assert_greets(&board.toolset(), time).await;
        // The listen stream is opened in parallel with the call, after all lists are complete.
        let listens = expected == MODERN;
        if listens {
            let rounds = if time == "first" { 1 } else { 2 };
            received(fake, LISTEN, rounds).await;
        }
        board.shutdown().await;
        let all = methods(fake);
        let sent = || {
            all[before..]
                .iter()
                .map(String::as_str)
                .filter(|method| !matches!(*method, "DELETE" | "$closed"))
        };
        let in_order: Vec<_> = sent().filter(|method| *method != LISTEN).collect();
        assert_eq!(in_order, expected, "{time} time at {url}");
        let after_the_list = sent().skip_while(|method| *method != "tools/list");
        let listening = |methods: &mut dyn Iterator<Item = &str>| methods.filter(|method| *method == LISTEN).count();
        assert_eq!(listening(&mut sent()), usize::from(listens), "{time} time at {url}");
        assert_eq!(
            listening(&mut { after_the_list }),
            usize::from(listens),
            "{time} time at {url}"
        );
        before = all.len();
    }
}

const LEGACY: &[&str] = &[
    "initialize",
    "notifications/initialized",
    "GET",
    "tools/list",
    "tools/call",
];
const MODERN: &[&str] = &["server/discover", "tools/list", "tools/call"];
const LISTEN: &str = "subscriptions/listen";

#[tokio::test]
async fn one_line_of_config_reaches_every_kind_of_server_and_remembers_it() {
    let modern = fake(Era::Modern).serve_http().await.unwrap();
    check_kind(&modern, &modern.url(), MODERN, MODERN).await;
    let both = fake(Era::Both).serve_http().await.unwrap();
    check_kind(&both, &both.url(), MODERN, MODERN).await;
    let legacy = fake(Era::Legacy).serve_http().await.unwrap();
    let probed = [&["server/discover"], LEGACY].concat();
    check_kind(&legacy, &legacy.url(), &probed, LEGACY).await;
    let sse_order = [
        "GET",
        "initialize",
        "notifications/initialized",
        "tools/list",
        "tools/call",
    ];
    let sse = fake(Era::Legacy).serve_sse().await.unwrap();
    check_kind(&sse, &sse.url(), &sse_order, &sse_order).await;
}

#[tokio::test]
async fn an_old_server_is_found_whether_it_answers_a_post_with_404_or_405() {
    for status in ["404 Not Found", "405 Method Not Allowed", "400 Bad Request"] {
        let old = fake(Era::Legacy).serve_sse().await.unwrap();
        let address = old.address();
        let front = raw::serve(move |seen| match (seen.verb.as_str(), seen.path.as_str()) {
            ("POST", "/sse") => raw::response(status, "text/plain", b""),
            _ => vec![Step::Pass(address)],
        })
        .await;
        let board = board(at(&front.url("/sse")));
        assert_greets(&board.toolset(), status).await;
        // Two failed requests: one per era.
        let posts = front
            .seen()
            .iter()
            .filter(|seen| seen.path == "/sse" && seen.verb == "POST")
            .count();
        assert_eq!(posts, 2, "{status}");
        board.shutdown().await;
    }
}

fn answered(status: u16, body: &str) -> Fault {
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    Fault::Status {
        status,
        headers,
        body: body.to_owned(),
    }
}

#[tokio::test]
async fn whatever_a_server_says_to_a_probe_the_handshake_follows() {
    let result = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    let error = |id: &str, code: i64| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no","data":{{"supported":["2025-06-18"]}}}}}}"#
        )
    };
    let answers = [
        answered(200, &error("1", -32601)),
        answered(200, &error("1", -32602)),
        answered(200, &error("1", -32000)),
        answered(400, ""),
        answered(400, "Bad Request: Server not initialized"),
        answered(400, &error("null", -32000)),
        answered(400, &error("1", -32022)),
        answered(404, ""),
        answered(405, ""),
        answered(406, ""),
        answered(500, "oops"),
        answered(502, ""),
        answered(202, ""),
        answered(200, ""),
        answered(200, "{}"),
        answered(200, "[]"),
        answered(200, &result("{}")),
        answered(200, &result("null")),
        answered(200, &result("[1]")),
        answered(200, &result(r#"{"supportedVersions":["2025-06-18","2025-11-25"]}"#)),
        answered(200, &result(r#"{"supportedVersions":"2026-07-28"}"#)),
        answered(200, "<html>"),
        Fault::HtmlPage,
        Fault::ResetInBody,
        Fault::EndlessBody,
    ];
    for fault in answers {
        let fake = fake(Era::Legacy)
            .fault_on(When::method("server/discover"), fault.clone())
            .serve_http()
            .await
            .unwrap();
        let board = board(at(&fake.url()));
        assert_greets(&board.toolset(), &format!("{fault:?}")).await;
        assert_eq!(fake.count("initialize"), 1, "{fault:?}");
        assert_eq!(status(&board).protocol_version.as_deref(), Some("2025-11-25"));
    }
}

#[tokio::test]
async fn a_server_that_is_silent_to_a_probe_is_reached_by_the_handshake() {
    let fake = fake(Era::Legacy)
        .on_discover(Refusal::Silence)
        .serve_http()
        .await
        .unwrap();
    let board = board(at(&fake.url()));
    assert_greets(&board.toolset(), "after the probe").await;
    assert_eq!((fake.count("server/discover"), fake.count("initialize")), (1, 1));
}

#[tokio::test]
async fn a_server_that_wants_credentials_is_not_asked_again_in_other_ways() {
    let status_401 = status_fault(401, "");
    let status_403 = status_fault(403, "no");
    for fault in [status_401, status_403] {
        for era in BOTH_ERAS {
            let fake = fake(era)
                .fault_on(When::always(), fault.clone())
                .serve_http()
                .await
                .unwrap();
            let board = board(at(&fake.url()));
            let reply = hello(&board.toolset()).await;
            refused(&reply, Kind::NeedsAuth);
            assert!(reply.outcome.hint().unwrap().contains("auth"), "{:?}", reply.outcome);
            assert_eq!(status(&board).state, State::NeedsAuth);
            assert_eq!(methods(&fake), ["server/discover"], "{era:?}");
        }
    }
}

#[tokio::test]
async fn a_wrong_token_is_a_matter_of_credentials_on_every_wire() {
    let server = || fake(Era::Legacy).bearer("right");
    let (web, old, socket) = (
        server().serve_http().await.unwrap(),
        server().serve_sse().await.unwrap(),
        server().serve_ws().await.unwrap(),
    );
    for config in [http(&web.url()), sse(&old.url()), at(&old.url()), ws(&socket.url())] {
        let kind = config.transport.kind();
        let board = board(config);
        refused(&hello(&board.toolset()).await, Kind::NeedsAuth);
        assert_eq!(status(&board).state, State::NeedsAuth, "{kind}");
    }
}

#[tokio::test]
async fn credentials_that_expire_later_refuse_the_call_and_leave_the_server_as_it_is() {
    for era in BOTH_ERAS {
        for code in [401, 403] {
            let fault = status_fault(code, "");
            let fake = fake(era)
                .fault_on(When::tool("hello").nth(2), fault)
                .serve_http()
                .await
                .unwrap();
            let board = board(http(&fake.url()));
            let tools = board.toolset();
            assert_greets(&tools, "before").await;
            refused(&hello(&tools).await, Kind::NeedsAuth);
            assert_greets(&tools, "after").await;
            assert_eq!(fake.count("tools/call"), 3);
        }
    }
}

#[tokio::test]
async fn the_era_that_the_config_names_is_the_only_one_tried() {
    let check = |choice: EraChoice, served: Era, reached: bool| async move {
        let fake = fake(served).serve_http().await.unwrap();
        let mut config = http(&fake.url());
        config.era = choice.clone();
        let board = board(config);
        let reply = hello(&board.toolset()).await;
        assert_eq!(!reply.is_error(), reached, "{choice:?} {served:?}: {:?}", reply.outcome);
        let unwanted = match choice {
            EraChoice::Legacy | EraChoice::Version(_) => "server/discover",
            _ => "initialize",
        };
        assert_eq!(fake.count(unwanted), 0, "{choice:?} {served:?}");
    };
    for (served, speaks_legacy, speaks_modern) in [
        (Era::Legacy, true, false),
        (Era::Modern, false, true),
        (Era::Both, true, true),
    ] {
        check(EraChoice::Legacy, served, speaks_legacy).await;
        check(EraChoice::Version("2025-06-18".to_owned()), served, speaks_legacy).await;
        check(EraChoice::Modern, served, speaks_modern).await;
    }
}

#[tokio::test]
async fn every_version_is_spoken_and_an_unknown_one_names_both_sides() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        let fake = fake(Era::Legacy).version(version).serve_http().await.unwrap();
        let board = board(at(&fake.url()));
        assert_greets(&board.toolset(), version).await;
        assert_eq!(status(&board).protocol_version.as_deref(), Some(version));
        let told = received(&fake, "tools/call", 1).await;
        assert_eq!(told[0].header("mcp-protocol-version"), Some(version));
        board.shutdown().await;
    }
    let fake = fake(Era::Legacy).versions(&["2030-01-01"]).serve_http().await.unwrap();
    let board = board(at(&fake.url()));
    let text = refused(&hello(&board.toolset()).await, Kind::Unavailable);
    assert!(text.contains("2030-01-01") && text.contains("2025-11-25"), "{text}");
    until("the useless session is ended", || fake.sessions().is_empty()).await;
}

#[tokio::test]
async fn a_server_that_changes_its_era_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("eras.json");
    for (from, to) in [(Era::Legacy, Era::Modern), (Era::Modern, Era::Legacy)] {
        let fake = fake(from).then_after(1, fake(to)).serve_http().await.unwrap();
        let board = remembering(&fake.url(), &file);
        assert_greets(&board.toolset(), "before").await;
        board.shutdown().await;
        fake.restart().await.unwrap();
        let board = remembering(&fake.url(), &file);
        assert_greets(&board.toolset(), "after").await;
        board.shutdown().await;
    }
}

/// The board stays up, so the first call after the change detects it.
#[tokio::test]
async fn a_server_that_comes_back_in_the_other_era_answers_the_call_that_finds_it_out() {
    for (from, to) in [(Era::Legacy, Era::Modern), (Era::Modern, Era::Legacy)] {
        let fake = fake(from).then_after(1, fake(to)).serve_http().await.unwrap();
        let board = board(http(&fake.url()));
        let tools = board.toolset();
        assert_greets(&tools, "before").await;
        fake.restart().await.unwrap();
        assert_greets(&tools, &format!("after the change from {from:?} to {to:?}")).await;
        assert_greets(&tools, "in the new session").await;
    }
}

#[tokio::test]
async fn an_error_about_arguments_does_not_end_the_session() {
    for modern in [true, false] {
        let server = raw::serve(move |seen| match seen.method() {
            "tools/call" => {
                let error = json!({ "code": -32602, "message": "`city` is missing" });
                let body = json!({ "jsonrpc": "2.0", "id": seen.body["id"], "error": error }).to_string();
                raw::response("400 Bad Request", "application/json", body.as_bytes())
            }
            _ => raw::healthy(seen, modern),
        })
        .await;
        let board = board(http(&server.url("/mcp")));
        let tools = board.toolset();
        for _ in 0..2 {
            let reply = hello(&tools).await;
            assert_eq!(reply.outcome.kind(), Kind::ToolError, "{:?}", reply.outcome);
        }
        assert_eq!((server.count("tools/call"), server.count("tools/list")), (2, 1));
    }
}

#[tokio::test]
async fn the_connect_limit_holds_for_the_end_of_the_handshake_too() {
    let server = raw::serve(|seen| match seen.method() {
        "notifications/initialized" => vec![Step::Hang],
        _ => raw::healthy(seen, false),
    })
    .await;
    let board = board(limited(http(&server.url("/mcp")), |limits| {
        limits.connect_timeout = secs(1)
    }));
    let began = tokio::time::Instant::now();
    refused(&hello(&board.toolset()).await, Kind::Unavailable);
    assert!(began.elapsed() < secs(20), "{:?}", began.elapsed());
}

#[tokio::test]
async fn requests_of_a_legacy_server_are_answered_and_never_taken_for_answers() {
    let server = || {
        FakeServer::new("fx").tool(
            Tool::new("ask")
                .asks(Ask::PingWithTheSameId)
                .asks(Ask::Roots)
                .asks(Ask::Elicitation)
                .asks(Ask::Sampling)
                .asks(Ask::Unknown)
                .answers_text("done"),
        )
    };
    let (web, old, socket) = (
        server().serve_http().await.unwrap(),
        server().serve_sse().await.unwrap(),
        server().serve_ws().await.unwrap(),
    );
    for config in [http(&web.url()), sse(&old.url()), ws(&socket.url())] {
        let kind = config.transport.kind();
        let board = board(config);
        let reply = call(&board.toolset(), "fx.ask", json!({})).await;
        let text = reply.text();
        assert!(text.starts_with("done"), "{kind}: {text}");
        assert_eq!(text.matches("-32601").count(), 4, "{kind}: {text}");
        board.shutdown().await;
    }
}

/// A modern server rejects the handshake. That is final only if it received the probe of its own era.
#[tokio::test]
async fn a_probe_that_is_cut_does_not_make_the_refusal_of_the_handshake_final() {
    let when = When::method("server/discover").first(1);
    let server = fake(Era::Modern).fault_on(when, Fault::ResetInBody);
    let server = server.serve_http().await.unwrap();
    let board = board(http(&server.url()));
    ready(&board).await;
    assert_greets(&board.toolset(), "after the first start failed").await;
    board.shutdown().await;
}
