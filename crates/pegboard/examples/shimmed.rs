//! A program that embeds a board and lets itself be started again to guard the servers: `shimmed CONFIG.json`.
//!
//! It prints the board's status as one line of JSON, then does what each line of its input says and prints a line when it is
//! done: `status`, `close` (the proper end) or `drop` (the runtime is thrown away with everything in it). With `--unhooked`
//! as second argument it leaves the hook out.

use std::io::BufRead as _;

use anyhow::Context as _;
use pegboard::{Config, Env, Format, Pegboard};

fn main() -> anyhow::Result<()> {
    if std::env::args().nth(2).as_deref() != Some("--unhooked") {
        pegboard::shim();
    }
    let path = std::env::args().nth(1).context("usage: shimmed CONFIG.json")?;
    let loaded = Config::from_text(&std::fs::read_to_string(path)?, Format::Json, &Env::process());
    anyhow::ensure!(loaded.problems.is_empty(), "{:?}", loaded.problems);
    let runtime = tokio::runtime::Runtime::new()?;
    let board = runtime.block_on(async {
        let board = Pegboard::open(loaded.config);
        board.settle(std::time::Duration::from_secs(60)).await;
        board
    });
    print_status(&board)?;
    let mut runtime = Some(runtime);
    for line in std::io::stdin().lock().lines() {
        match line?.as_str() {
            "close" => {
                if let Some(runtime) = &runtime {
                    runtime.block_on(board.shutdown());
                }
                print_status(&board)?;
            }
            "drop" => {
                drop(runtime.take());
                print_status(&board)?;
            }
            _ => print_status(&board)?,
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "this is a program")]
fn print_status(board: &Pegboard) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(&board.status())?);
    Ok(())
}
