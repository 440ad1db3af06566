//! The arguments of the commands that change the servers of a config file.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// The name of the new server
    pub(crate) name: String,
    /// Its URL, or a program without arguments
    #[arg(value_name = "URL")]
    pub(crate) target: Option<String>,
    /// The program and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// stdio, http, sse or websocket; else by the URL
    #[arg(short, long, value_name = "KIND", value_parser = ["stdio", "http", "sse", "websocket", "ws"], hide_possible_values = true)]
    pub(crate) transport: Option<String>,
    /// Send the token in this variable as a bearer token
    #[arg(long, value_name = "VAR")]
    pub(crate) bearer_env: Option<String>,
    /// What the server is for
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Show only these tools; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) allow: Vec<String>,
    /// Hide these tools; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub(crate) deny: Vec<String>,
    /// Add it, but do not use it yet
    #[arg(long)]
    pub(crate) disabled: bool,
    /// Connect to it and list its tools
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

#[derive(Debug, Args)]
pub(crate) struct AddJson {
    /// The name of the new server
    pub(crate) name: String,
    /// Its settings as JSON; @FILE reads a file, - stdin
    #[arg(value_name = "JSON")]
    pub(crate) json: String,
    /// Connect to it and list its tools
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) writing: Writing,
}

/// How a server is written.
#[derive(Debug, Args)]
pub(crate) struct Writing {
    /// Write to the config file of the project here
    #[arg(long, conflicts_with = "configs")]
    pub(crate) project: bool,
    /// Replace a server of that name
    #[arg(long)]
    pub(crate) force: bool,
    /// Say what would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Named {
    /// The servers
    #[arg(value_name = "NAME", required = true)]
    pub(crate) names: Vec<String>,
    /// Say what would be changed, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Rename {
    /// The server
    pub(crate) old: String,
    /// Its new name
    pub(crate) new: String,
    /// Say what would be changed, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Get {
    /// The server
    pub(crate) name: String,
}
