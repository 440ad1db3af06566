use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn own(globs: &[&str]) -> Vec<String> {
    globs.iter().map(|glob| (*glob).to_owned()).collect()
}

fn lets_through(filter: &Filter, name: &str) -> bool {
    filter.allows(name) && !filter.denies(name)
}

fn check(allow: &[&str], deny: &[&str], name: &str) -> bool {
    lets_through(&Filter::new(&own(allow), &own(deny), Case::Matters), name)
}

#[test]
fn an_empty_allow_list_allows_all_and_deny_wins() {
    assert!(check(&[], &[], "a"));
    assert!(check(&["*"], &[], "a"));
    assert!(check(&["any"], &[], "a"));
    assert!(!check(&["b"], &[], "a"));
    assert!(!check(&["a"], &["a"], "a"));
    assert!(!check(&[], &["*delete*"], "issue_delete_all"));
}

/// The rows of the ai-agent design: wildcards `*` and `any`, matching without regard to case, allow and deny together; an allow list
/// that is not set is `['*']`, a deny list that is not set is `[]`.
#[test]
fn the_filter_of_ai_agent_is_a_case_of_ours() {
    for (row, allow, deny, name, expected) in [
        ("default", &[][..], &[][..], "search_code", true),
        ("wildcard *", &["*"], &[], "search_code", true),
        ("wildcard any", &["any"], &[], "search_code", true),
        ("wildcard ANY", &["ANY"], &[], "search_code", true),
        ("other case", &["Search_Code"], &[], "search_CODE", true),
        ("combination", &["search_*"], &["search_code"], "search_code", false),
        ("combination", &["search_*"], &["search_code"], "search_user", true),
        ("deny all", &["search_code"], &["any"], "search_code", false),
        ("denied in another case", &[], &["DELETE"], "delete", false),
    ] {
        let filter = Filter::new(&own(allow), &own(deny), Case::Ignored);
        assert_eq!(
            lets_through(&filter, name),
            expected,
            "{row}: {allow:?} {deny:?} {name}"
        );
    }
}

#[test]
fn case_matters_unless_it_is_said_not_to() {
    assert!(!check(&["Read"], &[], "read"));
    assert!(check(&[], &["DELETE"], "delete"), "another name");
    assert!(!lets_through(&Filter::new(&own(&["ÄB*"]), &[], Case::Matters), "äbc"));
    assert!(lets_through(&Filter::new(&own(&["ÄB*"]), &[], Case::Ignored), "äbc"));
}

#[test]
fn stars_stand_for_any_text() {
    for (glob, name, expected) in [
        ("issues_*", "issues_list", true),
        ("issues_*", "my_issues_list", false),
        ("*_list", "issues_list", true),
        ("a*b*c", "a__b_b_c", true),
        ("a*b*c", "acb", false),
        ("?x", "ax", true),
        ("?x", "éx", true),
        ("?x", "x", false),
        ("*??", "é", false),
        ("*?é", "aéé", true),
        ("a[b]*", "a[b]c", true),
        ("a*b", "a*b", true),
        ("**", "", true),
        ("", "", true),
        ("", "a", false),
    ] {
        assert_eq!(fits(glob, name), expected, "{glob} {name}");
    }
}

/// The obvious matcher, for comparison.
fn model(glob: &[char], name: &[char]) -> bool {
    match (glob.first(), name.first()) {
        (None, None) => true,
        (Some('*'), _) => model(&glob[1..], name) || (!name.is_empty() && model(glob, &name[1..])),
        (Some('?'), Some(_)) => model(&glob[1..], &name[1..]),
        (Some(a), Some(b)) if a == b => model(&glob[1..], &name[1..]),
        _ => false,
    }
}

fn named_by(globs: &[String], universe: &BTreeSet<String>) -> BTreeSet<String> {
    let fits = |name: &&String| {
        let name: Vec<char> = name.chars().collect();
        globs
            .iter()
            .any(|glob| glob == "any" || model(&glob.chars().collect::<Vec<_>>(), &name))
    };
    universe.iter().filter(fits).cloned().collect()
}

fn globs() -> impl Strategy<Value = Vec<String>> {
    let glob = prop_oneof![6 => "[abé*?]{0,5}", 1 => Just("any".to_owned())];
    proptest::collection::vec(glob, 0..4)
}

proptest! {
    /// What two layers let through is the intersection of the sets that their globs name, less what they deny.
    #[test]
    fn two_layers_are_sets_that_intersect(
        layers in [(globs(), globs()), (globs(), globs())],
        universe in proptest::collection::btree_set("[abé]{0,5}", 0..20),
    ) {
        let mut expected = universe.clone();
        for (allow, deny) in &layers {
            if !allow.is_empty() {
                expected = &expected & &named_by(allow, &universe);
            }
            expected = &expected - &named_by(deny, &universe);
        }
        let filters = layers.map(|(allow, deny)| Filter::new(&allow, &deny, Case::Matters));
        let through: BTreeSet<String> = universe
            .iter()
            .filter(|name| filters.iter().all(|filter| lets_through(filter, name)))
            .cloned()
            .collect();
        prop_assert_eq!(through, expected);
    }

    /// To deny more never lets more through, and to allow more never less, once something is allowed by name.
    #[test]
    fn filters_are_monotone(allow in globs(), deny in globs(), more in globs(), name in "[abé]{0,5}") {
        let filter = |allow: &[String], deny: &[String]| lets_through(&Filter::new(allow, deny, Case::Matters), &name);
        let with = |globs: &[String]| [globs, &more].concat();
        prop_assert!(filter(&allow, &deny) || !filter(&allow, &with(&deny)));
        prop_assert!(allow.is_empty() || !filter(&allow, &deny) || filter(&with(&allow), &deny));
    }
}
