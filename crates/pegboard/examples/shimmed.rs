//! A program that embeds a board and calls `pegboard::shim()`, so that it can be started again as the guard process of its servers:
//! `shimmed CONFIG.json`.
//!
//! It prints the board's status as one line of JSON, then runs each line of its input as a command and prints a line when that is
//! done: `status`, `call NAME [ARGUMENTS]`, `cycle` (opens, settles and shuts down another board), `close` (shuts down) or `drop` (drops the
//! runtime with everything in it). With `--unhooked` as second argument it does not call `shim()`.

use std::io::BufRead as _;

use pegboard::{Config, Env, Format, Pegboard, ToolCall};

fn main() -> anyhow::Result<()> {
    if std::env::args().nth(2).as_deref() != Some("--unhooked") {
        pegboard::shim();
    }
    let Some(path) = std::env::args().nth(1) else {
        print_usage();
        std::process::exit(2);
    };
    let loaded = Config::from_text(&std::fs::read_to_string(path)?, Format::Json, &Env::process());
    anyhow::ensure!(loaded.problems.is_empty(), "{:?}", loaded.problems);
    let runtime = tokio::runtime::Runtime::new()?;
    let board = runtime.block_on(async {
        let board = Pegboard::open(loaded.config.clone());
        board.settle(std::time::Duration::from_secs(60)).await;
        board
    });
    print_status(&board)?;
    let mut runtime = Some(runtime);
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        match (line.as_str(), &runtime) {
            (call, Some(runtime)) if call.starts_with("call ") => {
                let tools = board.toolset();
                let (name, arguments) = call["call ".len()..]
                    .split_once(' ')
                    .unwrap_or((&call["call ".len()..], "{}"));
                let arguments: serde_json::Value = serde_json::from_str(arguments)?;
                let reply = runtime.block_on(tools.call(ToolCall::new(name).arguments(arguments)));
                print_line(&serde_json::json!({ "is_error": reply.is_error(), "text": reply.text() }));
            }
            ("cycle", Some(runtime)) => {
                runtime.block_on(async {
                    let board = Pegboard::open(loaded.config.clone());
                    board.settle(std::time::Duration::from_secs(60)).await;
                    board.shutdown().await;
                });
                print_status(&board)?;
            }
            ("close", _) => {
                if let Some(runtime) = &runtime {
                    runtime.block_on(board.shutdown());
                }
                print_status(&board)?;
            }
            ("drop", _) => {
                drop(runtime.take());
                print_status(&board)?;
            }
            _ => print_status(&board)?,
        }
    }
    Ok(())
}

fn print_status(board: &Pegboard) -> anyhow::Result<()> {
    print_line(&serde_json::to_value(board.status())?);
    Ok(())
}

#[expect(clippy::print_stderr, reason = "this is a program")]
fn print_usage() {
    eprintln!("usage: shimmed CONFIG.json [--unhooked]");
}

#[expect(clippy::print_stdout, reason = "this is a program")]
fn print_line(line: &serde_json::Value) {
    println!("{line}");
}
