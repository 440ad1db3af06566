//! Providers' rules for tool names: allowed characters, first character, and length.

/// A rule for tool names. ASCII letters, digits, `_` and `-` are always allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameRules {
    /// The longest name, in characters.
    pub(super) max_len: usize,
    /// Whether a name may contain `.`.
    pub(super) dots: bool,
    /// Whether a name may start with any allowed character; otherwise it starts with a letter or `_`.
    pub(super) any_first: bool,
}

/// The smallest length limit: a name must hold its hash and a readable part.
const SHORTEST_LIMIT: usize = 32;

impl NameRules {
    /// What MCP itself allows: 128 characters, dots among them.
    pub const MCP: Self = Self::new(128, true, true);
    /// OpenAI: 64 characters.
    pub const OPENAI: Self = Self::new(64, false, true);
    /// Anthropic: 64 characters, which every endpoint accepts. Newer ones accept 128: `NameRules::ANTHROPIC.max_len(128)`.
    pub const ANTHROPIC: Self = Self::new(64, false, true);
    /// Gemini: 64 characters, the first a letter or `_`. It accepts dots as well, but hosts in front of it do not.
    pub const GEMINI: Self = Self::new(64, false, false);
    /// Amazon Bedrock: 64 characters.
    pub const BEDROCK: Self = Self::new(64, false, true);
    /// Accepted by every known host: 60 characters, the first a letter or `_`.
    pub const STRICT: Self = Self::new(60, false, false);

    const fn new(max_len: usize, dots: bool, any_first: bool) -> Self {
        Self {
            max_len,
            dots,
            any_first,
        }
    }

    /// Returns the rules with another length limit, of at least 32 characters.
    #[must_use]
    pub const fn max_len(mut self, max_len: usize) -> Self {
        self.max_len = if max_len < SHORTEST_LIMIT {
            SHORTEST_LIMIT
        } else {
            max_len
        };
        self
    }

    /// Whether a name satisfies the rules.
    pub fn allow(&self, name: &str) -> bool {
        let first = name.bytes().next();
        name.len() <= self.max_len
            && name.chars().all(|c| self.takes(c))
            && first.is_some_and(|first| self.any_first || first.is_ascii_alphabetic() || first == b'_')
    }

    /// Whether a character is allowed after the first one.
    pub(super) fn takes(&self, c: char) -> bool {
        c.is_ascii_alphanumeric() || matches!(c, '_' | '-') || (c == '.' && self.dots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_provider_has_its_own_rules() {
        let check = |rules: NameRules, good: &[&str], bad: &[&str]| {
            for name in good {
                assert!(rules.allow(name), "{name}");
            }
            for name in bad {
                assert!(!rules.allow(name), "{name}");
            }
        };
        let (sixty, of_64, of_128) = ("x".repeat(60), "x".repeat(64), "x".repeat(128));
        check(NameRules::MCP, &["a.b", "9", "-a", &of_128], &["", "a b", "é", "a/b"]);
        check(NameRules::OPENAI, &["a-b_C", "9", &of_64], &["a.b", "", &of_128]);
        check(NameRules::ANTHROPIC, &[&of_64], &["a.b", &"x".repeat(65)]);
        check(NameRules::ANTHROPIC.max_len(128), &[&of_128], &[&"x".repeat(129)]);
        check(NameRules::GEMINI, &["_9", "a-b", &of_64], &["9", "-a", "a.b"]);
        check(NameRules::BEDROCK, &["a-b", &of_64], &["a.b", &of_128]);
        check(NameRules::STRICT, &["a", &sixty], &["9", &of_64]);
    }
}
