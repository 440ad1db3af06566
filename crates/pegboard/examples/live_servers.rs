//! Servers come and go while the program runs: it adds some, one fails and recovers, one is removed. States, events and metrics are shown as
//! they change.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use anyhow::{Context as _, ensure};
use pegboard::{
    Config, Event, Events, Kind, Pegboard, ServerConfig, ServerName, State, ToolCall,
    config::{Endpoint, Transport},
};
use pegboard_testkit::{FakeServer, Tool, refused_address};
use tokio::time::timeout;

/// How long to wait for an event. Longer than any change here takes.
const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // Two MCP servers on the network; here fakes on loopback ports.
    let weather = FakeServer::new("weather").tool(Tool::new("forecast").read_only().answers_text("18 °C, rain"));
    let trains = FakeServer::new("trains").tool(Tool::new("next").read_only().answers_text("10:42, on time"));
    let (weather, trains) = (weather.serve_http().await?, trains.serve_http().await?);

    // A board without servers. Subscribe before the first change, because events are not kept.
    let board = Pegboard::open(Config::default());
    let mut events = board.events();
    let tools = board.toolset();

    // `connect` returns when the server is ready, or says why it is not.
    for (name, url) in [("weather", weather.url()), ("trains", trains.url())] {
        board.connect(name, at(&url)?).await?;
        show_until(&mut events, |event| is(event, name, State::Ready)).await?;
    }
    show(&board);

    // Open toolsets see new servers at once.
    let reply = tools.call(ToolCall::new("weather.forecast")).await;
    ensure!(reply.text() == "18 °C, rain", "{}", reply.text());
    show_until(&mut events, |event| matches!(event, Event::CallCompleted { .. })).await?;

    // `connect` also replaces a server. Nothing listens at this address, so the working one stays.
    let nowhere = format!("http://{}/mcp", refused_address().await?);
    let refused = board.connect("weather", at(&nowhere)?).await;
    println!("{}", refused.err().context("nothing listens there")?);

    // A server fails. A call gets a reply that says so.
    weather.stop().await;
    let reply = tools.call(ToolCall::new("weather.forecast")).await;
    println!("weather is stopped: {}", reply.text());
    ensure!(reply.outcome.kind() != Kind::Ok);
    // An operator restarts it. That fails too, and the board tries again by itself until the server is back.
    board.reconnect("weather").await;
    show_until(&mut events, |event| is(event, "weather", State::Down)).await?;
    weather.restart().await?;
    show_until(&mut events, |event| is(event, "weather", State::Ready)).await?;
    let reply = tools.call(ToolCall::new("weather.forecast")).await;
    ensure!(!reply.is_error(), "{}", reply.text());

    // A server is disabled for a while, and another one is removed.
    let trains_name: ServerName = "trains".parse()?;
    ensure!(board.disable("weather").await);
    show_until(&mut events, |event| is(event, "weather", State::Disabled)).await?;
    ensure!(board.disconnect(&trains_name).await);
    let gone = tools.call(ToolCall::new("trains.next")).await;
    println!("trains is removed: {}", gone.text());
    ensure!(gone.outcome.kind() == Kind::UnknownTool);
    show(&board);

    // The counters of a server outlive it.
    let metrics = board.metrics();
    ensure!(metrics.servers.contains_key(&trains_name));
    board.shutdown().await;
    Ok(())
}

fn at(url: &str) -> anyhow::Result<ServerConfig> {
    Ok(ServerConfig::new(Transport::auto(Endpoint::new(url)?)))
}

/// Prints events as they happen, up to the first that `is_last` accepts.
async fn show_until(events: &mut Events, is_last: impl Fn(&Event) -> bool) -> anyhow::Result<()> {
    loop {
        let event = timeout(PATIENCE, events.next()).await.context("the event is missing")?;
        let event = event.context("the board is gone")?;
        match &event {
            Event::ServerChanged {
                server,
                from,
                state,
                reason,
                ..
            } => {
                let why = reason.as_deref().unwrap_or("no fault");
                println!("  {server}: {} → {} ({why})", from.as_str(), state.as_str());
            }
            Event::CallCompleted {
                name, kind, latency_ms, ..
            } => {
                println!("  {name} ended as {} after {latency_ms:.1} ms", kind.as_str());
            }
            _ => {}
        }
        if is_last(&event) {
            return Ok(());
        }
    }
}

fn is(event: &Event, name: &str, wanted: State) -> bool {
    matches!(event, Event::ServerChanged { server, state, .. } if server.as_str() == name && *state == wanted)
}

/// Prints a table of all servers. A dashboard would read the same snapshots.
fn show(board: &Pegboard) {
    let (status, metrics) = (board.status(), board.metrics());
    println!("server     state        tools  calls  failed  starts failed  median ms");
    for server in &status.servers {
        let counted = metrics.servers.get(&server.name).cloned().unwrap_or_default();
        let median = counted.calls.latency.quantile_ms(0.5).unwrap_or_default();
        println!(
            "{:10} {:12} {:5} {:6} {:7} {:14} {:10.1}",
            server.name.as_str(),
            server.state.as_str(),
            server.tools,
            counted.calls.total,
            counted.calls.failed,
            counted.failed_starts,
            median,
        );
    }
    let word = if status.healthy { "healthy" } else { "not healthy" };
    println!("the board is {word}; {} views are open", metrics.views_open);
}
