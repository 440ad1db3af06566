//! The `pegboard` command.

mod demo;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the built-in demo MCP server
    DemoServer(demo::DemoOptions),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let Command::DemoServer(options) = Cli::parse().command;
    demo::run(options).await
}
