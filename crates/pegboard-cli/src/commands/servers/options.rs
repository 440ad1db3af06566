//! The arguments and options of `add` and `add-json`.

use clap::Args;

/// Add a server to the config file
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  pegboard add time -- uvx mcp-server-time\n  \
                  pegboard add linear https://mcp.linear.app/mcp --header 'X-Team: core'\n  \
                  pegboard add github --env TOKEN='${GITHUB_TOKEN}' -- npx -y PACKAGE\n  pegboard add notes.mcpb")]
pub(crate) struct Add {
    /// The name of the new server, or an MCP bundle
    pub(super) name: String,
    /// Its URL, or a program without arguments
    #[arg(value_name = "URL")]
    pub(super) target: Option<String>,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
    /// stdio, http, sse or websocket; else by the URL
    #[arg(short, long, value_name = "KIND", value_parser = ["stdio", "http", "sse", "websocket", "ws"], hide_possible_values = true)]
    pub(super) transport: Option<String>,
    /// Send the token in this variable as a bearer token
    #[arg(long, value_name = "VAR")]
    pub(super) bearer_env: Option<String>,
    /// What the server is for
    #[arg(long, value_name = "TEXT")]
    pub(super) description: Option<String>,
    /// Show only these tools; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub(super) allow: Vec<String>,
    /// Hide these tools; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub(super) deny: Vec<String>,
    /// Add it, but do not use it yet
    #[arg(long)]
    pub(super) disabled: bool,
    /// Connect to it and list its tools
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) check: bool,
    /// A setting of the bundle; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub(super) set: Vec<String>,
    /// The name of the bundle's server
    #[arg(id = "as_name", long = "name", value_name = "NAME")]
    pub(super) as_name: Option<String>,
    /// Add the bundle without a question
    #[arg(long)]
    pub(super) yes: bool,
    #[command(flatten)]
    pub(super) writing: Writing,
}

/// Add a server whose settings are given as JSON
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  pegboard add-json time '{\"command\": \"uvx\", \"args\": [\"mcp-server-time\"]}'\n  \
                  pegboard add-json linear @linear.json"
)]
pub(crate) struct AddJson {
    /// The name of the new server
    pub(super) name: String,
    /// Its settings as JSON; @FILE reads a file, - stdin
    #[arg(value_name = "JSON")]
    pub(super) json: String,
    /// Connect to it and list its tools
    #[arg(long, conflicts_with = "dry_run")]
    pub(super) check: bool,
    #[command(flatten)]
    pub(super) writing: Writing,
}

/// How a server is written.
#[derive(Debug, Args)]
pub(super) struct Writing {
    /// Write to the config file of the project here
    #[arg(long, conflicts_with = "configs")]
    pub(super) project: bool,
    /// Replace a server of that name
    #[arg(long)]
    pub(super) force: bool,
    /// Say what would be written, and write nothing
    #[arg(long)]
    pub(super) dry_run: bool,
}
