//! `cargo bench --bench gateway` in this folder: calls through `pegboard serve`, beside the same calls through a hand-written relay that does
//! nothing else, interleaved and as medians. Then, how soon requests are refused when there are five times as many as may be in flight.
//! `README.md` explains them.
//!
//! Options after `--`: `--pegboard PATH` of the command (required), `--rounds N` (5), `--ms N` per phase (1000).

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use pegboard_benches::{
    client::TOOL,
    options,
    table::{Numbers, print, short},
    times::Times,
};

const ECHO: &str = env!("CARGO_BIN_EXE_echo");
const RELAY: &str = env!("CARGO_BIN_EXE_relay");
/// Calls at once, and bytes of each result.
const PHASES: [(usize, usize); 6] = [
    (1, 100),
    (16, 100),
    (64, 100),
    (1, 10_240),
    (16, 10_240),
    (1, 1_000_000),
];

fn main() -> anyhow::Result<()> {
    let pegboard = options::value("--pegboard").context("name the command with --pegboard PATH")?;
    let (rounds, length) = (
        options::number("--rounds", 5),
        Duration::from_millis(options::number("--ms", 1000) as u64),
    );
    let mut numbers = Numbers::default();
    for _ in 0..rounds {
        for name in ["relay", "pegboard"] {
            let gateway = Gateway::start(name, &pegboard)?;
            for (concurrency, bytes) in PHASES {
                let row = row(concurrency, bytes);
                gateway.load(concurrency, bytes, Duration::from_millis(100))?;
                let busy = gateway.cpu()?;
                let (calls, took, times) = gateway.load(concurrency, bytes, length)?;
                let busy = gateway.cpu()? - busy;
                numbers.add(&row, name, "calls", calls as f64 / took.as_secs_f64());
                numbers.add(&row, name, "p50", times.at(0.5));
                numbers.add(&row, name, "p99", times.at(0.99));
                numbers.add(&row, name, "cpu", busy * 1e6 / calls as f64);
            }
        }
    }
    report(&numbers);
    overload(&pegboard, length)
}

/// The most requests in flight in the measurement of refusals.
const CAPACITY: usize = 64;

/// Measures how long refusals take while five times as many requests are under way as the gateway admits.
fn overload(pegboard: &str, length: Duration) -> anyhow::Result<()> {
    let gateway = Gateway::start_pegboard(pegboard, &format!("[serve]\nmax_in_flight = {CAPACITY}\n"))?;
    let (refused, served) = gateway.overload(5 * CAPACITY, length)?;
    let line = |name: &str, times: &Times| {
        vec![
            name.to_owned(),
            times.count().to_string(),
            short(Some(times.at(0.5))),
            short(Some(times.at(0.99))),
        ]
    };
    let heads = ["", "requests", "p50 µs", "p99 µs"].map(str::to_owned).to_vec();
    let lines = [heads, line("refused", &refused), line("served", &served)];
    print(
        &format!("{} requests at once, {CAPACITY} admitted", 5 * CAPACITY),
        &lines,
    );
    Ok(())
}

fn row(concurrency: usize, bytes: usize) -> String {
    format!("{bytes} B, {concurrency} at once")
}

fn report(numbers: &Numbers) {
    let mut lines = vec![
        [
            "",
            "relay/s",
            "pegboard/s",
            "ratio",
            "p50 µs",
            "p99 µs",
            "CPU µs relay",
            "CPU µs pegboard",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for (concurrency, bytes) in PHASES {
        let row = row(concurrency, bytes);
        let number = |client: &str, what: &str| numbers.median(&row, client, what);
        let ratio = number("pegboard", "calls")
            .zip(number("relay", "calls"))
            .map(|(ours, base)| ours / base);
        lines.push(vec![
            row.clone(),
            short(number("relay", "calls")),
            short(number("pegboard", "calls")),
            short(ratio),
            short(number("pegboard", "p50")),
            short(number("pegboard", "p99")),
            short(number("relay", "cpu")),
            short(number("pegboard", "cpu")),
        ]);
    }
    print("calls through a gateway", &lines);
}

/// A gateway with one echo server behind it.
struct Gateway {
    child: Child,
    address: String,
    tool: String,
    _folder: Option<Folder>,
}

/// A home folder for the command, removed at the end.
struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Gateway {
    fn start(name: &str, pegboard: &str) -> anyhow::Result<Self> {
        if name == "relay" {
            let mut child = Command::new(RELAY)
                .args([ECHO, "stdio"])
                .stdout(Stdio::piped())
                .spawn()?;
            let mut address = String::new();
            BufReader::new(child.stdout.take().context("no output")?).read_line(&mut address)?;
            let gateway = Self {
                child,
                address: address.trim().to_owned(),
                tool: TOOL.to_owned(),
                _folder: None,
            };
            return Ok(gateway);
        }
        Self::start_pegboard(pegboard, "")
    }

    /// Starts the command, with further settings.
    fn start_pegboard(pegboard: &str, settings: &str) -> anyhow::Result<Self> {
        let folder = std::env::temp_dir().join(format!("pegboard-bench-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let config = folder.join("pegboard.toml");
        std::fs::write(
            &config,
            format!("{settings}[servers.echo]\ncommand = {ECHO:?}\nargs = [\"stdio\"]\n"),
        )?;
        let mut child = Command::new(pegboard)
            .arg("--config")
            .arg(&config)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env("HOME", &folder)
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stderr = BufReader::new(child.stderr.take().context("no stderr")?).lines();
        let address = loop {
            let line = stderr.next().context("the gateway ended")??;
            if let Some((_, url)) = line.split_once("http://") {
                break url.split('/').next().unwrap_or_default().to_owned();
            }
        };
        // The pipe must be read, or the gateway waits.
        std::thread::spawn(move || stderr.for_each(drop));
        let gateway = Self {
            child,
            address,
            tool: format!("echo__{TOOL}"),
            _folder: Some(Folder(folder)),
        };
        gateway.until_ready()?;
        Ok(gateway)
    }

    /// Waits until the server behind the gateway answers.
    fn until_ready(&self) -> anyhow::Result<()> {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(20) {
            if self.load(1, 100, Duration::from_millis(1)).is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("the server behind the gateway does not answer")
    }

    /// Keeps this many calls under way. Returns their number, how long it took, and their latencies.
    fn load(&self, concurrency: usize, bytes: usize, length: Duration) -> anyhow::Result<(usize, Duration, Times)> {
        let request = self.request(bytes);
        let mut sockets = (0..concurrency)
            .map(|_| self.connect())
            .collect::<anyhow::Result<Vec<_>>>()?;
        let (began, mut calls, mut times, mut body) = (Instant::now(), 0, Times::default(), Vec::new());
        let mut sent = vec![began; concurrency];
        for (socket, sent) in sockets.iter_mut().zip(&mut sent) {
            *sent = Instant::now();
            socket.get_mut().write_all(request.as_bytes())?;
        }
        // Each response is followed by the next request on its connection, so that as many calls stay under way.
        loop {
            let is_over = began.elapsed() >= length;
            for (socket, sent) in sockets.iter_mut().zip(&mut sent) {
                read_response(socket, &mut body)?;
                times.add(sent.elapsed().as_secs_f64() * 1e6);
                calls += 1;
                if body.len() < bytes {
                    bail!("a short response: {}", String::from_utf8_lossy(&body));
                }
                if !is_over {
                    *sent = Instant::now();
                    socket.get_mut().write_all(request.as_bytes())?;
                }
            }
            if is_over {
                return Ok((calls, began.elapsed(), times));
            }
        }
    }

    /// Sends requests one after another on each of this many connections. Returns the latencies of those that were refused with a time to come
    /// back, and of those that were served.
    fn overload(&self, connections: usize, length: Duration) -> anyhow::Result<(Times, Times)> {
        let request = self.request(100);
        let one = || -> anyhow::Result<(Times, Times)> {
            let (mut refused, mut served, mut body) = (Times::default(), Times::default(), Vec::new());
            let (mut socket, began) = (self.connect()?, Instant::now());
            while began.elapsed() < length {
                let sent = Instant::now();
                socket.get_mut().write_all(request.as_bytes())?;
                let head = read_response(&mut socket, &mut body)?;
                let took = sent.elapsed().as_secs_f64() * 1e6;
                match (head.status, head.retry_after) {
                    (200, _) => served.add(took),
                    (503, true) => refused.add(took),
                    (status, _) => bail!("{status}: {}", String::from_utf8_lossy(&body)),
                }
            }
            Ok((refused, served))
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..connections).map(|_| scope.spawn(one)).collect();
            let (mut refused, mut served) = (Times::default(), Times::default());
            for thread in threads {
                let (more_refused, more_served) = thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
                refused.add_all(&more_refused);
                served.add_all(&more_served);
            }
            Ok((refused, served))
        })
    }

    fn connect(&self) -> anyhow::Result<BufReader<TcpStream>> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        Ok(BufReader::with_capacity(64 << 10, stream))
    }

    fn request(&self, bytes: usize) -> String {
        let tool = &self.tool;
        let meta =
            r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"n":{bytes}}},"_meta":{{{meta}}}}}}}"#
        );
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\n\
             MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
    }

    /// The processor time of the gateway so far, without its servers, in seconds.
    fn cpu(&self) -> anyhow::Result<f64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect();
        let ticks: f64 = fields[11].parse::<f64>()? + fields[12].parse::<f64>()?;
        Ok(ticks / 100.0)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

/// What is read of the head of a response.
#[derive(Default)]
struct Head {
    status: u16,
    retry_after: bool,
}

/// Reads a response with a length into `body`.
fn read_response(socket: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> anyhow::Result<Head> {
    let (mut line, mut length, mut head) = (String::new(), 0, Head::default());
    loop {
        line.clear();
        if socket.read_line(&mut line)? == 0 {
            bail!("the gateway closed the connection");
        }
        let text = line.trim_end();
        if text.is_empty() {
            break;
        }
        if let Some(status) = text.strip_prefix("HTTP/1.1 ") {
            head.status = status.split(' ').next().unwrap_or_default().parse()?;
        }
        let Some((name, value)) = text.split_once(':') else {
            continue;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse()?;
        }
        head.retry_after |= name.eq_ignore_ascii_case("retry-after");
    }
    body.resize(length, 0);
    socket.read_exact(body)?;
    Ok(head)
}
