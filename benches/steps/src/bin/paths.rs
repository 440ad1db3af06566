//! Opens a board with stdio servers, lists their tools and makes calls, for weighing whole paths: `paths SERVERS TIMES BYTES COMMAND...`. Each
//! server is the command with its number, and has tools that return as many bytes as their argument `n` says. Prints the resident memory
//! in kB.
//!
//! The servers are children of this program and not of a guard, because valgrind cannot execute the program that it runs again.

use std::time::Duration;

use pegboard::{
    Arguments, Config, Env, Pegboard, ToolCall, View,
    config::{EraChoice, Source},
};

const PATIENCE: Duration = Duration::from_secs(120);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [servers, times, bytes, command @ ..] = &words[..] else {
        return Err("paths SERVERS TIMES BYTES COMMAND...".into());
    };
    let (servers, times, bytes): (u32, u32, usize) = (servers.parse()?, times.parse()?, bytes.parse()?);
    let command = command.join(" ");
    let sources: Vec<Source> = (0..servers)
        .map(|number| Source::server(format!("s{number:02}={command} {number}")))
        .collect();
    let mut config = Config::load(&sources, &Env::process()).readable()?;
    for server in config.servers.values_mut() {
        server.era = EraChoice::Legacy;
        server.limits.max_items = 100_000;
    }
    // One thread, because what several do depends on how they take turns.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let board = Pegboard::builder(config).tools_only().open();
        let tools = board.toolset_with(View::new().whole_results());
        let listing = tools.list(PATIENCE).await;
        if let Some(down) = listing.unavailable.first() {
            return Err(down.error.to_string().into());
        }
        let name = listing.tools.first().ok_or("the servers have no tools")?.name.clone();
        drop(listing);
        for _ in 0..times {
            let arguments = Arguments::parse(&format!("{{\"n\":{bytes}}}"))?;
            let reply = tools.call(ToolCall::new(name.as_str()).arguments(arguments)).await;
            if reply.is_error() || reply.original_bytes < bytes {
                return Err(reply.text().into());
            }
        }
        let status = std::fs::read_to_string("/proc/self/status")?;
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        println!("{}", resident.unwrap_or_default().trim().trim_end_matches(" kB"));
        board.shutdown().await;
        Ok(())
    })
}
