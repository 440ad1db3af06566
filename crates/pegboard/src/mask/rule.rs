//! One named pattern: how it is looked for, and what makes a find a secret.

use std::{ops::Range, sync::OnceLock};

use memchr::memchr;
use regex::bytes::{Regex, RegexBuilder};

use super::{Failed, MaskStyle, Span, assignments, plausibility, span};

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
        check: |_, value| plausibility::plausible(value),
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
        let mut spans = Vec::new();
        self.find_in(text, from, style, &mut spans)?;
        Ok(spans)
    }

    /// Adds the finds in `text` from `from` on.
    pub(super) fn find_in(
        &'static self,
        text: &str,
        from: usize,
        style: MaskStyle,
        spans: &mut Vec<Span>,
    ) -> Result<(), Failed> {
        match self.how {
            How::Find(find) => spans.extend(
                find(text)
                    .into_iter()
                    .filter(|range| (self.check)("", &text[range.clone()]))
                    .map(|range| self.span(range)),
            ),
            How::Kubernetes => spans.extend(super::kubernetes::find(text)),
            How::Token(_) | How::Groups(_) | How::Assigned(_) => self.find_regex(text, from, style, spans)?,
        }
        Ok(())
    }

    fn span(&'static self, range: Range<usize>) -> Span {
        let mark = self.mark.get_or_init(|| span::mark(self.name));
        Span::new(range, self.name, mark)
    }

    fn find_regex(
        &'static self,
        text: &str,
        from: usize,
        style: MaskStyle,
        spans: &mut Vec<Span>,
    ) -> Result<(), Failed> {
        let regex = self.regex()?;
        let mut at = from;
        let mut groups = matches!(self.how, How::Groups(_)).then(|| regex.capture_locations());
        while at <= text.len() {
            let found = match &mut groups {
                Some(groups) => regex.captures_read_at(groups, text.as_bytes(), at),
                None => regex.find_at(text.as_bytes(), at),
            };
            let Some(whole) = found.map(|found| found.range()) else {
                break;
            };
            at = whole.end.max(at + 1);
            let before = spans.len();
            let mut add = |key: &str, range: Range<usize>| {
                if text.get(range.clone()).is_none_or(|value| (self.check)(key, value)) {
                    spans.push(self.span(range));
                }
            };
            match (&groups, self.how) {
                (Some(groups), _) => (1..groups.len())
                    .filter_map(|group| groups.get(group))
                    .for_each(|(start, end)| add("", start..end)),
                (None, How::Assigned(_)) => {
                    let (key, value) = assignments::parts(text.as_bytes(), whole.clone()).ok_or(Failed)?;
                    add(text.get(key).unwrap_or_default(), value);
                }
                (None, _) => add("", token_start(text.as_bytes(), whole.clone())..whole.end),
            }
            if style == MaskStyle::Whole && spans.len() > before {
                spans.truncate(before);
                spans.push(self.span(whole));
            }
        }
        Ok(())
    }

    /// Compiled when it is first needed, and then kept.
    fn regex(&self) -> Result<&Regex, Failed> {
        let compiled = self.compiled.get_or_init(|| match self.how {
            How::Token(token) => compile(&format!("{BEFORE}({token})")).ok(),
            How::Groups(groups) => compile(groups).ok(),
            How::Assigned(key) => compile(&assignments::pattern(key)).ok(),
            How::Find(_) | How::Kubernetes => None,
        });
        compiled.as_ref().ok_or(Failed)
    }
}

/// Where the token begins in a match, which begins with what may stand [before](BEFORE) it. No token begins with `\\`, `%` or an escape.
fn token_start(bytes: &[u8], found: Range<usize>) -> usize {
    match bytes[found.start] {
        b'\\' => found.start + 2,
        b'%' => found.start + 3,
        b'\x1b' => memchr(b'm', &bytes[found.clone()]).map_or(found.start, |end| found.start + end + 1),
        _ => found.start,
    }
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
