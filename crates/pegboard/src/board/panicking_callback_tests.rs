//! Callbacks of the program that panic: the call that ran them fails, and nothing unwinds into its caller.

use serde_json::json;

use super::*;
use crate::call::{ToolCall, View};
use pegboard_client::{
    native::{NativeTool, NativeTools},
    session::Host,
};
use pegboard_config::{Config, Results};
use pegboard_tools::outcome::{Answer, Kind};

fn board() -> Pegboard {
    let long = NativeTool::new("long", "Answers at length.", json!({"type": "object"}), |_| async {
        Ok(Answer::from_text("word ".repeat(10_000)))
    });
    Pegboard::builder(Config::default())
        .in_process(ServerName::parse("fx").unwrap(), NativeTools::new([long]))
        .open()
}

#[tokio::test]
async fn a_check_that_panics_refuses_the_call() {
    let board = board();
    let tools = board.toolset_with(View::new().check(|_| panic!("a bug")));
    let reply = tools.call(ToolCall::new("fx.long")).await;
    assert_eq!(reply.outcome.kind(), Kind::Internal, "{}", reply.text());
    assert!(
        reply.text().contains("a check of the program panicked"),
        "{}",
        reply.text()
    );
    assert_eq!(reply.attempts, 0, "nothing was sent");
    board.shutdown().await;
}

#[tokio::test]
async fn a_tokenizer_that_panics_counts_every_byte() {
    let board = board();
    let limits = Results {
        max_tokens: Some(500),
        ..Results::default()
    };
    let view = View::new().limit_results(limits).tokenizer(|_| panic!("a bug"));
    let reply = board.toolset_with(view).call(ToolCall::new("fx.long")).await;
    assert_eq!(reply.outcome.kind(), Kind::Ok);
    assert!(reply.text().len() <= 2000, "{}", reply.text().len());
    board.shutdown().await;
}

#[tokio::test]
async fn a_host_that_panics_when_it_is_asked_what_it_offers_offers_nothing() {
    struct Panics;
    impl Host for Panics {
        fn offers_elicitation(&self) -> bool {
            panic!("a bug")
        }
    }
    let board = board();
    let tools = board.toolset_with(View::new().host(Panics));
    assert_eq!(tools.call(ToolCall::new("fx.long")).await.outcome.kind(), Kind::Ok);
    board.shutdown().await;
}
