//! Replaces argument names that a provider does not accept. The replacement is deterministic.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use pegboard_base::name;

/// The longest argument name of the providers that limit it.
const MAX_LEN: usize = 64;
/// How many digits of its hash are appended to a replaced name. Longer hashes are tried if a name is taken.
const HASH_LENGTHS: [usize; 3] = [8, 16, 32];

/// A provider's rule for argument names.
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
    /// Maps the properties' own names to the names that the model is shown.
    pub(super) fn map_names(self, properties: &Map<String, Value>) -> BTreeMap<&str, String> {
        let mut shown: BTreeMap<&str, String> = BTreeMap::new();
        let (good, bad): (Vec<&String>, Vec<&String>) = properties.keys().partition(|name| self.takes(name));
        for name in good {
            shown.insert(name, name.clone());
        }
        for name in bad {
            let is_free = |new: &String| !properties.contains_key(new) && !shown.values().any(|other| other == new);
            let candidates = HASH_LENGTHS.iter().map(|length| self.replace_name(name, *length));
            let mut candidates: Vec<String> = candidates.collect();
            let free = candidates.iter().position(is_free).unwrap_or(HASH_LENGTHS.len() - 1);
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

    fn replace_name(self, name: &str, stamp: usize) -> String {
        let cleaned: String = name
            .chars()
            .map(|c| if self.takes_character(c) { c } else { '_' })
            .collect();
        let before = if cleaned.starts_with(|c: char| c.is_ascii_digit()) {
            "_"
        } else {
            ""
        };
        let max_kept = MAX_LEN - stamp - 2;
        let kept = &cleaned[..cleaned.len().min(max_kept)];
        format!("{before}{kept}_{}", name::hash_suffix(&[name], stamp))
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
            let shown = rule.map_names(&properties);
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
        let first = ParameterNames::Narrow.replace_name("a b", HASH_LENGTHS[0]);
        let properties = Map::from_iter([("a b".to_owned(), json!({})), (first.clone(), json!({}))]);
        let shown = ParameterNames::Narrow.map_names(&properties);
        assert_eq!(shown[first.as_str()], first);
        assert_ne!(shown["a b"], first);
    }
}
