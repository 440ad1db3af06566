//! Explains why a tool name cannot be resolved, so that a model can find the right one.

use std::borrow::Cow;

use pegboard_base::name::{self, ServerName};
use pegboard_tools::outcome::{Failure, Kind};

/// How many names are suggested for an unknown one.
const SUGGESTIONS: usize = 3;
/// How many servers or tools are listed.
const LISTED: usize = 20;
/// The longest name that others are compared with, and that is repeated in full: the time to compare grows with its length for every tool.
const LONGEST: usize = 256;
/// How similar two names must be, from 0 to 1, for one to be suggested for the other.
const LIKENESS: f64 = 0.75;

/// A tool that can be suggested.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownName<'a> {
    pub(super) server: &'a str,
    pub(super) tool: &'a str,
    /// The name that the reader knows the tool by. Otherwise it is `server.tool`.
    pub(super) listed: Option<&'a String>,
}

impl KnownName<'_> {
    fn display_name(&self) -> String {
        let listed = self.listed.cloned();
        listed.unwrap_or_else(|| name::format_dotted(self.server, self.tool))
    }
}

/// The failure for an unknown name.
pub(super) fn unknown_name_failure(name: &str, tools: &[KnownName<'_>], servers: &[&ServerName]) -> Failure {
    let shown = excerpt(name).escape_debug();
    let server = servers.iter().find(|server| may_belong_to(name, server));
    let mut names = String::new();
    let close = find_closest(name, tools);
    if !close.is_empty() {
        let close: Vec<_> = close.iter().map(|name| format!("`{name}`")).collect();
        names.push_str(&format!("The closest names are {}. ", close.join(", ")));
    }
    if let Some(server) = server {
        let tools = tools
            .iter()
            .filter(|known| known.server == server.as_str())
            .map(|known| known.listed.map_or(known.tool, String::as_str));
        names.push_str(&format!(
            "Available tools of server `{server}`: {}. ",
            list_names(tools)
        ));
    }
    names.push_str(&format!(
        "Available servers: {}.",
        list_names(servers.iter().map(|server| server.as_str()))
    ));
    let hint = match (close.first(), server) {
        (Some(close), Some(server)) => format!("did you mean `{close}`? `pegboard tools {server}` lists its tools"),
        (Some(close), None) => format!("did you mean `{close}`?"),
        (None, Some(server)) => format!("`pegboard tools {server}` lists its tools"),
        (None, None) if servers.is_empty() => "no server with tools is configured".to_owned(),
        (None, None) => "`pegboard tools` lists what there is".to_owned(),
    };
    let message = format!("there is no tool `{shown}`");
    Failure::new(Kind::UnknownTool, message).for_models(names).hint(hint)
}

/// Lists the first names and counts the rest.
pub(crate) fn list_names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.len() {
        0 => "none".to_owned(),
        many if many <= LISTED => names.join(", "),
        many => format!("{} and {} more", names[..LISTED].join(", "), many - LISTED),
    }
}

/// The beginning of a name that is too long to be one.
fn excerpt(name: &str) -> &str {
    &name[..name.floor_char_boundary(LONGEST)]
}

/// The most similar names, best first.
fn find_closest(name: &str, tools: &[KnownName<'_>]) -> Vec<String> {
    if name.len() > LONGEST {
        return Vec::new();
    }
    let likeness = |known: &KnownName<'_>| {
        let (server, tool, shown) = (known.server, known.tool, known.display_name());
        // Compared without the server's name: if that is correct, every tool of the server would look similar.
        let bare_name = after_server(name, server).into_iter().flatten().next();
        let likeness = match bare_name {
            Some(bare_name) => strsim::jaro_winkler(bare_name, tool),
            None => strsim::jaro_winkler(name, tool).max(strsim::normalized_levenshtein(name, &shown)),
        };
        (likeness > LIKENESS).then_some((likeness, shown))
    };
    let mut close: Vec<(f64, String)> = tools.iter().filter_map(likeness).collect();
    close.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    close.into_iter().take(SUGGESTIONS).map(|(_, name)| name).collect()
}

/// The part of `name` after the server's name, for each style in which it starts with it.
fn after_server<'a>(name: &'a str, server: &str) -> [Option<&'a str>; 4] {
    let after =
        |prefix: &str, separator: &str| name.strip_prefix(prefix)?.strip_prefix(server)?.strip_prefix(separator);
    [
        after("", "."),
        after("", "__"),
        after("mcp__", "__"),
        after("mcp_", "_"),
    ]
}

/// Returns whether `name` may belong to `server`, whose tools are not known yet.
pub(crate) fn may_belong_to(name: &str, server: &ServerName) -> bool {
    after_server(name, server.as_str()).iter().any(Option::is_some)
}

/// Returns the tool of `server` that `name` identifies in the first matching style, whether the server has it or not. For reports only:
/// calls are routed by lookup.
pub(crate) fn tool_part<'a>(name: &'a str, server: &ServerName) -> Option<&'a str> {
    let tool = after_server(name, server.as_str()).into_iter().flatten().next();
    tool.filter(|tool| !tool.is_empty())
}

/// The failure for a name that several tools have.
pub(crate) fn ambiguous_name_failure(name: &str, candidates: &[Cow<'_, str>]) -> Failure {
    let message = format!(
        "`{}` could mean {}. Call the one that is meant by that name.",
        excerpt(name).escape_debug(),
        candidates.join(" or ")
    );
    Failure::new(Kind::UnknownTool, message).hint("say which one with `server.tool`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str) -> ServerName {
        ServerName::parse(name).unwrap()
    }

    #[test]
    fn a_name_belongs_to_a_server_in_every_style() {
        let git = server("git");
        for name in ["git.log", "git__log", "mcp__git__log", "mcp_git_log"] {
            assert!(after_server(name, "git").contains(&Some("log")), "{name}");
        }
        for name in ["log", "github.log", "git_log", "mcp.git.log"] {
            assert!(!may_belong_to(name, &git), "{name}");
        }
    }

    #[test]
    fn an_unknown_tool_is_answered_with_what_there_is() {
        let (git, k8s) = (server("git"), server("k8s"));
        let tools = [
            ("git", "log"),
            ("git", "show"),
            ("k8s", "get_pods"),
            ("k8s", "get_logs"),
        ];
        let tools = tools.map(|(server, tool)| KnownName {
            server,
            tool,
            listed: None,
        });
        let for_people = unknown_name_failure("k8s.get_pod", &tools, &[&git, &k8s]);
        assert_eq!(for_people.message, "there is no tool `k8s.get_pod`");
        assert_eq!(
            for_people.hint.as_deref(),
            Some("did you mean `k8s.get_pods`? `pegboard tools k8s` lists its tools")
        );
        let message = |name: &str| unknown_name_failure(name, &tools, &[&git, &k8s]).text();
        insta::assert_snapshot!(message("k8s.get_pod"), @"there is no tool `k8s.get_pod`. The closest names are `k8s.get_pods`, `k8s.get_logs`. Available tools of server `k8s`: get_pods, get_logs. Available servers: git, k8s.");
        insta::assert_snapshot!(message("get_podz"), @"there is no tool `get_podz`. The closest names are `k8s.get_pods`, `k8s.get_logs`. Available servers: git, k8s.");
        insta::assert_snapshot!(message("zzz.qqq"), @"there is no tool `zzz.qqq`. Available servers: git, k8s.");
        let long = format!("get_pods{}", "s".repeat(1_000_000));
        let about_long = message(&long);
        assert!(
            about_long.len() < 400 && !about_long.contains("closest"),
            "{about_long}"
        );
        insta::assert_snapshot!(unknown_name_failure("x", &[], &[]).text(), @"there is no tool `x`. Available servers: none.");
        let listed = ["log", "show", "get_pods", "get_logs"].map(|tool| format!("tool-{tool}"));
        let offered: Vec<KnownName<'_>> = tools
            .iter()
            .zip(&listed)
            .map(|(tool, listed)| KnownName {
                listed: Some(listed),
                ..*tool
            })
            .collect();
        insta::assert_snapshot!(unknown_name_failure("git__shoow", &offered, &[&git, &k8s]).text(), @"there is no tool `git__shoow`. The closest names are `tool-show`. Available tools of server `git`: tool-log, tool-show. Available servers: git, k8s.");
    }
}
