//! Explains why a call was refused: what is said about its server, and what to do.

use pegboard::{Config, Kind, Outcome, Reply, State, status::ServerStatus};

use crate::{commands::needed_variables, settings::Settings};

/// Explains a refusal that a missing server caused: the deadline passed while servers were starting, or all of them need a sign-in.
pub(super) fn explained(mut reply: Reply, servers: &[ServerStatus], is_late: bool) -> Reply {
    let Outcome::Refused(failure) = &mut reply.outcome else {
        return reply;
    };
    let starting = servers.iter().filter(|server| server.state == State::Connecting);
    let starting: Vec<String> = starting.map(|server| format!("`{}`", server.name)).collect();
    let is_without_server = matches!(
        failure.kind,
        Kind::Unavailable | Kind::RestartInProgress | Kind::UnknownTool | Kind::Timeout
    );
    if is_late && is_without_server && !starting.is_empty() {
        failure.kind = Kind::Timeout;
        failure.message = match starting.as_slice() {
            [one] => format!("server {one} was still starting when the time was up"),
            more => format!("servers {} were still starting when the time was up", more.join(", ")),
        };
        // The server is stopped when the command ends, so its own hint to retry would not help.
        let is_named = servers.iter().any(|server| is_of(&reply.asked, server.name.as_str()));
        failure.hint =
            (!is_named).then(|| "name the server, as in `SERVER.TOOL`, so that no other is waited for".to_owned());
    } else if failure.kind == Kind::UnknownTool && !servers.is_empty() {
        let mut enabled = servers.iter().filter(|server| server.state != State::Disabled);
        if enabled.all(|server| server.state == State::NeedsAuth) {
            failure.kind = Kind::NeedsAuth;
            failure.hint = servers
                .iter()
                .find_map(|server| server.last_error.as_ref()?.hint.clone());
        }
    }
    reply
}

/// Names the command that enables the server of a call, if the config disables it.
pub(super) fn disabled(mut reply: Reply, config: &Config) -> Reply {
    let server = reply.server.as_ref().and_then(|name| config.servers.get(name));
    if let (Outcome::Refused(failure), Some(name), Some(false)) =
        (&mut reply.outcome, &reply.server, server.map(|server| server.enabled))
        && failure.kind == Kind::Unavailable
    {
        failure.hint = Some(format!("`pegboard enable {name}` enables it"));
    }
    reply
}

/// Says how the server of a call gets a variable that it has ended for lack of.
pub(super) fn pass_on_variables(reply: &mut Reply, config: &Config) {
    if let (Outcome::Refused(failure), Some(server)) = (&mut reply.outcome, &reply.server)
        && let Some(advice) = needed_variables::advice_for(config, server, &failure.message)
    {
        failure.hint = Some(advice);
    }
}

/// Explains a tool name that is the name of a server, or that of a tool of the demo server where there is none.
pub(super) fn misnamed(mut reply: Reply, settings: &Settings) -> Reply {
    let name = reply.asked.as_str();
    let Outcome::Refused(failure) = &mut reply.outcome else {
        return reply;
    };
    if failure.kind != Kind::UnknownTool {
        return reply;
    }
    if settings.loaded.config.servers.contains_key(name) {
        failure.message = format!("`{name}` is a server, not a tool");
        failure.hint = Some(format!("`pegboard tools {name}` lists its tools"));
    } else if settings.has(name) {
        let complaint = settings.missing(name);
        failure.message = complaint.message;
        failure.hint = complaint.hint;
    } else if let Some(hint) = settings.demo_hint(name) {
        failure.hint = Some(hint.to_owned());
    }
    reply
}

/// Returns `true` if the tool's name has this server's prefix, in any naming style.
pub(super) fn is_of(tool: &str, server: &str) -> bool {
    let styles = [("", "."), ("", "__"), ("mcp__", "__"), ("mcp_", "_")];
    styles.iter().any(|(before, after)| {
        let rest = tool.strip_prefix(before).and_then(|rest| rest.strip_prefix(server));
        rest.is_some_and(|rest| rest.starts_with(after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_any_style_tells_its_server() {
        for tool in ["git.log", "git__log", "mcp__git__log", "mcp_git_log"] {
            assert!(is_of(tool, "git"), "{tool}");
        }
        for tool in ["log", "github.log", "git_log", "mcp.git.log"] {
            assert!(!is_of(tool, "git"), "{tool}");
        }
    }
}
