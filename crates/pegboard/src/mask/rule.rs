//! One named pattern: how it is looked for, and what makes a find a secret.

use std::{ops::Range, sync::OnceLock};

use regex::bytes::{Captures, Regex, RegexBuilder};

use super::{Failed, MaskStyle, Span, check, span};

/// The largest program that an expression may become.
const MAX_COMPILED: usize = 2 << 20;
/// What may stand directly before a token: no letter or digit, but also the last letter of an escape, a percent code or a colour.
const BEFORE: &str = r"(?:\b|\\[nrt]|%[0-9A-Fa-f]{2}|\x1b\[[0-9;]*m)";

/// One named pattern.
#[derive(Debug)]
pub(super) struct Rule {
    /// Its name, with underscores.
    pub(super) name: &'static str,
    /// Other names for it.
    pub(super) aka: &'static [&'static str],
    /// Whether it is looked for unasked.
    pub(super) default: bool,
    /// Lower-case words, one of which is in every text that it fits. Without any it is always looked for.
    pub(super) words: &'static [&'static str],
    pub(super) how: How,
    /// Whether it looks at the name under which a value stands.
    is_keyed: bool,
    /// Whether a value found under a name is a secret. The name is empty where the pattern has none.
    check: fn(&str, &str) -> bool,
    compiled: OnceLock<Option<Regex>>,
    mark: OnceLock<String>,
}

/// How a pattern is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) enum How {
    /// A token with a form of its own.
    Token(&'static str),
    /// An expression whose groups are the secrets.
    Groups(&'static str),
    /// A value under a name that ends in this, in the ways in which files, programs and command lines assign values.
    Assigned(&'static str),
    /// A search of its own.
    Find(fn(&str) -> Vec<Range<usize>>),
    /// The structure of Kubernetes manifests.
    Kubernetes,
}

pub(super) const fn rule(name: &'static str, words: &'static [&'static str], how: How) -> Rule {
    Rule {
        name,
        aka: &[],
        default: true,
        words,
        is_keyed: matches!(how, How::Assigned(_)),
        how,
        check: |_, value| check::plausible(value),
        compiled: OnceLock::new(),
        mark: OnceLock::new(),
    }
}

impl Rule {
    pub(super) const fn aka(mut self, names: &'static [&'static str]) -> Self {
        self.aka = names;
        self
    }

    pub(super) const fn check(mut self, check: fn(&str, &str) -> bool) -> Self {
        self.check = check;
        self
    }

    /// Looked for only where it is asked for.
    pub(super) const fn on_request(mut self) -> Self {
        self.default = false;
        self
    }

    /// It looks at the name under which a value stands, though its expression is its own.
    pub(super) const fn keyed(mut self) -> Self {
        self.is_keyed = true;
        self
    }

    /// Whether a name in a config means this pattern.
    pub(super) fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aka.contains(&name)
    }

    /// Whether it looks at the name under which a value stands.
    pub(super) fn is_keyed(&self) -> bool {
        self.is_keyed
    }

    /// The finds in `text` from `from` on.
    pub(super) fn find(&'static self, text: &str, from: usize, style: MaskStyle) -> Result<Vec<Span>, Failed> {
        match self.how {
            How::Find(find) => Ok(find(text)
                .into_iter()
                .filter(|range| (self.check)("", &text[range.clone()]))
                .map(|range| self.span(range))
                .collect()),
            How::Kubernetes => Ok(super::kubernetes::find(text)),
            How::Token(_) | How::Groups(_) | How::Assigned(_) => self.find_regex(text, from, style),
        }
    }

    fn span(&'static self, range: Range<usize>) -> Span {
        let mark = self.mark.get_or_init(|| span::mark(self.name));
        Span::new(range, self.name, mark)
    }

    fn find_regex(&'static self, text: &str, from: usize, style: MaskStyle) -> Result<Vec<Span>, Failed> {
        let regex = self.regex()?;
        let mut spans = Vec::new();
        let mut at = from;
        while let Some(found) = regex.captures_at(text.as_bytes(), at) {
            let Some(whole) = found.get(0) else { break };
            at = whole.end().max(at + 1);
            let ranges = self.secrets(text, &found);
            match style {
                MaskStyle::Whole if !ranges.is_empty() => spans.push(self.span(whole.range())),
                _ => spans.extend(ranges.into_iter().map(|range| self.span(range))),
            }
            if at > text.len() {
                break;
            }
        }
        Ok(spans)
    }

    /// The groups of a match that are secrets; the first group is the name where the pattern has one.
    fn secrets(&self, text: &str, found: &Captures<'_>) -> Vec<Range<usize>> {
        let inner = |range: Range<usize>| text.get(range).unwrap_or_default();
        let (key, first) = match self.how {
            How::Assigned(_) => (found.get(1).map_or("", |key| inner(key.range())), 2),
            _ => ("", 1),
        };
        (first..found.len())
            .filter_map(|group| found.get(group))
            .map(|value| value.range())
            .filter(|range| text.get(range.clone()).is_none_or(|value| (self.check)(key, value)))
            .collect()
    }

    /// Compiled when it is first needed, and then kept.
    fn regex(&self) -> Result<&Regex, Failed> {
        let compiled = self.compiled.get_or_init(|| match self.how {
            How::Token(token) => compile(&format!("{BEFORE}({token})")).ok(),
            How::Groups(groups) => compile(groups).ok(),
            How::Assigned(key) => compile(&assigned(key)).ok(),
            How::Find(_) | How::Kubernetes => None,
        });
        compiled.as_ref().ok_or(Failed)
    }
}

/// A name that ends in `key`, a sign between, and a value: quoted, quoted within a quoted text, or bare.
fn assigned(key: &str) -> String {
    let quoted = r#""((?:[^"\\\r\n]|\\[^\r\n])*)"#;
    let quoted_within = r#"\\+"([^"\\\r\n]*)"#;
    let single = r"'([^'\r\n]*)";
    let bare = r#"([^\s"'\\,;&<>{}\[\]()|`]+)"#;
    format!(
        r#"(?i)([A-Z0-9_.-]*(?:{key}))(?:\\*["'])?(?:[ \t]*(?:=>|:=|[:=])[ \t]*|>)(?:{quoted}|{quoted_within}|{single}|{bare})"#
    )
}

/// An expression over bytes: quick, and linear whatever the text.
pub(super) fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .unicode(false)
        .size_limit(MAX_COMPILED)
        .build()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A pattern that fails whenever it is looked for.
    pub(in crate::mask) static BROKEN: Rule = rule("broken", &[], How::Groups("("));

    #[test]
    fn values_are_found_in_every_way_of_writing_them() {
        static PIN: Rule = rule("pin", &["pin"], How::Assigned("pin"));
        for text in [
            "pin=s3cret9",
            "MY_PIN: s3cret9",
            "pin := \"s3cret9\"",
            r#"{"pin": "s3cret9"}"#,
            r#""{\"pin\":\"s3cret9\"}""#,
            "'pin' => 's3cret9'",
            "<pin>s3cret9</pin>",
            "https://x/?pin=s3cret9&y=1",
        ] {
            let found = PIN.find(text, 0, MaskStyle::Value).unwrap();
            let found: Vec<_> = found.iter().map(|span| &text[span.range.clone()]).collect();
            assert_eq!(found, ["s3cret9"], "{text}");
        }
        let text = r#"{"pin": "with \"quotes\" and spaces"}"#;
        let found = PIN.find(text, 0, MaskStyle::Value).unwrap();
        assert_eq!(&text[found[0].range.clone()], r#"with \"quotes\" and spaces"#);
        for text in ["pinned=s3cret9", "pin: ${PIN}", "pin:\n  other: x", "shopping"] {
            assert!(PIN.find(text, 0, MaskStyle::Value).unwrap().is_empty(), "{text}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_used_is_a_failure_and_not_a_miss() {
        assert!(BROKEN.find("x", 0, MaskStyle::Value).is_err());
    }
}
