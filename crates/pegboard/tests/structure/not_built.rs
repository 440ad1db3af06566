//! Transports and checks that are not compiled in: their servers stay in the config, and the error names the missing feature.
//!
//! With all features this checks that nothing is reported missing; `scripts/features` runs it without any.

use std::time::Duration;

use pegboard::{
    Answer, Config, Env, Format, Kind, NativeTool, NativeTools, Pegboard, ServerConfig, ServerName, State, ToolCall,
    config::{Check, OutputCheck},
};
use serde_json::{Value, json};

const KINDS: [(&str, &str, bool); 3] = [
    ("http", "http://127.0.0.1:9/mcp", cfg!(feature = "http")),
    ("sse", "http://127.0.0.1:9/sse", cfg!(feature = "sse")),
    ("websocket", "ws://127.0.0.1:9/", cfg!(feature = "websocket")),
];

#[tokio::test]
async fn a_server_over_a_transport_that_is_not_built_in_is_loaded_and_says_what_to_build() {
    for (kind, url, is_built) in KINDS {
        let text = json!({"servers": {"far": {"type": kind, "url": url, "start": "lazy"}}}).to_string();
        let loaded = Config::from_text(&text, Format::Json, &Env::process());
        let told: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
        assert_eq!(loaded.config.servers.len(), 1, "{told:?}");
        let missing = format!("this program was built without servers over `{kind}`");
        let feature = format!("build it with the feature `{kind}` of the crate `pegboard`");
        if is_built {
            assert!(told.is_empty(), "{told:?}");
            continue;
        }
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0].ends_with(&format!(":1: servers.far: {missing} ({feature})")),
            "{told:?}"
        );

        let board = Pegboard::open(loaded.config);
        let tools = board.toolset();
        let away = tools.list(Duration::from_secs(30)).await.unavailable;
        let hint = away[0].hint.as_deref().expect("a hint");
        assert_eq!((away.len(), away[0].state), (1, State::Down));
        assert!(away[0].error.contains(&missing) && hint.contains(&feature), "{away:?}");
        let reply = tools.call(ToolCall::new("far.anything")).await;
        let ending = (reply.outcome.kind(), reply.outcome.may_have_executed());
        assert_eq!(ending, (Kind::Unavailable, false), "{}", reply.text());
        assert!(reply.text().contains(&missing), "{}", reply.text());
        board.shutdown().await;
    }
}

const VALIDATES: bool = cfg!(feature = "validation");

#[test]
fn a_check_that_is_not_built_in_is_reported_where_the_config_asks_for_it() {
    for (settings, is_asked) in [
        (json!({}), false),
        (json!({"call_arguments": "required", "output_check": "off"}), false),
        (json!({"call_arguments": {"read": "cascade"}}), false),
        (json!({"call_arguments": "strict"}), true),
        (json!({"call_arguments": {"check": "relaxed"}}), true),
        (json!({"output_check": "warn"}), true),
        (json!({"output_check": "error"}), true),
    ] {
        let mut server = settings.clone();
        server["command"] = json!("x");
        let text = json!({"servers": {"near": server}}).to_string();
        let loaded = Config::from_text(&text, Format::Json, &Env::process());
        let told: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
        assert_eq!(loaded.config.servers.len(), 1, "{told:?}");
        let expected = "this program was built without validation against schemas (build it with the feature `validation` of the crate `pegboard`)";
        let found = told.iter().filter(|problem| problem.ends_with(expected)).count();
        assert_eq!(found, usize::from(is_asked && !VALIDATES), "{settings}: {told:?}");
    }
}

#[tokio::test]
async fn without_validation_required_arguments_are_checked_and_strict_settings_refuse_calls() {
    let or_ok = |kind: Kind, is_so: bool| if is_so { kind } else { Kind::Ok };
    let (fine, missing, wrong) = (json!({"n": 1}), json!({}), json!({"n": []}));
    for (check, arguments, expected) in [
        (Check::Coerce, &fine, Kind::Ok),
        (Check::Coerce, &missing, Kind::InvalidArguments),
        (Check::Coerce, &wrong, or_ok(Kind::InvalidArguments, VALIDATES)),
        (Check::Off, &wrong, Kind::Ok),
        (Check::Strict, &fine, or_ok(Kind::NotPermitted, !VALIDATES)),
    ] {
        let mut settings = ServerConfig::in_process();
        settings.policy.call_arguments.check = check;
        let (kind, text) = call(settings, "near.count", arguments).await;
        assert_eq!(kind, expected, "{check:?} {arguments}: {text}");
    }
}

#[tokio::test]
async fn without_validation_a_tool_whose_output_must_be_checked_is_not_called() {
    let mut settings = ServerConfig::in_process();
    settings.policy.output_check = OutputCheck::Error;
    let promise = json!({"inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "required": ["n"]}});
    settings.tool_schemas.insert("declared".to_owned(), promise);
    let (kind, text) = call(settings.clone(), "near.count", &json!({"n": 1})).await;
    assert_eq!(kind, Kind::Ok, "it promises nothing: {text}");
    let (kind, text) = call(settings, "near.declared", &json!({})).await;
    assert_eq!(kind == Kind::NotPermitted, !VALIDATES, "{text}");
    assert_eq!(
        text.contains("built without validation against schemas"),
        !VALIDATES,
        "{text}"
    );
}

#[test]
fn a_config_in_a_format_that_is_not_built_in_is_an_error_that_names_the_feature() {
    for (format, feature, is_built, text) in [
        (
            Format::Toml,
            "toml",
            cfg!(feature = "toml"),
            "[servers.near]\ncommand = 'x'\n",
        ),
        (
            Format::Yaml,
            "yaml",
            cfg!(feature = "yaml"),
            "servers:\n  near:\n    command: x\n",
        ),
    ] {
        let read = Config::from_text(text, format, &Env::process()).into_result();
        match (read, is_built) {
            (Ok(config), true) => assert!(config.servers.contains_key("near")),
            (Err(error), false) => assert!(
                error.to_string().contains(&format!("the feature `{feature}`")),
                "{error}"
            ),
            (read, _) => panic!("{format}: {read:?}"),
        }
    }
}

/// Calls a tool of a server in this process, which has a tool `count` with the required argument `n`.
async fn call(settings: ServerConfig, tool: &str, arguments: &Value) -> (Kind, String) {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let count = NativeTool::new("count", "Counts.", schema, |_| async { Ok(Answer::from_text("1")) });
    let board = Pegboard::builder(Config::default())
        .in_process_with(ServerName::parse("near").unwrap(), NativeTools::new([count]), settings)
        .open();
    let arguments = arguments.as_object().unwrap().clone();
    let reply = board.toolset().call(ToolCall::new(tool).arguments(arguments)).await;
    board.shutdown().await;
    (reply.outcome.kind(), reply.text().to_string())
}
