//! An index of the other names of tools: every style with the server's name, and the tool's own name.

use std::collections::HashMap;

use pegboard_base::name::{self, NameRules, NameStyle};

/// The result of a lookup, as indices into the list of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lookup {
    One(usize),
    Many(Vec<usize>),
    Nothing,
}

/// Maps names to the tools that have them.
#[derive(Debug, Default)]
pub(super) struct NameIndex(HashMap<String, Vec<usize>>);

impl NameIndex {
    pub(super) fn add(&mut self, name: String, index: usize) {
        let indices = self.0.entry(name).or_default();
        if !indices.contains(&index) {
            indices.push(index);
        }
    }

    pub(super) fn find(&self, name: &str) -> Lookup {
        match self.0.get(name).map(Vec::as_slice) {
            None | Some([]) => Lookup::Nothing,
            Some([one]) => Lookup::One(*one),
            Some(many) => Lookup::Many(many.to_vec()),
        }
    }
}

/// All other names of a view's tools.
#[derive(Debug)]
pub(super) struct Aliases {
    with_server: NameIndex,
    bare: NameIndex,
    hidden: NameIndex,
}

impl Aliases {
    /// Indexes the names of these (server, tool) pairs, and of those that the view hides.
    pub(super) fn new(pairs: &[(&str, &str)], hidden: &[(&str, &str)]) -> Self {
        let mut aliases = Self {
            with_server: NameIndex::default(),
            bare: NameIndex::default(),
            hidden: NameIndex::default(),
        };
        for (index, (server, tool)) in pairs.iter().enumerate() {
            for name in with_server(server, tool) {
                aliases.with_server.add(name, index);
            }
            aliases.bare.add((*tool).to_owned(), index);
        }
        for (index, (server, tool)) in hidden.iter().enumerate() {
            for name in with_server(server, tool) {
                aliases.hidden.add(name, index);
            }
            aliases.hidden.add((*tool).to_owned(), index);
        }
        aliases
    }

    /// Adds the names of replaced tools, which lead to the tools that replace them.
    pub(super) fn with<'a>(mut self, replaced: impl Iterator<Item = (&'a str, &'a str, usize)>) -> Self {
        for (server, tool, index) in replaced {
            for name in with_server(server, tool) {
                self.with_server.add(name, index);
            }
            self.bare.add(tool.to_owned(), index);
        }
        self
    }

    pub(super) fn find(&self, name: &str) -> Lookup {
        match self.with_server.find(name) {
            Lookup::Nothing => self.bare.find(name),
            found => found,
        }
    }

    /// Returns the hidden tool that has this name.
    pub(super) fn find_hidden(&self, name: &str) -> Option<usize> {
        match self.hidden.find(name) {
            Lookup::One(index) => Some(index),
            Lookup::Many(indices) => indices.first().copied(),
            Lookup::Nothing => None,
        }
    }
}

/// The names that other views give to tools. Leaves out names that end with the tool's own name: `Aliases` has those.
pub(super) fn other_views(pairs: &[(&str, &str)]) -> NameIndex {
    let mut known = NameIndex::default();
    for style in &NameStyle::NAMED {
        for rules in [NameRules::MCP, NameRules::OPENAI, NameRules::GEMINI, NameRules::STRICT] {
            for (index, name) in name::expose(pairs, style, &rules).into_iter().enumerate() {
                let is_plain = name.ends_with(pairs[index].1);
                if !is_plain {
                    known.add(name, index);
                }
            }
        }
    }
    known
}

/// A tool's name in every style that includes the server.
pub(super) fn with_server(server: &str, tool: &str) -> [String; 4] {
    [
        format!("{server}.{tool}"),
        format!("{server}__{tool}"),
        format!("mcp__{server}__{tool}"),
        format!("mcp_{server}_{tool}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIRS: [(&str, &str); 5] = [
        ("a", "b__c"),
        ("a__b", "c"),
        ("fx", "admin.tools.list"),
        ("fx", "a/b"),
        ("fx", "é è"),
    ];

    #[expect(clippy::needless_pass_by_value, reason = "rows read better without references")]
    fn check(name: &str, expected: Lookup) {
        assert_eq!(Aliases::new(&PAIRS, &[("fx", "gone")]).find(name), expected, "{name}");
    }

    #[test]
    fn a_tool_is_found_in_every_style() {
        for name in ["a.b__c", "b__c", "mcp__a__b__c"] {
            assert_ne!(Aliases::new(&PAIRS[..1], &[]).find(name), Lookup::Nothing, "{name}");
        }
        for name in [
            "fx.admin.tools.list",
            "fx__admin.tools.list",
            "mcp_fx_admin.tools.list",
            "admin.tools.list",
        ] {
            check(name, Lookup::One(2));
        }
        check("fx.a/b", Lookup::One(3));
        check("é è", Lookup::One(4));
    }

    #[test]
    fn a_name_that_two_tools_have_means_both() {
        check("a__b__c", Lookup::Many(vec![0, 1]));
        check("a.b__c", Lookup::One(0));
        check("a__b.c", Lookup::One(1));
    }

    #[test]
    fn names_that_another_view_gave_are_known() {
        let known = other_views(&PAIRS);
        for (index, name) in name::expose(&PAIRS, &NameStyle::Dunder, &NameRules::OPENAI)
            .iter()
            .enumerate()
        {
            assert_eq!(known.find(name), Lookup::One(index), "{name}");
        }
    }

    #[test]
    fn a_hidden_tool_is_no_alias_of_anything() {
        let aliases = Aliases::new(&PAIRS, &[("fx", "gone")]);
        for name in ["fx.gone", "gone", "mcp__fx__gone"] {
            assert_eq!(aliases.find(name), Lookup::Nothing);
            assert_eq!(aliases.find_hidden(name), Some(0));
        }
    }
}
