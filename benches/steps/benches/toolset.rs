//! Measures a toolset per request against a kept one, and the memory of validators: `cargo bench -p pegboard-steps --bench toolset`.
//!
//! Fresh and kept toolsets alternate, call by call, and each number is a median, so that load on the machine slows both down alike.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use pegboard::{
    Answer, Arguments, Config, Env, Format, NativeTool, NativeTools, Pegboard, Provider, ServerName, ToolCall, Toolset,
    View,
};
use serde_json::{Value, json};

/// How many servers, and how many tools they have together.
const BOARDS: [(usize, usize); 3] = [(10, 500), (10, 5000), (1000, 5000)];
const ROUNDS: usize = 400;
const CALLED_ONCE: usize = 200;

#[global_allocator]
static LIVE: LiveBytes = LiveBytes(AtomicU64::new(0));

/// The system allocator, with a count of the bytes in use.
struct LiveBytes(AtomicU64);

// SAFETY: every call is forwarded unchanged to the system allocator.
unsafe impl GlobalAlloc for LiveBytes {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.0.fetch_add(layout.size() as u64, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        self.0.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        unsafe { System.dealloc(old, layout) }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        println!(
            "{:>7} {:>6} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "servers",
            "tools",
            "provider",
            "cold ms",
            "kept µs",
            "fresh µs",
            "more µs",
            "open µs",
            "call µs",
            "drop µs"
        );
        for (servers, tools) in BOARDS {
            for provider in [Provider::Mcp, Provider::OpenAi] {
                per_request(servers, tools, provider).await?;
            }
        }
        validators().await
    })
}

/// Times calls of a kept toolset and calls of fresh ones.
async fn per_request(servers: usize, tools: usize, provider: Provider) -> Result<(), Box<dyn std::error::Error>> {
    let board = board(servers, tools)?;
    board.settle(Duration::from_secs(60)).await;
    let view = || View::new().provider(provider);
    let began = Instant::now();
    let kept = board.toolset_with(view());
    call(&kept, 0).await;
    let cold = began.elapsed();
    let (mut of_kept, mut open, mut first, mut close, mut whole) = (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let began = Instant::now();
        call(&kept, 0).await;
        of_kept.push(began.elapsed());
        let began = Instant::now();
        let fresh = board.toolset_with(view());
        open.push(began.elapsed());
        let called = Instant::now();
        call(&fresh, 0).await;
        first.push(called.elapsed());
        let dropped = Instant::now();
        drop(fresh);
        close.push(dropped.elapsed());
        whole.push(began.elapsed());
    }
    let (kept, whole) = (micros(of_kept), micros(whole));
    println!(
        "{servers:>7} {tools:>6} {:>10} {:>9.1} {kept:>9.1} {whole:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>9.1}",
        provider.to_string(),
        cold.as_secs_f64() * 1e3,
        whole - kept,
        micros(open),
        micros(first),
        micros(close)
    );
    board.shutdown().await;
    Ok(())
}

/// Measures the memory that a tool's first call leaves behind, and the time of a first call.
async fn validators() -> Result<(), Box<dyn std::error::Error>> {
    let board = board(10, 5000)?;
    board.settle(Duration::from_secs(60)).await;
    let tools = board.toolset();
    for _ in 0..100 {
        call(&tools, 0).await;
    }
    let (mut firsts, mut seconds) = (vec![], vec![]);
    let mut next = 1;
    for called in [CALLED_ONCE, 10 * CALLED_ONCE] {
        let before = LIVE.0.load(Ordering::Relaxed);
        for number in next..next + called {
            let began = Instant::now();
            call(&tools, number).await;
            firsts.push(began.elapsed());
            let began = Instant::now();
            call(&tools, number).await;
            seconds.push(began.elapsed());
        }
        next += called;
        let kept = LIVE.0.load(Ordering::Relaxed).saturating_sub(before);
        let per_tool = kept as f64 / 1e3 / called as f64;
        println!("{called} tools called: {per_tool:.1} kB kept per tool");
    }
    println!(
        "first call of a tool {:.1} µs, second {:.1} µs",
        micros(firsts),
        micros(seconds)
    );
    board.shutdown().await;
    Ok(())
}

fn board(servers: usize, tools: usize) -> Result<Pegboard, Box<dyn std::error::Error>> {
    let config = Config::from_text("max_servers = 1000", Format::Toml, &Env::process()).config;
    let mut builder = Pegboard::builder(config);
    for server in 0..servers {
        let tools = (0..tools / servers).map(|number| {
            let answer = |_| async { Ok(Answer::from_text("found")) };
            let description = format!("Looks for records of kind {number} and says where they are, newest first.");
            NativeTool::new(
                format!("find_{server}_{number}"),
                description,
                schema(server, number),
                answer,
            )
        });
        builder = builder.in_process(ServerName::parse(&format!("server-{server}"))?, NativeTools::new(tools));
    }
    Ok(builder.open())
}

/// A schema of the usual size. Each tool has another.
fn schema(server: usize, number: usize) -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": format!("What to look for in records {server}-{number}"), "minLength": 1},
            "limit": {"type": "integer", "minimum": 1, "maximum": 200, "description": "How many to return"},
            "order": {"type": "string", "enum": ["newest", "oldest", "best"], "default": "newest"},
            "labels": {"type": "array", "items": {"type": "string"}, "maxItems": 20},
            "since": {"type": ["string", "null"], "description": "Only records after this time, in RFC 3339"},
            "range": {
                "type": "object",
                "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}},
                "required": ["from", "to"],
                "additionalProperties": false,
            },
        },
        "required": ["query"],
        "additionalProperties": false,
    })
}

async fn call(tools: &Toolset, number: usize) {
    let name = format!("server-{}__find_{0}_{}", number % 10, number / 10);
    let arguments = Arguments::parse(r#"{"query":"pegs","limit":3,"labels":["a","b"]}"#).unwrap_or_default();
    let reply = tools.call(ToolCall::new(name).arguments(arguments)).await;
    assert_eq!(reply.text(), "found");
}

fn micros(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}
