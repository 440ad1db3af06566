//! `cargo bench` in this folder: runs all measurements interleaved and prints a table of medians for each. `README.md` explains them.
//!
//! Options after `--`: `--rounds N` (5), `--ms N` for the longest phase (500), `--only calls,start,memory,oneshot`,
//! `--pegboard PATH` of the command for `oneshot`.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context;
use pegboard_benches::{
    client::{Place, TOOL},
    memory::Counting,
    options,
    round::{Phase, Round},
    table::{Numbers, print, short},
};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const ECHO: &str = env!("CARGO_BIN_EXE_echo");
const CLIENTS: [&str; 5] = ["floor", "rmcp", "session", "board", "whole"];

fn main() -> anyhow::Result<()> {
    pegboard::shim();
    if let Some(round) = options::value("--round") {
        let round = Round::from_json(&serde_json::from_str(&round)?).context("no round")?;
        return round.run();
    }
    let rounds = options::number("--rounds", 5);
    let only = options::value("--only").unwrap_or_else(|| "calls,start,memory,oneshot".to_owned());
    for question in only.split(',') {
        match question {
            "calls" => calls(rounds)?,
            "start" => start(rounds)?,
            "memory" => memory()?,
            "oneshot" => oneshot(rounds)?,
            other => anyhow::bail!("`{other}` is not measured here"),
        }
    }
    Ok(())
}

fn stdio(tools: usize) -> Place {
    Place::Command(vec![
        ECHO.to_owned(),
        "stdio".to_owned(),
        "--tools".to_owned(),
        tools.to_string(),
    ])
}

/// This many servers with 50 tools. Their command lines differ, because the library shares one process among identical ones.
fn stdio_servers(count: usize) -> Vec<Place> {
    let place = |number: usize| match stdio(50) {
        Place::Command(words) => {
            let own = ["--number".to_owned(), number.to_string()];
            Place::Command(words.into_iter().chain(own).collect())
        }
        place => place,
    };
    (0..count).map(place).collect()
}

/// An HTTP server with this many listeners.
struct Http {
    child: Child,
    places: Vec<Place>,
}

impl Http {
    fn start(listeners: usize, tools: usize) -> anyhow::Result<Self> {
        let mut child = Command::new(ECHO)
            .args([
                "http",
                "--listeners",
                &listeners.to_string(),
                "--tools",
                &tools.to_string(),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let lines = BufReader::new(child.stdout.take().context("no output")?)
            .lines()
            .take(listeners);
        let places = lines
            .map(|line| Ok(Place::Url(format!("http://{}/mcp", line?))))
            .collect::<std::io::Result<_>>()?;
        Ok(Self { child, places })
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a round in a separate process.
fn run(round: &Round) -> anyhow::Result<Vec<Value>> {
    let output = Command::new(std::env::current_exe()?)
        .args(["--round", &round.to_json().to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    anyhow::ensure!(output.status.success(), "the round of {} failed", round.client);
    let lines = std::str::from_utf8(&output.stdout)?.lines();
    lines.map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// Calls per second, latency and CPU time of calls.
fn calls(rounds: usize) -> anyhow::Result<()> {
    let limit = Duration::from_millis(options::number("--ms", 500) as u64);
    let phase = |concurrency, bytes, calls| Phase {
        concurrency,
        bytes,
        calls,
        limit,
    };
    let phases = vec![
        phase(4, 100, 2_000),
        phase(1, 100, 50_000),
        phase(16, 100, 100_000),
        phase(64, 100, 100_000),
        phase(1, 10_000, 20_000),
        phase(16, 10_000, 20_000),
        phase(1, 1_000_000, 300),
        phase(16, 1_000_000, 300),
    ];
    let http = Http::start(1, 1)?;
    let mut numbers = Numbers::default();
    let settings = [
        ("stdio", stdio(1), false),
        ("stdio", stdio(1), true),
        ("http", http.places[0].clone(), false),
        ("http", http.places[0].clone(), true),
    ];
    let mut rows = Vec::new();
    for _ in 0..rounds {
        for (wire, place, modern) in &settings {
            for client in CLIENTS {
                let round = Round {
                    client: client.to_owned(),
                    places: vec![place.clone()],
                    modern: *modern,
                    phases: phases.clone(),
                };
                let found = run(&round)?;
                // The first phase is the warm-up.
                for phase in found.iter().filter(|line| line.get("cpu_us").is_some()).skip(1) {
                    let era = if *modern { "2026" } else { "2025" };
                    let row = format!("{wire} {era}, {} B, {} at once", phase["bytes"], phase["concurrency"]);
                    for what in ["calls_per_s", "p50_us", "p99_us", "cpu_us", "allocations"] {
                        numbers.add(&row, client, what, phase[what].as_f64().unwrap_or_default());
                    }
                    if !rows.contains(&row) {
                        rows.push(row);
                    }
                }
            }
        }
    }
    for (what, heading) in [
        ("cpu_us", "processor time per call in µs"),
        ("calls_per_s", "calls per second"),
        ("p50_us", "waiting time in µs, median"),
        ("p99_us", "waiting time in µs, 99th of 100"),
        ("allocations", "allocations per call"),
    ] {
        let mut lines = vec![
            [
                "",
                "floor",
                "rmcp",
                "session",
                "board",
                "whole",
                "board/rmcp",
                "whole/rmcp",
                "board-session",
            ]
            .map(str::to_owned)
            .to_vec(),
        ];
        for row in &rows {
            let of = |client: &str| numbers.median(row, client, what);
            let ratio = |ours| of(ours).zip(of("rmcp")).map(|(ours, theirs)| ours / theirs);
            let around = of("board").zip(of("session")).map(|(whole, part)| whole - part);
            let cells = CLIENTS.iter().map(|client| short(of(client)));
            let last = if what == "calls_per_s" { None } else { around };
            lines.push(
                std::iter::once(row.clone())
                    .chain(cells)
                    .chain([short(ratio("board")), short(ratio("whole")), short(last)])
                    .collect(),
            );
        }
        print(heading, &lines);
    }
    Ok(())
}

/// The time from the start to a list of all tools.
fn start(rounds: usize) -> anyhow::Result<()> {
    let http = Http::start(100, 10)?;
    let settings = [
        ("1 stdio server with 50 tools", vec![stdio(50)]),
        ("20 stdio servers with 50 tools each", stdio_servers(20)),
        ("1 HTTP server with 10 tools", http.places[..1].to_vec()),
        ("100 HTTP servers with 10 tools each", http.places.clone()),
        ("1 stdio server with 10,000 tools", vec![stdio(10_000)]),
    ];
    let mut numbers = Numbers::default();
    for _ in 0..rounds {
        for (row, places) in &settings {
            for client in ["floor", "rmcp", "board"] {
                // The floor has no HTTP listing.
                if client == "floor" && matches!(places[0], Place::Url(_)) {
                    continue;
                }
                let round = Round {
                    client: client.to_owned(),
                    places: places.clone(),
                    modern: false,
                    phases: Vec::new(),
                };
                let found = run(&round)?;
                for what in ["ready_ms", "ready_cpu_ms", "ready_kb"] {
                    numbers.add(row, client, what, found[0][what].as_f64().unwrap_or_default());
                }
            }
        }
    }
    for (what, heading) in [
        ("ready_ms", "from start to listed in ms"),
        ("ready_cpu_ms", "processor time of that in ms"),
        ("ready_kb", "memory after that in kB"),
    ] {
        let mut lines = vec![["", "floor", "rmcp", "board", "board/rmcp"].map(str::to_owned).to_vec()];
        for (row, _) in &settings {
            let (theirs, ours) = (numbers.median(row, "rmcp", what), numbers.median(row, "board", what));
            let ratio = ours.zip(theirs).map(|(ours, theirs)| ours / theirs);
            let floor = numbers.median(row, "floor", what);
            lines.push(vec![
                (*row).to_owned(),
                short(floor),
                short(theirs),
                short(ours),
                short(ratio),
            ]);
        }
        print(heading, &lines);
    }
    Ok(())
}

/// The growth of memory with the number of calls.
fn memory() -> anyhow::Result<()> {
    let mut lines = vec![
        ["20 stdio servers with 50 tools each, memory in kB", "rmcp", "board"]
            .map(str::to_owned)
            .to_vec(),
    ];
    let limit = Duration::from_secs(120);
    let round = |client: &str, calls: usize| Round {
        client: client.to_owned(),
        places: stdio_servers(20),
        modern: false,
        phases: vec![Phase {
            concurrency: 16,
            bytes: 100,
            calls,
            limit,
        }],
    };
    for calls in [1_000, 100_000] {
        let mut line = vec![format!("after {calls} calls")];
        for client in ["rmcp", "board"] {
            let found = run(&round(client, calls))?;
            line.push(short(found.last().and_then(|end| end["end_kb"].as_f64())));
        }
        lines.push(line);
    }
    print("memory", &lines);
    Ok(())
}

/// One call by the command, compared with the server's own start, handshake and response.
fn oneshot(rounds: usize) -> anyhow::Result<()> {
    let Some(pegboard) = options::value("--pegboard") else {
        println!("\none-shot calls are measured with --pegboard PATH");
        return Ok(());
    };
    let file = std::env::temp_dir().join(format!("pegboard-oneshot-{}.json", std::process::id()));
    let config = json!({ "mcpServers": { "s0": { "command": ECHO, "args": ["stdio", "--tools", "50"] } } });
    std::fs::write(&file, config.to_string())?;
    let mut numbers = Numbers::default();
    for _ in 0..rounds.max(5) * 3 {
        let began = Instant::now();
        let status = Command::new(&pegboard)
            .arg("--config")
            .arg(&file)
            .args(["call", &format!("s0.{TOOL}"), "n=100"])
            .stdout(Stdio::null())
            .status()?;
        anyhow::ensure!(status.success(), "the command failed");
        numbers.add("", "board", "ms", began.elapsed().as_secs_f64() * 1e3);
        let began = Instant::now();
        pegboard_benches::floor::Floor::connect(&stdio(50), 1)?.calls(1, 100, &mut Vec::new())?;
        numbers.add("", "floor", "ms", began.elapsed().as_secs_f64() * 1e3);
    }
    std::fs::remove_file(&file)?;
    let (floor, board) = (numbers.median("", "floor", "ms"), numbers.median("", "board", "ms"));
    let lines = [
        vec![String::new(), "floor".to_owned(), "pegboard call".to_owned()],
        vec![
            "start, handshake, one call, end in ms".to_owned(),
            short(floor),
            short(board),
        ],
    ];
    print("one-shot", &lines);
    Ok(())
}
