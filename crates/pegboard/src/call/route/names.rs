//! Assigns names to tools. Where several tools want one name, the view's own tools come first, then those of this program, then those of
//! servers.

use std::{collections::HashSet, sync::Arc};

use super::View;
use crate::{
    catalog::Tool,
    name::{self, NameRules, NameStyle, ServerName},
    server::Server,
};

/// Whose tool it is, from the lowest precedence to the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// A tool of a configured server.
    Server,
    /// A tool of a server inside this program.
    Program,
    /// A tool that belongs to the view.
    View,
}

impl Rank {
    fn of(server: &Server, home: Option<&ServerName>) -> Self {
        match server.is_configured() {
            _ if home == Some(server.name()) => Self::View,
            false => Self::Program,
            true => Self::Server,
        }
    }
}

/// The name that a tool is given among the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Named {
    As(String, Rank),
    /// A tool of the view has this name and replaces the tool.
    Replaced(String),
}

/// Assigns names to these tools, in the same order.
pub(super) fn name_all(found: &[(Server, Arc<Tool>)], view: &View) -> Vec<Named> {
    let (style, rules) = view.names();
    let tools = found.iter().map(|(server, tool)| {
        let rank = Rank::of(server, view.home.as_ref());
        (server.name().as_str(), tool.name.as_str(), rank)
    });
    named(&tools.collect::<Vec<_>>(), &style, &rules)
}

fn named(tools: &[(&str, &str, Rank)], style: &NameStyle, rules: &NameRules) -> Vec<Named> {
    // The usual case: all tools come from configured servers.
    if tools.iter().all(|(_, _, rank)| *rank == Rank::Server) {
        let pairs: Vec<_> = tools.iter().map(|(server, tool, _)| (*server, *tool)).collect();
        let names = name::expose(&pairs, style, rules).into_iter();
        return names.map(|name| Named::As(name, Rank::Server)).collect();
    }
    let of = |wanted: &dyn Fn(Rank) -> bool| {
        let pairs = tools.iter().filter(|(_, _, rank)| wanted(*rank));
        pairs.map(|(server, tool, _)| (*server, *tool)).collect::<Vec<_>>()
    };
    // Tools of the view keep their own names in every style.
    let brought = name::expose(&of(&|rank| rank == Rank::View), &NameStyle::Bare, rules);
    let others = name::expose(&of(&|rank| rank != Rank::View), style, rules);
    let taken: HashSet<&str> = brought.iter().map(String::as_str).collect();
    let plain = plain_names(&of(&|rank| rank == Rank::Program), style, rules);
    let (mut brought_names, mut others) = (brought.iter(), others.into_iter());
    let each = tools.iter().filter_map(|(server, tool, rank)| {
        let name = match rank {
            Rank::View => return Some(Named::As(brought_names.next()?.clone(), *rank)),
            Rank::Program | Rank::Server => others.next()?,
        };
        let name = match *rank == Rank::Program && plain.contains(&(*server, *tool)) {
            true => (*tool).to_owned(),
            false => name,
        };
        Some(match taken.contains(name.as_str()) {
            true => Named::Replaced(name),
            false => Named::As(name, *rank),
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

    const TOOLS: [(&str, &str, Rank); 6] = [
        ("request", "search", Rank::View),
        ("fx", "read", Rank::Server),
        ("fx", "search", Rank::Server),
        ("fx", "write", Rank::Server),
        ("local", "search", Rank::Program),
        ("local", "write", Rank::Program),
    ];

    fn check(tools: &[(&str, &str, Rank)], style: &NameStyle, expected: &[&str]) {
        let names = named(tools, style, &NameRules::MCP)
            .into_iter()
            .map(|named| match named {
                Named::As(name, _) => name,
                Named::Replaced(by) => format!("(for {by})"),
            });
        assert_eq!(names.collect::<Vec<_>>(), expected, "{style}");
    }

    #[test]
    fn what_a_view_brings_comes_before_this_program_and_that_before_servers() {
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
            &[("request", "fx__search", Rank::View), TOOLS[2], TOOLS[4]],
            &NameStyle::Dunder,
            &["fx__search", "(for fx__search)", "local__search"],
        );
        check(&TOOLS[..3], &NameStyle::Dunder, &["search", "fx__read", "fx__search"]);
    }
}
