//! Detects tools that a server has renamed, so that rules for a former name still apply.

use std::collections::BTreeMap;

use super::Catalog;

/// The most names tracked for one server. A server with more is abusing renames; the first names stay known.
const MAX_NAMES: usize = 4096;

/// The former names of one server's tools, by their current names.
#[derive(Debug, Clone, Default)]
pub struct FormerNames(BTreeMap<String, Vec<String>>);

impl FormerNames {
    /// The former names of `tool`.
    pub fn get(&self, tool: &str) -> &[String] {
        self.0.get(tool).map(Vec::as_slice).unwrap_or_default()
    }

    /// Detects renames: a new tool that equals a removed one in everything but its name is the same tool.
    pub fn learn(&mut self, old: &Catalog, new: &Catalog) {
        let gone: Vec<_> = old.tools.iter().filter(|tool| new.tool(&tool.name).is_none()).collect();
        if gone.is_empty() {
            return;
        }
        for tool in new.tools.iter().filter(|tool| old.tool(&tool.name).is_none()) {
            for before in gone.iter().filter(|before| before.differs_only_in_name(tool)) {
                let mut names = vec![before.name.clone()];
                names.extend_from_slice(self.get(&before.name));
                self.add(&tool.name, names);
            }
        }
    }

    fn add(&mut self, tool: &str, names: Vec<String>) {
        let known: usize = self.0.values().map(Vec::len).sum();
        let room = MAX_NAMES.saturating_sub(known);
        let is_new = |name: &String| name != tool && !self.get(tool).contains(name);
        let names: Vec<_> = names.into_iter().filter(is_new).take(room).collect();
        if !names.is_empty() {
            self.0.entry(tool.to_owned()).or_default().extend(names);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::catalog::HeaderRule;
    use pegboard_base::name::ServerName;

    fn catalog(tools: Value) -> Catalog {
        let mut catalog = Catalog::default();
        let items: Vec<Value> = serde_json::from_value(tools).unwrap();
        catalog.read_tools(&ServerName::parse("fx").unwrap(), items, HeaderRule::Ignored);
        catalog
    }

    #[test]
    fn a_tool_is_followed_from_name_to_name() {
        let mut names = FormerNames::default();
        let deletes = |name: &str| catalog(json!([{"name": "read"}, {"name": name, "description": "Deletes."}]));
        names.learn(&deletes("a"), &deletes("b"));
        names.learn(&deletes("b"), &deletes("c"));
        assert_eq!(names.get("c"), ["b", "a"]);
        names.learn(&deletes("c"), &deletes("a"));
        assert_eq!(names.get("a"), ["c", "b"]);
        assert_eq!(names.get("read"), [""; 0]);
    }

    #[test]
    fn a_tool_beside_the_old_one_or_with_another_description_is_another_tool() {
        let mut names = FormerNames::default();
        names.learn(
            &catalog(json!([{"name": "a", "description": "Deletes."}])),
            &catalog(json!([{"name": "a", "description": "Deletes."}, {"name": "b", "description": "Deletes."}])),
        );
        names.learn(
            &catalog(json!([{"name": "a", "description": "Deletes."}])),
            &catalog(json!([{"name": "c", "description": "Lists."}])),
        );
        assert_eq!((names.get("b"), names.get("c")), (&[][..], &[][..]));
    }
}
