//! Matches misspelled tool names: other letter case, other separators, or a prefix or suffix that models add.

use super::alias::{Lookup, NameIndex, with_server};

/// Prefixes that models add to tool names.
const PREFIXES: &[&str] = &[
    "functions.",
    "function.",
    "functions:",
    "function:",
    "default_api.",
    "default_api:",
    "multi_tool_use.",
    "tools.",
    "tool.",
    "google.",
    "openai.",
    "anthropic.",
    "to=",
];

/// The names that may be meant: first as written, then with more and more prefixes and suffixes removed.
pub(crate) fn name_variants(name: &str) -> Vec<String> {
    let mut variants = vec![name.to_owned()];
    let mut add = |variant: &str| {
        let is_new = !variant.is_empty() && !variants.iter().any(|known| known == variant);
        if is_new {
            variants.push(variant.to_owned());
        }
    };
    let mut rest = trim(without_tokens(name));
    add(rest);
    // Prefixes are sometimes nested, but not deeply.
    for _ in 0..3 {
        let lower = rest.to_ascii_lowercase();
        let prefix = PREFIXES
            .iter()
            .find(|prefix| lower.starts_with(*prefix))
            .map(|prefix| prefix.len());
        let colon = rest.find(':').map(|at| at + 1);
        let Some(cut) = prefix.or(colon) else { break };
        rest = trim(&rest[cut..]);
        add(rest);
    }
    variants
}

/// Strips a leading special token of a model, such as `<|channel|>`, and everything from the next one on.
fn without_tokens(name: &str) -> &str {
    match name.find("<|") {
        Some(0) => match name.find("|>") {
            Some(end) => without_tokens_after(&name[end + 2..]),
            None => name,
        },
        Some(at) => &name[..at],
        None => name,
    }
}

fn without_tokens_after(rest: &str) -> &str {
    rest.split("<|").next().unwrap_or(rest)
}

fn trim(name: &str) -> &str {
    let is_around = |c: char| c.is_whitespace() || matches!(c, '`' | '"' | '\'' | '*');
    let name = name.trim_matches(is_around);
    name.strip_suffix("()").unwrap_or(name)
}

/// Lower-cases a name and replaces each run of separators with one `_`.
pub(crate) fn fold_name(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    for c in name.chars() {
        if matches!(c, '-' | '_' | '.' | '/' | ':' | ' ') {
            if !folded.ends_with('_') {
                folded.push('_');
            }
        } else {
            folded.extend(c.to_lowercase());
        }
    }
    folded.trim_matches('_').to_owned()
}

/// The folded names of tools.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    with_server: NameIndex,
    bare: NameIndex,
}

impl Repairs {
    /// Indexes these (server, tool) pairs with the names that models see, then the hidden pairs, whose indices follow. A name as close to a
    /// hidden tool as to a visible one is ambiguous.
    pub(super) fn new(pairs: &[(&str, &str)], names: &[&str], hidden: &[(&str, &str)]) -> Self {
        let mut repairs = Self::default();
        for (index, name) in names.iter().enumerate() {
            repairs.with_server.add(fold_name(name), index);
        }
        for (index, (server, tool)) in pairs.iter().chain(hidden).enumerate() {
            for name in with_server(server, tool) {
                repairs.with_server.add(fold_name(&name), index);
            }
            repairs.bare.add(fold_name(tool), index);
        }
        repairs
    }

    pub(super) fn find(&self, name: &str) -> Lookup {
        let folded = fold_name(name);
        match self.with_server.find(&folded) {
            Lookup::Nothing => self.bare.find(&folded),
            found => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_models_put_around_a_name_is_taken_off() {
        let check = |name: &str, expected: &str| {
            let variants = name_variants(name);
            assert!(
                variants.iter().any(|variant| variant == expected),
                "{name}: {variants:?}"
            );
        };
        check("google:get_pods", "get_pods");
        check("functions.k8s__get_pods", "k8s__get_pods");
        check("default_api.get_pods", "get_pods");
        check("default_api:functions.get_pods", "get_pods");
        check("get_pods<|channel|>commentary", "get_pods");
        check("<|tool|>get_pods<|end|>", "get_pods");
        check(" `get_pods()` ", "get_pods");
        assert_eq!(name_variants("plain"), ["plain"]);
        assert_eq!(name_variants("<|"), ["<|"]);
    }

    #[test]
    fn letters_and_signs_do_not_matter_while_one_tool_is_meant() {
        let pairs = [
            ("k8s", "get_pods"),
            ("k8s", "get_logs"),
            ("Git-Hub", "search"),
            ("other", "Get-Logs"),
        ];
        let names = ["k8s__get_pods", "k8s__get_logs", "Git-Hub__search", "other__Get-Logs"];
        let repairs = Repairs::new(&pairs, &names, &[("k8s", "Delete-All"), ("k8s", "GetPods")]);
        for (name, expected) in [
            ("K8S.Get-Pods", Lookup::One(0)),
            ("k8s_get_pods", Lookup::One(0)),
            ("GET_PODS", Lookup::One(0)),
            ("mcp-git_hub-search", Lookup::One(2)),
            ("get-logs", Lookup::Many(vec![1, 3])),
            ("delete_all", Lookup::One(4)),
            ("get_pod", Lookup::Nothing),
        ] {
            assert_eq!(repairs.find(name), expected, "{name}");
        }
    }
}
