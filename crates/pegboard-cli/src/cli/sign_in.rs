//! The commands for signing in to servers: `login` and `logout`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Login {
    /// The server to sign in to
    pub(crate) server: String,
    /// Only print the address, and take the one that the browser ends at
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Ask for this scope instead of those of the config; may be repeated
    #[arg(long = "scope", value_name = "SCOPE")]
    pub(crate) scopes: Vec<String>,
    /// Sign in for the views of this principal instead of those without one
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Logout {
    /// The server to sign out of
    #[arg(required_unless_present = "all")]
    pub(crate) server: Option<String>,
    /// Sign out of every server
    #[arg(long, conflicts_with = "server")]
    pub(crate) all: bool,
    /// Sign out this principal instead of the views without one
    #[arg(long, value_name = "NAME")]
    pub(crate) principal: Option<String>,
}
