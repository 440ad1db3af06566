//! Transports that are not compiled in: their servers stay in the config, and the error names the missing feature.
//!
//! With all features this checks that nothing is reported missing; `scripts/features` runs it without any.

use std::time::Duration;

use pegboard::{Config, Env, Format, Kind, Pegboard, State, ToolCall};

const KINDS: [(&str, &str, bool); 3] = [
    ("http", "http://127.0.0.1:9/mcp", cfg!(feature = "http")),
    ("sse", "http://127.0.0.1:9/sse", cfg!(feature = "sse")),
    ("websocket", "ws://127.0.0.1:9/", cfg!(feature = "websocket")),
];

#[tokio::test]
async fn a_server_over_a_transport_that_is_not_built_in_is_loaded_and_says_what_to_build() {
    for (kind, url, is_built) in KINDS {
        let text = format!("[servers.far]\ntype = '{kind}'\nurl = '{url}'\nstart = 'lazy'\n");
        let loaded = Config::from_text(&text, Format::Toml, &Env::process());
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
