//! The commands that serve the board to other programs, and those around them: `serve`, `mcp`, `health` and `token`.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use clap::{Args, Subcommand};

use super::global::{Global, With, duration};

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to listen, such as 127.0.0.1:7337 or only a port; may be
    /// repeated; instead of `listen` of the config
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Vec<SocketAddr>,
    /// Serve the commands of this user only, at no address
    #[arg(long, conflicts_with_all = ["listen", "no_socket"])]
    pub(crate) socket_only: bool,
    /// Leave the commands of this user alone, and other daemons too
    #[arg(long)]
    pub(crate) no_socket: bool,
    /// End after this time without a client
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) idle: Option<Duration>,
    /// Leave the terminal, and keep this log short
    #[arg(long, value_name = "LOG", hide = true)]
    pub(crate) detached: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    /// Serve this view of the config instead of all tools
    #[arg(long, value_name = "NAME")]
    pub(crate) view: Option<String>,
    /// Start the user's daemon if none runs
    #[arg(long, conflicts_with = "no_daemon")]
    pub(crate) daemon: bool,
    /// How long a daemon started by this stays without a client
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10m", requires = "daemon")]
    pub(crate) idle: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct Health {
    /// Where it listens, instead of `listen` of the config
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// Check that it is ready to take calls, not only alive
    #[arg(long)]
    pub(crate) ready: bool,
}

#[derive(Debug, Args)]
pub(super) struct TokenArgs {
    #[command(subcommand)]
    pub(super) verb: TokenVerb,
    #[command(flatten)]
    pub(super) global: Global,
}

#[derive(Debug, Subcommand)]
pub(super) enum TokenVerb {
    /// Make a token, and the lines for the config that let it in
    #[command(
        after_help = "Examples:\n  pegboard token new laptop\n  pegboard token new ci --view reading --rate 60/min --expires 90d"
    )]
    New(With<TokenNew>),
    /// Print the digest of a token that comes in on stdin
    #[command(after_help = "Example:\n  pegboard token hash < token.txt")]
    Hash(With<TokenHash>),
}

#[derive(Debug, Args)]
pub(crate) struct TokenNew {
    /// Who will use it; the audit log has this name
    pub(crate) name: String,
    /// The only view that it may use
    #[arg(long, value_name = "NAME")]
    pub(crate) view: Option<String>,
    /// What it may do: read, call or admin, or several with commas; read and
    /// call if not given
    #[arg(long, value_name = "SCOPE")]
    pub(crate) scope: Vec<String>,
    /// How often its holder may call tools, such as 60/min
    #[arg(long)]
    pub(crate) rate: Option<String>,
    /// The most calls of its holder at once
    #[arg(long, value_name = "CALLS")]
    pub(crate) concurrent: Option<usize>,
    /// When it expires: 90d from now, or 2027-01-31T12:00Z
    #[arg(long, value_name = "WHEN")]
    pub(crate) expires: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct TokenHash {}

/// An address, or a port of loopback.
pub(super) fn address(text: &str) -> Result<SocketAddr, &'static str> {
    let text = text.trim();
    let port = text.rsplit(':').next().unwrap_or(text);
    if !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()) && port.parse::<u16>().is_err() {
        return Err("the port is too large: ports go up to 65535");
    }
    let port = text.strip_prefix("localhost:").unwrap_or(text).parse::<u16>();
    let local = port.map(|port| SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    text.parse()
        .or(local)
        .map_err(|_| "write an IP address and a port, such as 127.0.0.1:7337 or [::1]:7337")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_one_of_loopback() {
        for (text, expected) in [
            ("8080", "127.0.0.1:8080"),
            ("localhost:8080", "127.0.0.1:8080"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("[::1]:0", "[::1]:0"),
        ] {
            assert_eq!(
                address(text).map(|found| found.to_string()).as_deref(),
                Ok(expected),
                "{text}"
            );
        }
        for text in ["", "example.com:80", "127.0.0.1", ":80"] {
            assert!(
                address(text).unwrap_err().contains("an IP address and a port"),
                "{text}"
            );
        }
        for text in [
            "99999",
            "65536",
            "127.0.0.1:99999",
            "[::1]:123456789012",
            "localhost:70000",
        ] {
            assert!(address(text).unwrap_err().contains("up to 65535"), "{text}");
        }
    }
}
