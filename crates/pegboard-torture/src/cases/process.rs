//! Cases on the process of a stdio server: its output, its end, its memory.

use std::time::Duration;

use pegboard_protocol::{Era, method};
use serde_json::{Value, json};

use crate::{
    bench::Bench,
    case::{Applies, Case, Spec},
    client::Client,
    sample,
    stop::{Stop, ensure, fail, skip},
};

const GROUP: &str = "process";
const STDIO: Spec = Spec::Each("basic/transports#stdio", "basic/transports/stdio");
const SHUTDOWN: Spec = Spec::Each("basic/lifecycle#shutdown", "basic/transports/stdio");
/// How long a process may take to exit.
const EXIT: Duration = Duration::from_secs(5);
const STARTS: usize = 10;
/// A server that writes more than this on stderr in one session floods it.
const FLOOD: usize = 1 << 20;
/// The requests before memory is measured first, and between the measurements.
const WARM_UP: usize = 200;
const REQUESTS: usize = 1000;
/// What a process may grow by between the measurements.
const GROWTH: u64 = 32 << 20;
const MORE_FILES: usize = 10;

pub(super) const CASES: &[Case] = &[
    Case {
        id: "stdout",
        group: GROUP,
        title: "stdout has nothing but JSON-RPC messages, one per line",
        applies: Applies::Stdio,
        spec: STDIO,
        mend: "write logs and banners to stderr; stdout belongs to the protocol",
        run: |bench| Box::pin(stdout(bench)),
    },
    Case {
        id: "stderr",
        group: GROUP,
        title: "stderr is not flooded",
        applies: Applies::Stdio,
        spec: STDIO,
        mend: "log less by default: clients may not read stderr, and a full pipe blocks the server",
        run: |bench| Box::pin(stderr(bench)),
    },
    Case {
        id: "split-message",
        group: GROUP,
        title: "a message in two pieces, and two messages in one piece, are read",
        applies: Applies::Stdio,
        spec: STDIO,
        mend: "read stdin line by line, not read by read",
        run: |bench| Box::pin(split_message(bench)),
    },
    Case {
        id: "end-of-input",
        group: GROUP,
        title: "the server exits within 5 s when its stdin is closed, and leaves nothing behind",
        applies: Applies::Stdio,
        spec: SHUTDOWN,
        mend: "exit when stdin ends, and end child processes first",
        run: |bench| Box::pin(end_of_input(bench)),
    },
    Case {
        id: "sigterm",
        group: GROUP,
        title: "the server exits within 5 s of SIGTERM",
        applies: Applies::Stdio,
        spec: SHUTDOWN,
        mend: "exit on SIGTERM; a program that is process 1 of a container must handle it itself",
        run: |bench| Box::pin(sigterm(bench)),
    },
    Case {
        id: "restart",
        group: GROUP,
        title: "the server starts ten times in a row",
        applies: Applies::Stdio,
        spec: STDIO,
        mend: "leave no lock, port or file behind that keeps the next process from starting",
        run: |bench| Box::pin(restart(bench)),
    },
    Case {
        id: "leaks",
        group: GROUP,
        title: "1,000 requests cost no memory and no files",
        applies: Applies::Stdio,
        spec: Spec::Other("no rule of MCP: a server runs for days"),
        mend: "look for what is kept for each request: listeners, timers, files, entries of maps",
        run: |bench| Box::pin(leaks(bench)),
    },
];

async fn stdout(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    only_messages(&client)?;
    if bench.has("tools") {
        client.request(method::TOOLS_LIST, json!({})).await?;
        only_messages(&client)?;
    }
    if let Some(tool) = bench.survey.callable.first() {
        let params = json!({"name": tool.get("name"), "arguments": sample::valid_arguments(tool)});
        client.request(method::TOOLS_CALL, params).await?;
        only_messages(&client)?;
    }
    client.still_answers().await?;
    only_messages(&client)
}

/// Fails if anything else than messages came. Asked after each step, so that the step is shown.
fn only_messages(client: &Client) -> Result<(), Stop> {
    match client.noise.first() {
        None => {}
        Some(line) => return fail(format!("stdout has a line that is not JSON: {line:?}")),
    }
    let is_message = |message: &&Value| message.get("jsonrpc") == Some(&json!("2.0"));
    match client
        .notifications()
        .chain(client.stray_responses())
        .find(|message| !is_message(message))
    {
        None => Ok(()),
        Some(message) => fail(format!("stdout has JSON that is no JSON-RPC 2.0: {message}")),
    }
}

async fn stderr(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    let method = client.harmless();
    for _ in 0..20 {
        client.request(method, json!({})).await?;
    }
    let written = client.process()?.stderr.bytes();
    ensure(written <= FLOOD, || {
        format!("20 requests made the server write {written} bytes to stderr")
    })
}

async fn split_message(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    let method = client.harmless();
    let params = client.with_meta(json!({}));
    let text = |id: &str| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
    let (first, second) = (text("one"), text("two"));
    let both = format!("{first}\n{second}\n");
    bench.transcript.record_sent(&both);
    let (head, tail) = both.split_at(first.len() / 2);
    client
        .process()?
        .write(head.as_bytes(), bench.wait)
        .await
        .map_err(|error| lost(&error))?;
    tokio::time::sleep(Duration::from_millis(20)).await;
    client
        .process()?
        .write(tail.as_bytes(), bench.wait)
        .await
        .map_err(|error| lost(&error))?;
    for id in ["one", "two"] {
        client.response(&json!(id), method).await?;
    }
    Ok(())
}

fn lost(error: &std::io::Error) -> Stop {
    Stop::Fail(error.to_string())
}

async fn end_of_input(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    client.still_answers().await?;
    let limit = bench.wait.min(EXIT);
    let process = client.process()?;
    bench.transcript.record_sent("(stdin was closed)");
    process.close_stdin();
    let Some(status) = process.exit(limit).await else {
        return fail(format!("the process still ran {limit:?} after its stdin was closed"));
    };
    if !status.contains("exit status: 0") && !status.contains("exit code: 0") {
        bench.advise(format!("the process ended with {status} when its stdin was closed"));
    }
    #[cfg(target_os = "linux")]
    {
        for _ in 0..20 {
            if process.process.processes().is_empty() {
                return Ok(());
            }
            tokio::time::sleep(limit / 20).await;
        }
        let mut left = process.process.processes();
        left.sort_unstable();
        fail(format!("processes {left:?} of the server were left behind"))
    }
    #[cfg(not(target_os = "linux"))]
    Ok(())
}

#[cfg(unix)]
async fn sigterm(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    client.still_answers().await?;
    let limit = bench.wait.min(EXIT);
    let process = client.process()?;
    bench.transcript.record_sent("(SIGTERM)");
    process.terminate().map_err(|error| lost(&error))?;
    match process.exit(limit).await {
        Some(_) => Ok(()),
        None => fail(format!("the process still ran {limit:?} after SIGTERM")),
    }
}

#[cfg(not(unix))]
async fn sigterm(_: &Bench<'_>) -> Result<(), Stop> {
    skip("there is no SIGTERM on this system")
}

async fn restart(bench: &Bench<'_>) -> Result<(), Stop> {
    for number in 1..=STARTS {
        match bench.session().await {
            Ok(_) => {}
            Err(Stop::Fail(why)) => return fail(format!("start {number} of {STARTS} failed: {why}")),
            Err(skipped) => return Err(skipped),
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
async fn leaks(_: &Bench<'_>) -> Result<(), Stop> {
    skip("memory and files are read from /proc, which this system does not have")
}

#[cfg(target_os = "linux")]
async fn leaks(bench: &Bench<'_>) -> Result<(), Stop> {
    let mut client = bench.session().await?;
    let method = match bench.era {
        Era::Legacy => method::PING,
        Era::Modern => method::SERVER_DISCOVER,
    };
    let pid = client.process()?.process.pid();
    for _ in 0..WARM_UP {
        client.request(method, json!({})).await?;
    }
    let (memory, files) = linux::usage(pid);
    for _ in 0..REQUESTS {
        client.request(method, json!({})).await?;
    }
    let (memory_after, files_after) = linux::usage(pid);
    if memory == 0 {
        return skip("the memory of the process cannot be read");
    }
    ensure(files_after <= files + MORE_FILES, || {
        format!("{REQUESTS} requests left {} files open", files_after - files)
    })?;
    ensure(memory_after <= memory + GROWTH, || {
        format!(
            "{REQUESTS} requests made the server {} MiB larger",
            (memory_after - memory) >> 20
        )
    })
}

/// What /proc says about the processes of a server.
#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    /// The processes of a process group, without those that have exited.
    pub(super) fn group(pgid: u32) -> Vec<u32> {
        let Ok(entries) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        let pids = entries
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // The name of the program, in parentheses, may contain anything.
            let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
            let (state, group) = (fields.next(), fields.nth(1));
            state != Some("Z") && group.and_then(|group| group.parse().ok()) == Some(pgid)
        })
        .collect()
    }

    /// The resident bytes and open files of a process group.
    pub(super) fn usage(pgid: u32) -> (u64, usize) {
        let (mut memory, mut files) = (0, 0);
        for pid in group(pgid) {
            let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
            let pages: u64 = statm
                .split(' ')
                .nth(1)
                .and_then(|pages| pages.parse().ok())
                .unwrap_or(0);
            memory += pages * 4096;
            files += fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
        }
        (memory, files)
    }
}
