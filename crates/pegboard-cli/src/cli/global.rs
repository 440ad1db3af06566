//! The options that every command has.

use std::{path::PathBuf, time::Duration};

use clap::{ArgAction, Args, ValueEnum};

use super::values::duration;

/// The options that may stand before or after a command's name. Lists from both places are joined; of other options the later wins.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Global {
    /// Config file; may be repeated, later ones win
    #[arg(short, long = "config", value_name = "FILE")]
    pub(crate) configs: Vec<PathBuf>,
    /// NAME=COMMAND or NAME=URL adds one, NAME picks one
    #[arg(long = "server", value_name = "SERVER")]
    pub(crate) servers: Vec<String>,
    /// Send this header to the added one; may be repeated
    #[arg(long = "header", value_name = "HEADER", hide = true)]
    pub(crate) headers: Vec<String>,
    /// Set this variable of the added one; may be repeated
    #[arg(long = "env", value_name = "NAME=VALUE", hide = true)]
    pub(crate) env: Vec<String>,
    /// The working folder of the added one
    #[arg(long = "cwd", value_name = "FOLDER", hide = true)]
    pub(crate) cwds: Vec<String>,
    /// The server of this run with what the three options above set, as a config in JSON.
    #[arg(skip)]
    pub(crate) added_settings: Option<String>,
    /// Use the project file without approval, this time
    #[arg(long)]
    pub(crate) trust: bool,
    /// Start the servers here even if a daemon has them
    #[arg(long)]
    pub(crate) no_daemon: bool,
    /// Print text for people or json for programs
    #[arg(short, long, value_enum, hide_possible_values = true, value_name = "text|json")]
    output: Option<Format>,
    /// Limit for the whole command, such as 30s or 2m
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub(crate) timeout: Option<Duration>,
    /// Say more; repeat it for more still
    #[arg(short, long, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Say less
    #[arg(short, long, action = ArgAction::Count)]
    pub(crate) quiet: u8,
    /// Never show long texts in a pager
    #[arg(long, hide = true)]
    pub(crate) no_pager: bool,
    /// Log lines to show, such as debug or pegboard=trace
    #[arg(long, value_name = "FILTER")]
    pub(crate) log: Option<String>,
    /// Write log lines as text or as json for programs
    #[arg(long, value_enum, value_name = "text|json", hide_possible_values = true, hide = true)]
    pub(crate) log_format: Option<LogFormat>,
    /// Append all messages with servers to a file, masked
    #[arg(long, value_name = "FILE")]
    pub(crate) trace_wire: Option<PathBuf>,
}

impl Global {
    /// The output format.
    pub(crate) fn format(&self) -> Format {
        self.output.unwrap_or(Format::Text)
    }

    /// Merges these options over those `before` them.
    pub(crate) fn merge_over(mut self, before: Self) -> Self {
        self.configs.splice(..0, before.configs);
        self.servers.splice(..0, before.servers);
        self.headers.splice(..0, before.headers);
        self.env.splice(..0, before.env);
        self.cwds.splice(..0, before.cwds);
        Self {
            trust: self.trust || before.trust,
            no_pager: self.no_pager || before.no_pager,
            no_daemon: self.no_daemon || before.no_daemon,
            output: self.output.or(before.output),
            timeout: self.timeout.or(before.timeout),
            verbose: self.verbose.saturating_add(before.verbose),
            quiet: self.quiet.saturating_add(before.quiet),
            log: self.log.or(before.log),
            log_format: self.log_format.or(before.log_format),
            trace_wire: self.trace_wire.or(before.trace_wire),
            ..self
        }
    }
}

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    /// The result of a call or the contents of a resource alone. For other commands the same as text.
    Raw,
}

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// The output format of a command that can print its result alone.
pub(crate) fn or_raw(arg: clap::Arg) -> clap::Arg {
    // A longer name would move the column of all options.
    arg.value_name("FORMAT")
        .help("Print text, json, or raw: the result alone")
}

/// Leaves the options that mean nothing to a command that only edits files out of its help.
pub(crate) fn hide_unless_for_files(arg: clap::Arg) -> clap::Arg {
    let is_other = matches!(
        arg.get_id().as_str(),
        "servers" | "headers" | "env" | "cwds" | "trust" | "no_daemon" | "verbose" | "quiet" | "log" | "log_format"
    );
    arg.hide(is_other)
}
