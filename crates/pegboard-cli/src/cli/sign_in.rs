//! The commands for signing in to servers: `login` and `logout`.

use clap::Args;

#[derive(Debug, Args)]
#[command(override_usage = "pegboard login [OPTIONS] SERVER\n       pegboard login --list")]
pub(crate) struct Login {
    /// The server to sign in to
    #[arg(required_unless_present = "list")]
    pub(crate) server: Option<String>,
    /// Only print the address, and take a pasted redirect
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Scope to ask for; repeat it, or use spaces
    #[arg(long = "scope", value_name = "SCOPE", value_parser = scopes)]
    pub(crate) scopes: Vec<String>,
    /// Sign in for the views of this principal
    #[arg(long, value_name = "NAME", value_parser = principal)]
    pub(crate) principal: Option<String>,
    /// Register at the authorization server anew
    #[arg(long)]
    pub(crate) new_client: bool,
    /// Only list who has signed in to which server
    #[arg(long, conflicts_with_all = ["no_browser", "scopes", "new_client"])]
    pub(crate) list: bool,
}

impl Login {
    /// The server to sign in to.
    pub(crate) fn server(&self) -> &str {
        self.server.as_deref().unwrap_or_default()
    }
}

#[derive(Debug, Args)]
#[command(override_usage = "pegboard logout [OPTIONS] SERVER\n       pegboard logout --all")]
pub(crate) struct Logout {
    /// The server to sign out of
    #[arg(required_unless_present = "all")]
    pub(crate) server: Option<String>,
    /// End every sign-in, those of principals too
    #[arg(long, conflicts_with = "server")]
    pub(crate) all: bool,
    /// Sign out this principal instead of the views without one
    #[arg(long, value_name = "NAME", value_parser = principal)]
    pub(crate) principal: Option<String>,
}

fn principal(text: &str) -> Result<String, &'static str> {
    if text.is_empty() {
        return Err("it is empty; leave the option out for the views without a principal");
    }
    if text.trim() != text || text.chars().any(char::is_control) {
        return Err("it has spaces around it, or control characters");
    }
    Ok(text.to_owned())
}

/// One scope, or several with spaces between them.
fn scopes(text: &str) -> Result<String, &'static str> {
    let is_allowed = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\\');
    let mut scopes = text.split_ascii_whitespace().peekable();
    if scopes.peek().is_none() {
        return Err("it is empty; leave the option out for the scopes of the config or the server");
    }
    match scopes.all(|scope| scope.chars().all(is_allowed)) {
        true => Ok(text.to_owned()),
        false => Err("a scope has ASCII characters only, and no quote or backslash"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_scopes_that_mean_nothing_are_refused() {
        for name in ["", " ", " alice", "al\nice"] {
            assert!(principal(name).is_err(), "{name:?}");
        }
        assert_eq!(principal("alice b").as_deref(), Ok("alice b"));
        for text in ["", "  ", "a\"b", "a é"] {
            assert!(scopes(text).is_err(), "{text:?}");
        }
        assert_eq!(scopes("read repo:write").as_deref(), Ok("read repo:write"));
    }
}
