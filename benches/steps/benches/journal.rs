//! Measures what the journal of a daemon adds to a call: `cargo bench -p pegboard-steps --bench journal`.
//!
//! Calls of a board without a journal and of one with it alternate, call by call, and each number is a median, so that load on the machine
//! slows both down alike. The tool is in the same process.

#[path = "../../../crates/pegboard-cli/src/daemon/call_slots.rs"]
#[allow(dead_code, reason = "the daemon uses all of it")]
mod call_slots;

use std::{
    fs::OpenOptions,
    time::{Duration, Instant},
};

use call_slots::{CallsInFlight, SlotLine};
use pegboard::{
    Answer, Config, NativeTool, NativeTools, Pegboard, ServerName, ToolCall, Toolset, journal::CallJournal as _,
};
use serde_json::json;

const CALLS: usize = 50_000;
const ROUNDS: usize = 3;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join(format!("pegboard-bench-{}.journal", std::process::id()));
    let journal = || -> std::io::Result<CallsInFlight> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
        Ok(CallsInFlight::new(file, &[]))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (plain, noting) = (board(None)?, board(Some(journal()?))?);
        let (plain, noting) = (plain.toolset(), noting.toolset());
        println!(
            "{:>10} {:>12} {:>8} {:>10}",
            "without µs", "journal µs", "more µs", "alone µs"
        );
        for _ in 0..ROUNDS {
            let (mut without, mut with, mut alone) = (vec![], vec![], vec![]);
            let single = journal()?;
            for _ in 0..CALLS {
                without.push(timed(&plain).await);
                with.push(timed(&noting).await);
                let began = Instant::now();
                single.end(single.note(&line()));
                alone.push(began.elapsed());
            }
            let (without, with) = (micros(without), micros(with));
            println!(
                "{without:>10.2} {with:>12.2} {:>8.2} {:>10.2}",
                with - without,
                micros(alone)
            );
        }
        Ok::<(), Box<dyn std::error::Error>>(())
    })?;
    std::fs::remove_file(path)?;
    Ok(())
}

fn line() -> SlotLine<'static> {
    SlotLine {
        id: "call-1",
        server: "fx",
        tool: "write",
        principal: None,
        started_unix_ms: call_slots::now(),
    }
}

fn board(journal: Option<CallsInFlight>) -> Result<Pegboard, Box<dyn std::error::Error>> {
    let write = NativeTool::new("write", "Writes.", json!({"type": "object"}), |_| async {
        Ok(Answer::from_text("done"))
    });
    let builder = Pegboard::builder(Config::default()).in_process(ServerName::parse("fx")?, NativeTools::new([write]));
    Ok(match journal {
        Some(journal) => builder.journal(journal).open(),
        None => builder.open(),
    })
}

async fn timed(tools: &Toolset) -> Duration {
    let began = Instant::now();
    let reply = tools.call(ToolCall::new("fx.write")).await;
    let took = began.elapsed();
    assert_eq!(reply.text(), "done");
    took
}

fn micros(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}
