//! One server: start it, list its tools, call one.
//!
//! `cargo run --example one_server` starts a small fake server, which is this program once more.
//! `cargo run --example one_server -- uvx mcp-server-time` lists the tools of a real one.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use anyhow::ensure;
use pegboard::{
    Arguments, Config, Outcome, Pegboard, ServerConfig, ServerName, ToolCall,
    config::{Command, Transport},
};
use pegboard_testkit::{FakeServer, Tool};
use serde_json::json;

fn main() -> anyhow::Result<()> {
    // Must come first. From here on no server outlives this program, even if it is killed.
    pegboard::shim();
    // Only because this program starts itself as the fake server. Yours does not need it.
    pegboard_testkit::serve_if_asked();
    tokio::runtime::Runtime::new()?.block_on(run())
}

async fn run() -> anyhow::Result<()> {
    let mut words = std::env::args().skip(1);
    let (command, is_fake) = match words.next() {
        Some(program) => (Command::new(program).args(words), false),
        None => (fake()?, true),
    };

    // A config maps names to servers. Most programs load it from a file with `Config::load`; it can also be built in code.
    let mut config = Config::default();
    let name = ServerName::parse("demo")?;
    config
        .servers
        .insert(name, ServerConfig::new(Transport::Stdio(command)));

    // Opening a board never fails and does not wait: the servers start in the background.
    let board = Pegboard::open(config);
    let tools = board.toolset();

    // Listing waits for them up to this limit. Servers that are not ready by then are named, with the reason.
    let listing = tools.list(Duration::from_secs(30)).await;
    for away in &listing.unavailable {
        println!("{} is not there: {}", away.server, away.error);
    }
    for listed in &listing.tools {
        let about = listed.tool.description.as_deref().unwrap_or("(no description)");
        println!("{}: {about}", listed.name);
    }

    if is_fake {
        // The name from the listing. `demo.greet` works as well.
        let arguments = Arguments::parse(r#"{"name": "Ada"}"#)?;
        let reply = tools.call(ToolCall::new("demo__greet").arguments(arguments)).await;

        // Every call has a reply, which tells how it ended.
        match &reply.outcome {
            Outcome::Done(answer) => println!("it answered: {}", answer.text()),
            Outcome::ToolFailed(answer) => println!("the tool failed: {}", answer.text()),
            Outcome::Refused(why) => println!("nothing ran: {}", why.message),
            Outcome::Lost(why) => println!("it may have run: {}", why.message),
        }
        ensure!(reply.text() == "Good morning!", "{}", reply.text());
    }

    // Stops the servers and waits until their processes have exited.
    board.shutdown().await;
    ensure!(!listing.tools.is_empty(), "there are no tools");
    Ok(())
}

/// A server with one tool, so that the example needs nothing installed.
fn fake() -> anyhow::Result<Command> {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let greet = Tool::new("greet").description("Greets a person.").schema(schema);
    let server = FakeServer::new("demo").tool(greet.answers_text("Good morning!"));
    Ok(Command::new(std::env::current_exe()?.to_string_lossy()).args(server.arguments()))
}
