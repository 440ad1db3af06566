//! A client for the shared benchmark harness: it connects to every server of a config file, lists all tools, and keeps a number of calls
//! of `tool_000` in flight in each phase. It prints one line of JSON per event.
//!
//! `bench_client --config FILE [--era 2025|2026] [--phases CONCURRENCY:BYTES:CALLS:MAX_MS,…]`

#![expect(clippy::print_stdout, reason = "the harness reads standard output")]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, bail};
use pegboard::{
    Arguments, Config, Env, Pegboard, ToolCall, Toolset, View,
    config::{EraChoice, Source},
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use tokio::{task::JoinSet, time::Instant};

#[expect(clippy::print_stderr, reason = "this is a program")]
fn main() -> anyhow::Result<()> {
    if std::env::args().len() < 2 {
        eprintln!("usage: bench_client --config FILE [--era 2025|2026] [--phases CONCURRENCY:BYTES:CALLS:MAX_MS,…]");
        std::process::exit(2);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(run(&Options::read()?))
}

struct Options {
    config: String,
    era: EraChoice,
    phases: Vec<Phase>,
}

#[derive(Clone, Copy)]
struct Phase {
    concurrency: usize,
    bytes: usize,
    calls: u64,
    limit: Duration,
}

impl Options {
    fn read() -> anyhow::Result<Self> {
        let mut args = std::env::args().skip(1);
        let (mut config, mut era, mut phases) = (None, EraChoice::Legacy, Vec::new());
        while let Some(option) = args.next() {
            let value = args.next().with_context(|| format!("{option} needs a value"))?;
            match option.as_str() {
                "--config" => config = Some(value),
                "--era" if value == "2026" => era = EraChoice::Modern,
                "--era" => era = EraChoice::Legacy,
                "--phases" => phases = value.split(',').map(Phase::read).collect::<anyhow::Result<_>>()?,
                _ => bail!("{option} is not known"),
            }
        }
        Ok(Self {
            config: config.context("--config is missing")?,
            era,
            phases,
        })
    }
}

impl Phase {
    fn read(text: &str) -> anyhow::Result<Self> {
        let numbers: Vec<u64> = text.split(':').map(str::parse).collect::<Result<_, _>>()?;
        let [concurrency, bytes, calls, limit] = numbers[..] else {
            bail!("a phase has four numbers, `{text}` does not");
        };
        Ok(Self {
            concurrency: usize::try_from(concurrency)?,
            bytes: usize::try_from(bytes)?,
            calls,
            limit: Duration::from_millis(limit),
        })
    }
}

async fn run(options: &Options) -> anyhow::Result<()> {
    let mut config = Config::load(&[Source::file(&options.config)], &Env::process()).config;
    for server in config.servers.values_mut() {
        server.era = options.era.clone();
        server.limits.max_items = 100_000;
        server.limits.max_pages = 100_000;
        server.limits.max_in_flight = 1024;
        server.limits.max_message = 64 << 20;
    }
    let (began, cpu) = (Instant::now(), cpu_us());
    let board = Pegboard::builder(config).tools_only().open();
    // Whole results, because sizes are measured.
    let tools = board.toolset_with(View::new().whole_results());
    let listing = tools.list(Duration::from_secs(60)).await;
    if let Some(down) = listing.unavailable.first() {
        bail!("{} is down: {}", down.server, down.error);
    }
    let connect_ms = began.elapsed().as_secs_f64() * 1e3;
    let ready = json!({"ev": "ready", "tools": listing.tools.len(), "connect_ms": connect_ms, "rss_kb": memory_kb("VmRSS"),
        "cpu_us": cpu_us() - cpu});
    println!("{ready}");
    let targets: Vec<String> = listing
        .tools
        .iter()
        .filter(|tool| tool.tool.name == "tool_000")
        .map(|tool| tool.name.clone())
        .collect();
    let targets: Arc<[String]> = targets.into();
    for phase in &options.phases {
        measure(&tools, &targets, *phase).await?;
    }
    println!(
        "{}",
        json!({"ev": "end", "rss_kb": memory_kb("VmRSS"), "hwm_kb": memory_kb("VmHWM")})
    );
    board.shutdown().await;
    Ok(())
}

async fn measure(tools: &Toolset, targets: &Arc<[String]>, phase: Phase) -> anyhow::Result<()> {
    let next = Arc::new(AtomicU64::new(0));
    let all_well = Arc::new(AtomicBool::new(true));
    let (began, cpu) = (Instant::now(), cpu_us());
    let mut callers = JoinSet::new();
    for _ in 0..phase.concurrency {
        let (tools, targets, next, all_well) = (tools.clone(), targets.clone(), next.clone(), all_well.clone());
        callers.spawn(async move {
            let mut times = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= phase.calls || began.elapsed() >= phase.limit {
                    return times;
                }
                let name = &targets[usize::try_from(number).unwrap_or(0) % targets.len()];
                let arguments = Arguments::parse(&format!("{{\"n\":{}}}", phase.bytes)).unwrap_or_default();
                let started = Instant::now();
                let reply = tools.call(ToolCall::new(name.as_str()).arguments(arguments)).await;
                times.push(started.elapsed().as_secs_f64() * 1e6);
                // The server counts bytes in escaped JSON, so the text itself is a little shorter.
                if reply.is_error() || reply.original_bytes < phase.bytes / 2 {
                    all_well.store(false, Ordering::Relaxed);
                }
            }
        });
    }
    let mut times: Vec<f64> = callers.join_all().await.concat();
    let took = began.elapsed().as_secs_f64();
    let spent = cpu_us() - cpu;
    times.sort_by(f64::total_cmp);
    #[expect(clippy::cast_precision_loss, reason = "counts of calls are small")]
    let count = times.len() as f64;
    let at = |share: f64| {
        times
            .get((count * share) as usize)
            .or(times.last())
            .copied()
            .unwrap_or_default()
    };
    let event = json!({"ev": "phase", "conc": phase.concurrency, "size": phase.bytes, "n": times.len(), "cps": count / took,
        "p50_us": at(0.5), "p99_us": at(0.99), "cpu_us": spent / count.max(1.0), "ok": all_well.load(Ordering::Relaxed)});
    println!("{event}");
    Ok(())
}

/// The CPU time of this process so far, in microseconds.
fn cpu_us() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default().as_secs_f64() * 1e6
}

/// A line of `/proc/self/status`, in kilobytes.
fn memory_kb(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or_default()
}
