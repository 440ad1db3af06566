//! `pegboard demo-server`: the built-in MCP server.

use clap::Args;

use super::{command::Run, context::Context};
use crate::{
    demo::{self, DemoOptions},
    exit::Exit,
    output::Report,
};

/// Run the built-in MCP server
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  pegboard demo-server --transport http --listen 127.0.0.1:8080")]
pub(crate) struct DemoServer {
    #[command(flatten)]
    options: DemoOptions,
}

impl Run for DemoServer {
    const OWNS_SERVER_OPTIONS: bool = true;

    async fn run(self, context: Context<'_>) -> Exit {
        match demo::run(self.options).await {
            Ok(()) => Exit::Done,
            Err(error) => {
                let report = Report::new(Exit::Usage).error(&format!("{error:#}"), None);
                context.output.print(&report)
            }
        }
    }
}
