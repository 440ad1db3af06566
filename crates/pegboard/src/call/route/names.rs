//! Assigns names to tools. If several tools have the same name, the view's own tools take precedence over those of this program, and these
//! over those of servers.

use std::{collections::HashSet, sync::Arc};

use super::resolved::Precedence;
use crate::{call::view::View, server::Server};
use pegboard_base::name::{self, NameRules, NameStyle, ServerName};
use pegboard_tools::catalog::Tool;

/// The name that a tool is given among the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Assignment {
    Name(String, Precedence),
    /// A tool of the view has this name and replaces the tool.
    ReplacedBy(String),
}

/// The precedence of a server's tools in a view whose own tools `home` holds.
fn precedence(server: &Server, home: Option<&ServerName>) -> Precedence {
    match server.spec().target.is_configured() {
        _ if home == Some(server.name()) => Precedence::View,
        false => Precedence::Program,
        true => Precedence::Server,
    }
}

/// Assigns names to these tools, in the same order.
pub(super) fn assign_names(found: &[(Server, Arc<Tool>)], view: &View) -> Vec<Assignment> {
    let (style, rules) = view.names();
    let tools = found.iter().map(|(server, tool)| {
        let precedence = precedence(server, view.home.as_ref());
        (server.name().as_str(), tool.name.as_str(), precedence)
    });
    assign(&tools.collect::<Vec<_>>(), &style, &rules)
}

fn assign(tools: &[(&str, &str, Precedence)], style: &NameStyle, rules: &NameRules) -> Vec<Assignment> {
    // The usual case: all tools come from configured servers.
    if tools.iter().all(|(_, _, precedence)| *precedence == Precedence::Server) {
        let pairs: Vec<_> = tools.iter().map(|(server, tool, _)| (*server, *tool)).collect();
        let names = name::expose(&pairs, style, rules).into_iter();
        return names.map(|name| Assignment::Name(name, Precedence::Server)).collect();
    }
    let of = |wanted: &dyn Fn(Precedence) -> bool| {
        let pairs = tools.iter().filter(|(_, _, precedence)| wanted(*precedence));
        pairs.map(|(server, tool, _)| (*server, *tool)).collect::<Vec<_>>()
    };
    // Tools of the view keep their own names in every style.
    let own_names = name::expose(
        &of(&|precedence| precedence == Precedence::View),
        &NameStyle::Bare,
        rules,
    );
    let others = name::expose(&of(&|precedence| precedence != Precedence::View), style, rules);
    let taken: HashSet<&str> = own_names.iter().map(String::as_str).collect();
    let plain = plain_names(&of(&|precedence| precedence == Precedence::Program), style, rules);
    let (mut own, mut others) = (own_names.iter(), others.into_iter());
    let each = tools.iter().filter_map(|(server, tool, precedence)| {
        let name = match precedence {
            Precedence::View => return Some(Assignment::Name(own.next()?.clone(), *precedence)),
            Precedence::Program | Precedence::Server => others.next()?,
        };
        let name = match *precedence == Precedence::Program && plain.contains(&(*server, *tool)) {
            true => (*tool).to_owned(),
            false => name,
        };
        Some(match taken.contains(name.as_str()) {
            true => Assignment::ReplacedBy(name),
            false => Assignment::Name(name, *precedence),
        })
    });
    each.collect()
}

/// The tools of this program that keep their bare names even if a server has a tool of that name. Empty in styles that always include the
/// server.
fn plain_names<'a>(
    program: &[(&'a str, &'a str)],
    style: &NameStyle,
    rules: &NameRules,
) -> HashSet<(&'a str, &'a str)> {
    if *style != NameStyle::Bare {
        return HashSet::new();
    }
    let names = name::expose(program, style, rules);
    let plain = program.iter().zip(names).filter(|((_, tool), name)| *tool == name);
    plain.map(|(pair, _)| *pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOOLS: [(&str, &str, Precedence); 6] = [
        ("request", "search", Precedence::View),
        ("fx", "read", Precedence::Server),
        ("fx", "search", Precedence::Server),
        ("fx", "write", Precedence::Server),
        ("local", "search", Precedence::Program),
        ("local", "write", Precedence::Program),
    ];

    fn check(tools: &[(&str, &str, Precedence)], style: &NameStyle, expected: &[&str]) {
        let names = assign(tools, style, &NameRules::MCP)
            .into_iter()
            .map(|assignment| match assignment {
                Assignment::Name(name, _) => name,
                Assignment::ReplacedBy(by) => format!("(for {by})"),
            });
        assert_eq!(names.collect::<Vec<_>>(), expected, "{style}");
    }

    #[test]
    fn the_views_tools_come_before_this_programs_and_those_before_servers() {
        check(
            &TOOLS,
            &NameStyle::Bare,
            &["search", "read", "fx__search", "fx__write", "(for search)", "write"],
        );
        check(
            &TOOLS[1..],
            &NameStyle::Bare,
            &["read", "fx__search", "fx__write", "search", "write"],
        );
        check(
            &TOOLS[..4],
            &NameStyle::Bare,
            &["search", "read", "(for search)", "write"],
        );
    }

    #[test]
    fn in_other_styles_the_whole_name_counts() {
        check(
            &[("request", "fx__search", Precedence::View), TOOLS[2], TOOLS[4]],
            &NameStyle::Dunder,
            &["fx__search", "(for fx__search)", "local__search"],
        );
        check(&TOOLS[..3], &NameStyle::Dunder, &["search", "fx__read", "fx__search"]);
    }
}
