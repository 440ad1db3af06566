//! A tool's name that begins with the name of no server. No server is started to find that out.

use pegboard::{Config, Failure, Kind, ServerName, pin::PinStore};

use super::super::tools::spelling::find_nearest;
use crate::settings::{self, Settings};

/// The failure for a name like `server.tool` or `server__tool` of which no part is the name of a server. A tool whose own name looks like that is
/// known from an earlier run, or its server was picked with `--server`.
pub(super) fn check(tool: &str, settings: &Settings, config: &Config) -> Option<Failure> {
    let (server, rest) = tool.split_once("__").or_else(|| tool.split_once('.'))?;
    let is_vague = server.is_empty() || rest.is_empty() || settings.picked_servers().next().is_some();
    let all = || config.servers.keys().chain(config.misconfigured.keys());
    if is_vague || all().any(|name| may_be_in(tool, name.as_str())) || is_known(tool, config) {
        return None;
    }
    let near = find_nearest(server, all().map(ServerName::as_str));
    let hint = match (settings.demo_hint(tool), near) {
        (Some(hint), _) => hint.to_owned(),
        (None, Some(near)) => format!("did you mean `{near}.{rest}`? `pegboard tools {near}` lists its tools"),
        (None, None) => "`pegboard list` lists the servers, `pegboard tools` their tools".to_owned(),
    };
    Some(Failure::new(Kind::UnknownTool, format!("there is no server `{server}`")).hint(hint))
}

/// Whether a name may contain a server's in some style of writing: `functions.Git__log`, `git-hub.x`. The server's name must begin and end with words
/// of it.
fn may_be_in(tool: &str, server: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        let words = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let (words, server) = (words(tool), words(server).concat());
    let ends = |start: usize| (start + 1..=words.len()).map(move |end| (start, end));
    (0..words.len())
        .flat_map(ends)
        .any(|(start, end)| words[start..end].concat() == server)
}

/// Whether a server had a tool with this own name in an earlier run.
fn is_known(tool: &str, config: &Config) -> bool {
    let pinned = settings::pins_folder().and_then(|folder| PinStore::new(folder).servers().ok());
    pinned
        .unwrap_or_default()
        .iter()
        .any(|server| config.servers.contains_key(server.server.as_str()) && server.tools.contains_key(tool))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_be_written_in_many_styles() {
        for (tool, server) in [
            ("functions.git__log", "git"),
            ("Git.Log", "git"),
            ("mcp__git-hub__log", "git_hub"),
        ] {
            assert!(may_be_in(tool, server), "{tool}");
        }
        for (tool, server) in [
            ("githb.search", "github"),
            ("demos.calculate", "demo"),
            ("x.y", "x.y.z"),
        ] {
            assert!(!may_be_in(tool, server), "{tool}");
        }
    }
}
