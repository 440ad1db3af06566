//! Names of arguments that a provider does not take are replaced, always by the same ones.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::name;

/// The longest name of an argument for the providers that have a rule.
const MAX_LEN: usize = 64;
/// How much of its hash a replaced name gets, and how much when somebody has that name already.
const STAMPS: [usize; 3] = [8, 16, 32];

/// What the names of arguments may look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterNames {
    /// Anything.
    Any,
    /// Letters, digits, `_`, `.` and `-`, 64 at most.
    Wide,
    /// Letters, digits and `_`, 64 at most, no digit first.
    Narrow,
}

impl ParameterNames {
    /// The names under which these properties are shown, by their own names.
    pub(super) fn shown(self, properties: &Map<String, Value>) -> BTreeMap<&str, String> {
        let mut shown: BTreeMap<&str, String> = BTreeMap::new();
        let (good, bad): (Vec<&String>, Vec<&String>) = properties.keys().partition(|name| self.takes(name));
        for name in good {
            shown.insert(name, name.clone());
        }
        for name in bad {
            let is_free = |new: &String| !properties.contains_key(new) && !shown.values().any(|other| other == new);
            let candidates = STAMPS.iter().map(|length| self.replaced(name, *length));
            let mut candidates: Vec<String> = candidates.collect();
            let free = candidates.iter().position(is_free).unwrap_or(STAMPS.len() - 1);
            shown.insert(name, candidates.swap_remove(free));
        }
        shown
    }

    fn takes(self, name: &str) -> bool {
        let starts_well = !name.starts_with(|c: char| c.is_ascii_digit());
        self == Self::Any
            || (1..=MAX_LEN).contains(&name.len())
                && name.chars().all(|c| self.takes_character(c))
                && (self == Self::Wide || starts_well)
    }

    fn takes_character(self, c: char) -> bool {
        c.is_ascii_alphanumeric() || c == '_' || (self == Self::Wide && matches!(c, '.' | '-'))
    }

    fn replaced(self, name: &str, stamp: usize) -> String {
        let cleaned: String = name
            .chars()
            .map(|c| if self.takes_character(c) { c } else { '_' })
            .collect();
        let before = if cleaned.starts_with(|c: char| c.is_ascii_digit()) {
            "_"
        } else {
            ""
        };
        let room = MAX_LEN - stamp - 2;
        let kept = &cleaned[..cleaned.len().min(room)];
        format!("{before}{kept}_{}", name::stamp(&[name], stamp))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_that_are_not_taken_are_replaced_by_ones_that_are() {
        let names = [
            "plain",
            "with-dash",
            "with.dot",
            "$filter",
            "9",
            "",
            "é",
            &"x".repeat(80),
            "a b",
            "a_b",
        ];
        let properties: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        for (rule, kept) in [
            (ParameterNames::Any, 10),
            (ParameterNames::Wide, 5),
            (ParameterNames::Narrow, 2),
        ] {
            let shown = rule.shown(&properties);
            assert_eq!(shown.len(), names.len());
            assert_eq!(
                shown.iter().filter(|(own, shown)| own == shown).count(),
                kept,
                "{shown:?}"
            );
            assert!(shown.values().all(|name| rule.takes(name)), "{shown:?}");
            let different: std::collections::BTreeSet<_> = shown.values().collect();
            assert_eq!(different.len(), names.len());
        }
    }

    #[test]
    fn a_replaced_name_never_takes_the_place_of_a_given_one() {
        let first = ParameterNames::Narrow.replaced("a b", STAMPS[0]);
        let properties = Map::from_iter([("a b".to_owned(), json!({})), (first.clone(), json!({}))]);
        let shown = ParameterNames::Narrow.shown(&properties);
        assert_eq!(shown[first.as_str()], first);
        assert_ne!(shown["a b"], first);
    }
}
