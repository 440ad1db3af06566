//! Resources, prompts and completions: listed from the available servers, read by type, and requested only if declared.

use pegboard::{
    Kind,
    host::NoHost,
    outcome::{Body, Role},
    status::Era,
    toolset::CompletionOf,
};
use serde_json::{Map, Value, json};

use crate::{session::scripted::*, support::*};

fn offers() -> Value {
    json!({
        "capabilities": {"resources": {}, "prompts": {}, "completions": {}},
        "resources": [{"uri": "note://b", "name": "b", "title": "The b", "size": 3, "mimeType": "text/plain"}, {"uri": "note://a", "name": "a"}],
        "resourceTemplates": [{"uriTemplate": "note://{shelf}/{book}", "name": "books"}],
        "prompts": [{"name": "greet", "title": "Greeting", "arguments": [{"name": "who", "required": true}, {"name": "how"}]}],
    })
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other}"),
    }
}

/// URIs, titles and sizes are listed, in order.
#[tokio::test(start_paused = true)]
async fn resources_templates_and_prompts_are_listed_in_both_eras() {
    for era in ERAS {
        let server = Scripted::new(era, offers());
        let tools = server.board(NoHost, |_| Answer::Silence).toolset();
        let listing = tools.resources(PATIENCE).await;
        let uris: Vec<_> = listing.resources.iter().map(|resource| resource.uri.as_str()).collect();
        assert_eq!(uris, ["note://a", "note://b"]);
        assert_eq!(
            (listing.resources[1].size, listing.resources[1].title.as_deref()),
            (Some(3), Some("The b"))
        );
        assert_eq!(listing.templates[0].uri, "note://{shelf}/{book}");
        let prompts = tools.prompts(PATIENCE).await;
        assert_eq!(prompts.prompts[0].title.as_deref(), Some("Greeting"));
        assert!(prompts.unavailable.is_empty() && prompts.warnings.is_empty());
    }
}

/// A server that is down costs only its own resources.
#[tokio::test(start_paused = true)]
async fn the_resources_of_those_who_are_there_are_listed_beside_the_names_of_those_who_are_not() {
    let board = Scripted::new(Era::Legacy, offers()).board(NoHost, |_| Answer::Silence);
    let gone = pegboard::ServerConfig::new(pegboard::config::Transport::Stdio(pegboard::config::Command::new(
        "/nonexistent/server",
    )));
    board.connect(name("gone"), gone).await.unwrap_err();
    let tools = board.toolset();
    let listing = tools.resources(PATIENCE).await;
    assert_eq!((listing.resources.len(), listing.unavailable.len()), (2, 1));
    assert_eq!(listing.unavailable[0].server.as_str(), "gone");
    let prompts = tools.prompts(PATIENCE).await;
    assert_eq!((prompts.prompts.len(), prompts.unavailable.len()), (1, 1));
}

/// Text and binary contents are distinguished, and an oversized resource is an error, not truncated.
#[tokio::test(start_paused = true)]
async fn a_resource_is_read_as_text_or_bytes_within_its_limit() {
    for era in ERAS {
        let server = Scripted::new(era, offers());
        let board = server.board(NoHost, |message| match message["params"]["uri"].as_str() {
            Some("note://a") => result(json!({"contents": [
                {"uri": "note://a", "mimeType": "text/plain", "text": "abc"}, {"uri": "note://a/x", "blob": "aGk="},
            ]})),
            Some("note://neither") => result(json!({"contents": [{"uri": "note://neither"}]})),
            Some("note://empty") => result(json!({})),
            _ => Answer::Error(-32002, "resource not found", json!({"uri": "x"})),
        });
        let (tools, fx) = (board.toolset(), name("fx"));
        let read = tools.read_resource(&fx, "note://a").await.unwrap();
        assert_eq!(read[0].text(), Some("abc"));
        assert_eq!(read[1].body, Body::Blob("aGk=".into()));
        assert_eq!(read[1].bytes().unwrap(), b"hi");
        let large = tools.read_resource_within(&fx, "note://a", 6).await.unwrap_err();
        assert_eq!(large.kind, Kind::LimitExceeded);
        assert_contains(&large.message, &["7 bytes", "6 are allowed"]);
        for (uri, kind, words) in [
            ("note://neither", Kind::Internal, "neither text nor blob"),
            ("note://empty", Kind::Internal, "`contents` is missing"),
            ("note://x", Kind::ToolError, "resource not found"),
        ] {
            let failure = tools.read_resource(&fx, uri).await.unwrap_err();
            assert_eq!(failure.kind, kind, "{uri}");
            assert_contains(&failure.message, &[uri, words]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_pattern_is_filled_in_and_its_values_are_checked() {
    let board = Scripted::new(Era::Legacy, offers()).board(NoHost, |_| Answer::Silence);
    let (tools, fx) = (board.toolset(), name("fx"));
    let expand = async |template: &str, values: Value| tools.expand_template(&fx, template, &map(values)).await;
    let template = "note://{shelf}/{book}";
    assert_eq!(
        expand(template, json!({"shelf": "a/b", "book": 7})).await.unwrap(),
        "note://a%2Fb/7"
    );
    let missing = expand(template, json!({"shelf": 1})).await.unwrap_err();
    assert_eq!(missing.kind, Kind::InvalidArguments);
    assert_contains(&missing.message, &["`book`"]);
    assert_contains(missing.hint.as_deref().unwrap(), &["shelf, book"]);
    let unknown = expand("note://{x}", json!({"x": 1})).await.unwrap_err();
    assert_contains(unknown.hint.as_deref().unwrap(), &[template]);
}

/// Invalid prompt arguments are not sent.
#[tokio::test(start_paused = true)]
async fn a_prompt_is_filled_in_after_its_arguments_were_checked() {
    for era in ERAS {
        let server = Scripted::new(era, offers());
        let board = server.board(NoHost, |message| {
            let who = message["params"]["arguments"]["who"].as_str().unwrap_or("nobody");
            result(json!({"description": "d", "messages": [
                {"role": "user", "content": {"type": "text", "text": format!("Greet {who}.")}},
                {"role": "assistant", "content": {"type": "resource", "resource": {"uri": "a:b", "text": "t"}}},
            ]}))
        });
        let (tools, fx) = (board.toolset(), name("fx"));
        let filled = tools.get_prompt(&fx, "greet", &map(json!({"who": 7}))).await.unwrap();
        assert_eq!(filled.description.as_deref(), Some("d"));
        assert_eq!(filled.messages[0].content.to_text(), "Greet 7.");
        assert_eq!(filled.messages[1].role, Role::Assistant);
        for (prompt, arguments, words) in [
            ("greet", json!({}), "needs the argument `who`"),
            ("greet", json!({"who": "x", "age": 1}), "has no argument `age`"),
            ("meet", json!({}), "has no prompt `meet`"),
        ] {
            let failure = tools.get_prompt(&fx, prompt, &map(arguments)).await.unwrap_err();
            assert_eq!(
                (failure.kind, failure.may_have_executed),
                (Kind::InvalidArguments, false)
            );
            assert_contains(&failure.message, &[words]);
            assert!(failure.hint.is_some());
        }
        assert_eq!(server.received("prompts/get").len(), 1);
    }
}

/// Values are completed for prompts and URI templates, given the arguments that are already set.
#[tokio::test(start_paused = true)]
async fn values_are_completed_for_prompts_and_patterns() {
    for era in ERAS {
        let server = Scripted::new(era, offers());
        let board = server.board(NoHost, |_| {
            let values: Vec<_> = (0..150).map(|number| format!("v{number}")).collect();
            result(json!({"completion": {"values": values, "total": 150}}))
        });
        let (tools, fx) = (board.toolset(), name("fx"));
        let prompt = CompletionOf::Prompt("greet".into());
        let completion = tools
            .complete(&fx, &prompt, "how", "v", &map(json!({"who": "me"})))
            .await
            .unwrap();
        assert_eq!(
            (completion.values.len(), completion.total, completion.has_more),
            (100, Some(150), Some(true))
        );
        let template = CompletionOf::Template("note://{shelf}/{book}".into());
        tools.complete(&fx, &template, "shelf", "", &Map::new()).await.unwrap();
        let mut received = server.received("completion/complete");
        for params in &mut received {
            params.as_object_mut().unwrap().remove("_meta");
        }
        assert_eq!(
            received,
            [
                json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "how", "value": "v"}, "context": {"arguments": {"who": "me"}}}),
                json!({"ref": {"type": "ref/resource", "uri": "note://{shelf}/{book}"}, "argument": {"name": "shelf", "value": ""}}),
            ]
        );
    }
}

/// Undeclared capabilities are not requested.
#[tokio::test(start_paused = true)]
async fn what_a_server_does_not_offer_is_not_asked_of_it() {
    let server = Scripted::new(Era::Legacy, json!({"capabilities": {"tools": {}}}));
    let board = server.board(NoHost, |_| panic!("it was asked"));
    let (tools, fx, none) = (board.toolset(), name("fx"), Map::new());
    let prompt = CompletionOf::Prompt("p".into());
    let refusals = [
        tools.read_resource(&fx, "a:b").await.unwrap_err(),
        tools.get_prompt(&fx, "p", &none).await.unwrap_err(),
        tools.complete(&fx, &prompt, "a", "", &none).await.unwrap_err(),
        tools.subscribe(&fx, "a:b").await.unwrap_err(),
        tools
            .set_log_level(&fx, pegboard::watch::LogLevel::Info)
            .await
            .unwrap_err(),
    ];
    for refusal in refusals {
        assert_eq!(refusal.kind, Kind::Unavailable);
        assert_contains(&refusal.message, &["does not offer"]);
    }
    let nobody = tools.read_resource(&name("nobody"), "a:b").await.unwrap_err();
    assert_contains(&nobody.message, &["Available servers: fx."]);
}

/// Reads are safe, so they are retried when the session is lost.
#[tokio::test(start_paused = true)]
async fn what_only_reads_is_asked_again_when_the_session_is_lost() {
    let server = Scripted::new(Era::Legacy, offers());
    let again = server.clone();
    let board = server.board(NoHost, move |_| match again.starts() {
        1 => {
            again.hang_up();
            Answer::Silence
        }
        _ => result(json!({"contents": []})),
    });
    assert_eq!(
        board.toolset().read_resource(&name("fx"), "note://a").await.unwrap(),
        []
    );
    assert_eq!((server.starts(), server.received("resources/read").len()), (2, 2));
}

/// The first protocol version has completions but no capability for them.
#[tokio::test(start_paused = true)]
async fn a_server_of_the_oldest_version_is_asked_for_completions_when_it_has_something_to_complete() {
    for (version, capabilities, is_asked) in [
        ("2024-11-05", json!({"prompts": {}}), true),
        ("2024-11-05", json!({"resources": {}}), true),
        ("2024-11-05", json!({"tools": {}}), false),
        ("2025-03-26", json!({"prompts": {}}), false),
        ("2025-03-26", json!({"completions": {}}), true),
    ] {
        let fake = pegboard_testkit::FakeServer::new("fx")
            .version(version)
            .capabilities(capabilities.clone());
        let (board, handle) = in_memory(&fake);
        let of = CompletionOf::Prompt("p".to_owned());
        let answer = board.toolset().complete(&name("fx"), &of, "a", "", &Map::new()).await;
        assert_eq!(
            handle.count("completion/complete"),
            usize::from(is_asked),
            "{version} {capabilities}"
        );
        let is_refused = answer.is_err_and(|failure| failure.kind == Kind::Unavailable);
        assert_eq!(is_refused, !is_asked, "{version} {capabilities}");
    }
}
