//! Fixtures for tests of a whole board: boards over fake servers, calls, and assertions on replies.

#![allow(
    clippy::allow_attributes,
    dead_code,
    reason = "each test crate uses only some of these helpers"
)]

pub(crate) mod rng;

use std::{path::Path, time::Duration};

use pegboard::{
    Arguments, Config, Pegboard, Reply, ServerConfig, ServerName, ToolCall, Toolset,
    config::{Command, Endpoint, Limits, SafeUrl, Transport},
    in_process::{ByteSink, ByteSource},
};
use pegboard_testkit::{FakeServer, MemoryHandle};
use serde_json::Value;
use tokio::io::DuplexStream;

/// Longer than anything that should happen, shorter than a stuck test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn name(text: &str) -> ServerName {
    ServerName::parse(text).expect("a server name")
}

pub(crate) fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A fake as a stdio server.
pub(crate) fn process(fake: &FakeServer) -> ServerConfig {
    let (program, args) = fake.command();
    let program = program.to_str().expect("a path in UTF-8");
    ServerConfig::new(Transport::Stdio(Command::new(program).args(args)))
}

/// A server at a URL whose transport is left open.
pub(crate) fn at(url: &str) -> ServerConfig {
    ServerConfig::new(Transport::auto(endpoint(url)))
}

pub(crate) fn endpoint(url: &str) -> Endpoint {
    Endpoint::from(SafeUrl::parse(url).expect("a URL"))
}

/// A board with one server, `fx`.
pub(crate) fn board(config: ServerConfig) -> Pegboard {
    boards([("fx", config)])
}

pub(crate) fn boards<const N: usize>(servers: [(&str, ServerConfig); N]) -> Pegboard {
    let mut config = Config::default();
    for (server, settings) in servers {
        config.servers.insert(name(server), settings);
    }
    Pegboard::open(config)
}

/// The settings of an in-process server, with changes.
pub(crate) fn set_to(change: impl FnOnce(&mut ServerConfig)) -> ServerConfig {
    let mut settings = in_process_settings();
    change(&mut settings);
    settings
}

/// Both halves of a stream, as a dialer returns them.
pub(crate) fn halves(stream: DuplexStream) -> (ByteSource, ByteSink) {
    let (read, write) = tokio::io::split(stream);
    (Box::new(read), Box::new(write))
}

/// Opens a new connection to an in-memory server for each dial.
pub(crate) fn dialer(server: &MemoryHandle) -> impl Fn() -> (ByteSource, ByteSink) + Send + Sync + use<> {
    let server = server.clone();
    move || halves(server.connect())
}

/// A board whose in-process server `fx` has the settings that the config gives it, the server's handle, and how many connections the handle
/// counted before the first start.
pub(crate) fn configured_board(mut config: Config, fake: &FakeServer) -> (Pegboard, MemoryHandle, u32) {
    let server = config.servers.remove(&name("fx")).expect("a server");
    // The first connection is not used: each start opens its own.
    let (_unused, handle) = fake.connect();
    let before = handle.starts();
    let board = Pegboard::builder(config)
        .in_process_with(name("fx"), dialer(&handle), server)
        .without_jitter()
        .open();
    (board, handle, before)
}

/// A board with one in-process server, `fx`.
pub(crate) fn in_memory(fake: &FakeServer) -> (Pegboard, MemoryHandle) {
    let (first, handle) = fake.connect();
    let first = pegboard_base::sync::Mutex::new(Some(first));
    let again = handle.clone();
    let dialer = move || {
        let stream = first.lock().take();
        halves(stream.unwrap_or_else(|| again.connect()))
    };
    let board = Pegboard::builder(Config::default())
        .in_process(name("fx"), dialer)
        .open();
    (board, handle)
}

/// A board with one in-process server, `fx`, with these settings and without restart jitter.
pub(crate) fn in_memory_with(fake: &FakeServer, settings: ServerConfig) -> (Pegboard, MemoryHandle) {
    // The first connection is not used, so that a server is started only when the board dials.
    let (_unused, handle) = fake.connect();
    let board = Pegboard::builder(Config::default())
        .in_process_with(name("fx"), dialer(&handle), settings)
        .without_jitter()
        .open();
    (board, handle)
}

/// A board with one server, `fx`, with immediate restarts and no circuit breaker. It lists tools only.
pub(crate) fn restarting_board(server: ServerConfig) -> Pegboard {
    let mut config = Config::default();
    config.servers.insert(name("fx"), server);
    Pegboard::builder(config)
        .tools_only()
        .without_breaker()
        .restart_schedule(vec![Duration::from_millis(10)])
        .expect("a good schedule")
        .open()
}

/// The live processes, besides this one, whose command line contains this path.
pub(crate) fn processes_with(path: &Path) -> Vec<u32> {
    let wanted = path.to_str().expect("a path in UTF-8");
    let own = std::process::id();
    let pids = std::fs::read_dir("/proc").expect("a proc file system").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != own && pegboard_testkit::is_alive(*pid))
        .filter(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(wanted)
        })
        .collect()
}

/// The default settings of an in-process server.
pub(crate) fn in_process_settings() -> ServerConfig {
    ServerConfig::in_process()
}

pub(crate) async fn call(tools: &Toolset, tool: &str, arguments: Value) -> Reply {
    let arguments = Arguments::try_from(arguments).expect("an object");
    tools.call(ToolCall::new(tool).arguments(arguments)).await
}

/// Waits until a process is gone; panics if it takes longer than `limit`.
pub(crate) async fn gone(pid: u32, limit: Duration) {
    let waiting = async {
        while pegboard_testkit::is_alive(pid) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(limit, waiting)
        .await
        .unwrap_or_else(|_| panic!("process {pid} still lives after {limit:?}"));
}

/// Limits with a short connect timeout, for servers that will not answer.
pub(crate) fn short_connect(limit: Duration) -> Limits {
    let mut limits = Limits::default();
    limits.connect_timeout = limit;
    limits
}

/// The pids of all starts that a fake has logged.
pub(crate) fn spawned(log: &Path) -> Vec<u32> {
    pegboard_testkit::read_log(log)
        .map(|log| log.spawned)
        .unwrap_or_default()
}

/// The same server with other limits.
pub(crate) fn with_limits(mut config: ServerConfig, change: impl FnOnce(&mut Limits)) -> ServerConfig {
    change(&mut config.limits);
    config
}

/// Asserts the kind of an outcome and whether the call may have run.
#[track_caller]
pub(crate) fn assert_outcome(reply: &Reply, kind: pegboard::Kind, may_have_executed: bool) {
    let ending = (reply.outcome.kind(), reply.outcome.may_have_executed());
    assert_eq!(ending, (kind, may_have_executed), "{}", reply.text());
}

/// Asserts that a text contains all of `words`.
#[track_caller]
pub(crate) fn assert_contains(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "`{word}` is not in: {text}");
    }
}

/// Waits until the board's first server is ready.
pub(crate) async fn ready(board: &Pegboard) {
    let waiting = async {
        while board.status().servers[0].state != pegboard::State::Ready {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .expect("the server is ready in time");
}

/// A text without its fence, if it has one.
pub(crate) fn unfenced(text: &str) -> &str {
    if !text.starts_with("<untrusted-") {
        return text;
    }
    let (_, text) = text.split_once('\n').expect("a line before the text");
    let (text, _) = text.rsplit_once('\n').expect("a line after the text");
    text
}
