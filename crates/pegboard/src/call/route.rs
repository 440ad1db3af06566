//! Which server and tool a name means. Names are looked up, never taken apart.

use std::{collections::HashMap, sync::Arc};

use super::Sight;
use crate::{
    catalog::Tool,
    name::ServerName,
    outcome::{Failure, Kind},
    server::Server,
};

/// How many names are suggested for one that is nobody's.
const SUGGESTIONS: usize = 3;
/// How alike two names must be, from 0 to 1, for one to be suggested for the other.
const LIKENESS: f64 = 0.75;

/// Where a call goes.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) server: Server,
    pub(crate) tool: Arc<Tool>,
}

/// All tools that can be called at the moment, by the name that models see.
#[derive(Debug, Default)]
pub(crate) struct RouteTable {
    by_exposed_name: HashMap<String, Route>,
    /// In the order of servers and then of tools.
    routes: Vec<Route>,
}

/// What a name means.
#[derive(Debug)]
pub(crate) enum Routed {
    To(Route),
    /// Several tools could be meant.
    Ambiguous(Vec<String>),
    Nowhere,
}

impl RouteTable {
    /// The table for what a view sees of what the servers offer now.
    pub(crate) fn build(servers: &[Server], sight: &Sight<'_>) -> Self {
        let mut table = Self::default();
        for server in servers {
            let Some(catalog) = server.catalog() else { continue };
            for tool in &catalog.tools {
                if sight.sees(tool) {
                    let route = Route {
                        server: server.clone(),
                        tool: tool.clone(),
                    };
                    table.by_exposed_name.insert(tool.exposed_name(), route.clone());
                    table.routes.push(route);
                }
            }
        }
        table
    }

    /// The tools in a stable order.
    pub(crate) fn routes(&self) -> &[Route] {
        &self.routes
    }

    /// What `name` means: the exposed name first, then the other styles with the server's name, then the bare name.
    pub(crate) fn find(&self, name: &str) -> Routed {
        if let Some(route) = self.by_exposed_name.get(name) {
            return Routed::To(route.clone());
        }
        let spelled = |route: &&Route| {
            let after = after_server(name, route.server.name());
            after.iter().flatten().any(|tool| *tool == route.tool.name)
        };
        match Self::one_of(self.routes.iter().filter(spelled)) {
            Routed::Nowhere => Self::one_of(self.routes.iter().filter(|route| route.tool.name == name)),
            found => found,
        }
    }

    fn one_of<'a>(mut routes: impl Iterator<Item = &'a Route>) -> Routed {
        let Some(first) = routes.next() else {
            return Routed::Nowhere;
        };
        let mut names: Vec<String> = routes.map(|route| route.tool.dotted_name()).collect();
        if names.is_empty() {
            return Routed::To(first.clone());
        }
        names.insert(0, first.tool.dotted_name());
        Routed::Ambiguous(names)
    }

    /// Why `name` leads nowhere, with the names that come closest.
    pub(crate) fn explain(&self, name: &str, servers: &[Server]) -> Failure {
        let mut close: Vec<(f64, String)> =
            self.routes
                .iter()
                .filter_map(|route| {
                    let dotted = route.tool.dotted_name();
                    // The server's name, where it is right, says nothing about which of its tools is meant.
                    let asked = after_server(name, route.server.name()).into_iter().flatten().next();
                    let likeness = match asked {
                        Some(asked) => strsim::jaro_winkler(asked, &route.tool.name),
                        None => strsim::jaro_winkler(name, &route.tool.name)
                            .max(strsim::normalized_levenshtein(name, &dotted)),
                    };
                    (likeness > LIKENESS).then_some((likeness, dotted))
                })
                .collect();
        close.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let close: Vec<_> = close
            .into_iter()
            .take(SUGGESTIONS)
            .map(|(_, name)| format!("`{name}`"))
            .collect();
        let hint = if !close.is_empty() {
            format!("did you mean {}?", close.join(" or "))
        } else if servers.is_empty() {
            "no server is configured".to_owned()
        } else {
            let names: Vec<_> = servers.iter().map(|server| server.name().as_str()).collect();
            format!(
                "`pegboard tools` lists what there is; the servers are {}",
                names.join(", ")
            )
        };
        Failure {
            kind: Kind::UnknownTool,
            message: format!("there is no tool `{}`", name.escape_debug()),
            hint: Some(hint),
            may_have_executed: false,
        }
    }
}

/// What follows the server's name in each of the styles in which `name` starts with it.
fn after_server<'a>(name: &'a str, server: &ServerName) -> [Option<&'a str>; 4] {
    let server = server.as_str();
    let after =
        |prefix: &str, separator: &str| name.strip_prefix(prefix)?.strip_prefix(server)?.strip_prefix(separator);
    [
        after("", "."),
        after("", "__"),
        after("mcp__", "__"),
        after("mcp_", "_"),
    ]
}

/// Whether `name` may mean a tool of `server`, whose tools are not known yet.
pub(crate) fn may_be_of(name: &str, server: &ServerName) -> bool {
    after_server(name, server).iter().any(Option::is_some)
}

/// The failure of a name that could mean several tools.
pub(crate) fn ambiguous(name: &str, candidates: &[String]) -> Failure {
    Failure {
        kind: Kind::UnknownTool,
        message: format!("`{}` could mean {}", name.escape_debug(), candidates.join(" or ")),
        hint: Some("say which one with `server.tool`".to_owned()),
        may_have_executed: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_belongs_to_a_server_in_every_style() {
        let server = ServerName::parse("git").unwrap();
        for name in ["git.log", "git__log", "mcp__git__log", "mcp_git_log"] {
            assert!(after_server(name, &server).contains(&Some("log")), "{name}");
        }
        for name in ["log", "github.log", "git_log", "mcp.git.log"] {
            assert!(!may_be_of(name, &server), "{name}");
        }
    }
}
