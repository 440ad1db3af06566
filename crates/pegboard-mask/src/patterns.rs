//! All named patterns, and the groups that name several of them.

mod pem;
mod prefixless;
mod service_keys;
mod services;
mod structure;
mod tarsy;

pub(super) use pem::OpenKey;

use super::pattern::Pattern;

/// A group of patterns: its own, and the names of patterns that other groups own.
pub(super) struct Group {
    pub(super) name: &'static str,
    own: &'static [Pattern],
    others: &'static [&'static str],
}

const fn group(name: &'static str, own: &'static [Pattern], others: &'static [&'static str]) -> Group {
    Group { name, own, others }
}

/// The groups with patterns of their own. Every pattern belongs to exactly one of them.
static OWNING: &[Group] = &[
    group(
        "cloud",
        &services::CLOUD,
        &["aws_access_key", "aws_secret_key", "api_key", "token"],
    ),
    group("vcs", &services::VCS, &["github_token"]),
    group("registry", &services::REGISTRY, &[]),
    group("secrets_manager", &services::SECRETS_MANAGER, &[]),
    group("ai", &services::AI, &[]),
    group("saas", &services::SAAS, &["slack_token"]),
    group("structure", &structure::STRUCTURE, &["kubernetes_secret"]),
    group("generic", &structure::GENERIC, &[]),
    group("pii", &structure::PII, &["email"]),
    group("named", &tarsy::TARSY, &[]),
];

/// The groups that only refer to patterns of other groups.
static COMPOSED: &[Group] = &[
    group("basic", &[], &["api_key", "password"]),
    group(
        "secrets",
        &[],
        &["api_key", "password", "token", "private_key", "secret_key"],
    ),
    group(
        "security",
        &[],
        &[
            "api_key",
            "password",
            "token",
            "certificate",
            "certificate_authority_data",
            "email",
            "ssh_key",
        ],
    ),
    group(
        "kubernetes",
        &[],
        &["kubernetes_secret", "api_key", "password", "certificate_authority_data"],
    ),
];

/// The group that holds every pattern.
const ALL: &str = "all";

/// All patterns.
pub(super) fn all() -> impl Iterator<Item = &'static Pattern> {
    OWNING.iter().flat_map(|group| group.own)
}

/// Returns the pattern of this name or alias; `-` and `_` are the same.
pub(super) fn find_named(name: &str) -> Option<&'static Pattern> {
    let name = normalize_name(name);
    all().find(|pattern| pattern.has_name(&name))
}

/// Returns the patterns of a group.
pub(super) fn patterns_in_group(name: &str) -> Option<Vec<&'static Pattern>> {
    let name = normalize_name(name);
    if name == ALL {
        return Some(all().collect());
    }
    let group = groups().find(|group| group.name == name)?;
    let others = group.others.iter().filter_map(|name| find_named(name));
    Some(group.own.iter().chain(others).collect())
}

/// The names of all groups.
pub(super) fn group_names() -> impl Iterator<Item = &'static str> {
    groups().map(|group| group.name).chain([ALL])
}

fn groups() -> impl Iterator<Item = &'static Group> {
    // The group `named` only owns the TARSy patterns, which users select by name or through another group.
    OWNING.iter().filter(|group| group.name != "named").chain(COMPOSED)
}

fn normalize_name(name: &str) -> String {
    name.trim().to_ascii_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::{MaskStyle, pattern::Detection};

    #[test]
    fn every_name_means_one_pattern_and_every_expression_can_be_used() {
        let mut seen = BTreeSet::new();
        for pattern in all() {
            for name in pattern.aliases.iter().chain([&pattern.name]) {
                assert!(seen.insert(*name), "{name} is there twice");
                assert_eq!(normalize_name(name), **name);
            }
            for word in pattern.keywords {
                assert_eq!(word.to_ascii_lowercase(), *word, "{}", pattern.name);
                // Texts are searched with a space after each quote.
                let inner = &word[..word.len() - 1];
                let is_plain = |c: char| c == ' ' || c.is_ascii_graphic() && !matches!(c, '"' | '\\');
                assert!(inner.chars().all(is_plain), "{word}");
            }
            if pattern.default && !matches!(pattern.detection, Detection::Find(_) | Detection::InRuns(_)) {
                assert!(!pattern.keywords.is_empty(), "{} slows every text down", pattern.name);
            }
            assert!(pattern.find("nothing", 0, MaskStyle::Value).is_ok(), "{}", pattern.name);
        }
        assert!(seen.len() > 80);
    }

    #[test]
    fn groups_name_only_patterns_that_there_are() {
        for group in OWNING.iter().chain(COMPOSED) {
            for name in group.others {
                assert!(find_named(name).is_some(), "{name} of {}", group.name);
            }
        }
        let of = |name: &str| {
            patterns_in_group(name)
                .unwrap()
                .iter()
                .map(|pattern| pattern.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(of("basic"), ["api_key", "password"]);
        assert_eq!(
            of("secrets"),
            ["api_key", "password", "token", "private_key", "secret_key"]
        );
        assert_eq!(of("secrets-manager"), of("secrets_manager"));
        assert_eq!(of("all").len(), all().count());
        assert!(patterns_in_group("named").is_none());
    }

    #[test]
    fn what_guesses_is_off_by_default() {
        for name in [
            "base64_secret",
            "base64_short",
            "email",
            "password",
            "token",
            "api_key",
            "pii_iban",
        ] {
            assert!(!find_named(name).unwrap().default, "{name}");
        }
        for name in [
            "github-token",
            "pem_private_key",
            "kubernetes_secret",
            "aws-access-key-id",
        ] {
            assert!(find_named(name).unwrap().default, "{name}");
        }
    }
}
