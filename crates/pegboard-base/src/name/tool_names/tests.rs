//! Names that stand, names that are stamped, and what holds for all of them.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const RULES: [NameRules; 7] = [
    NameRules::MCP,
    NameRules::OPENAI,
    NameRules::ANTHROPIC,
    NameRules {
        max_len: 64,
        ..NameRules::ANTHROPIC
    },
    NameRules::GEMINI,
    NameRules::BEDROCK,
    NameRules::STRICT,
];

fn one(server: &str, tool: &str, style: &NameStyle, rules: &NameRules) -> String {
    expose(&[(server, tool)], style, rules).remove(0)
}

#[test]
fn every_style_writes_a_plain_pair_as_its_name_says() {
    let check = |style: &str, rules: NameRules, expected: &str| {
        let style = NameStyle::parse(style).unwrap();
        assert_eq!(one("git", "log", &style, &rules), expected);
    };
    check("dot", NameRules::MCP, "git.log");
    check("dot", NameRules::OPENAI, "git__log");
    check("dunder", NameRules::OPENAI, "git__log");
    check("mcp_dunder", NameRules::OPENAI, "mcp__git__log");
    check("mcp_single", NameRules::OPENAI, "mcp_git_log");
    check("bare", NameRules::OPENAI, "log");
    check("{tool}-of-{server}", NameRules::OPENAI, "log-of-git");
    check("{server}/{tool}", NameRules::OPENAI, "git_log");
}

#[test]
fn bare_names_tell_the_server_only_where_several_have_the_tool() {
    let pairs = [("a", "echo"), ("b", "echo"), ("b", "add")];
    let names = expose(&pairs, &NameStyle::Bare, &NameRules::OPENAI);
    assert_eq!(names, ["a__echo", "b__echo", "add"]);
}

#[test]
fn tools_that_come_in_order_have_the_names_that_they_have_in_any_order() {
    let odd = ("c", "é");
    for rest in [vec![], vec![odd], vec![("a", "one")]] {
        let mut pairs = vec![("a", "one"), ("a", "two"), ("b", "one")];
        pairs.extend(rest);
        for style in [
            NameStyle::Dunder,
            NameStyle::Bare,
            NameStyle::Template("same".to_owned()),
        ] {
            let names = expose(&pairs, &style, &NameRules::OPENAI);
            let mut turned = pairs.clone();
            turned.reverse();
            let mut again = expose(&turned, &style, &NameRules::OPENAI);
            again.reverse();
            assert_eq!(names, again, "{style}");
        }
    }
    let alone = one("c", "é", &NameStyle::Template("same".to_owned()), &NameRules::OPENAI);
    assert_ne!(
        alone, "same",
        "a tool whose name cannot stand is stamped, also where it is not shown"
    );
}

#[test]
fn two_pairs_that_would_be_written_alike_are_both_stamped() {
    let names = expose(&[("a__b", "c"), ("a", "b__c")], &NameStyle::Dunder, &NameRules::OPENAI);
    assert_eq!(names, ["a__b__c_gh767kfiv6", "a__b__c_3ovkf5i7ci"]);
}

#[test]
fn a_name_that_is_altered_or_too_long_is_stamped_even_when_it_is_alone() {
    let style = NameStyle::Dunder;
    for (tool, rules, expected) in [
        ("a/b", NameRules::OPENAI, "fx__a_b_z6pdzws6fj"),
        ("é", NameRules::MCP, "fx____hy3yqfnwge"),
        ("admin.tools.list", NameRules::MCP, "fx__admin.tools.list"),
    ] {
        assert_eq!(one("fx", tool, &style, &rules), expected);
    }
    let long = one("fx", &"long_".repeat(30), &style, &NameRules::STRICT);
    assert_eq!(long.len(), 60);
    assert_eq!(long, "fx__long_long_long_long_long_long_long_long_long__eo3dlgijai");
}

#[test]
fn a_first_character_that_may_not_be_is_covered() {
    assert_eq!(one("9lives", "x", &NameStyle::Dunder, &NameRules::GEMINI), "_9lives__x");
    assert_eq!(one("9lives", "x", &NameStyle::Dunder, &NameRules::OPENAI), "9lives__x");
}

#[test]
fn a_tool_that_takes_the_stamped_name_of_another_gets_nowhere_with_it() {
    let stamped = one("fx", "a/b", &NameStyle::Bare, &NameRules::OPENAI);
    let pairs = [("fx", "a/b"), ("evil", stamped.as_str())];
    let names = expose(&pairs, &NameStyle::Bare, &NameRules::OPENAI);
    assert_ne!(names[0], names[1]);
    assert!(names.iter().all(|name| NameRules::OPENAI.allow(name)));
}

fn part() -> impl Strategy<Value = String> {
    // Few letters, so that names clash often; and now and then anything.
    prop_oneof![4 => "[ab_.-]{1,5}", 1 => "[a-z]{50,90}", 1 => "\\PC{1,12}"]
}

fn style() -> impl Strategy<Value = NameStyle> {
    let named = prop::sample::select(NameStyle::NAMED.to_vec());
    let template = "[._/é-]{0,3}".prop_map(|glue| NameStyle::Template(format!("{{server}}{glue}{{tool}}")));
    prop_oneof![5 => named, 1 => template, 1 => Just(NameStyle::Template("same".to_owned()))]
}

proptest! {
    #[test]
    fn names_keep_to_the_rules_differ_and_do_not_depend_on_the_order(
        pairs in prop::collection::vec(("[ab_-]{1,4}|[0-9][a-z]{0,70}", part()), 1..12),
        style in style(),
        rules in prop::sample::select(RULES.to_vec()),
        turn in 0_usize..12,
    ) {
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(server, tool)| (server.as_str(), tool.as_str())).collect();
        let names = expose(&pairs, &style, &rules);
        for name in &names {
            prop_assert!(rules.allow(name), "{}", name);
        }
        let by_pair: BTreeMap<_, _> = pairs.iter().zip(&names).collect();
        for (pair, name) in pairs.iter().zip(&names) {
            prop_assert_eq!(by_pair[pair], name);
        }
        let different: BTreeSet<_> = by_pair.values().collect();
        prop_assert_eq!(different.len(), by_pair.len());

        let mut turned = pairs.clone();
        turned.rotate_left(turn % pairs.len());
        turned.reverse();
        let again = expose(&turned, &style, &rules);
        for (pair, name) in turned.iter().zip(&again) {
            prop_assert_eq!(by_pair[pair], name);
        }
    }
}
