//! One named pattern: how it is detected, and which matches are secrets.

use std::{ops::Range, sync::OnceLock};

use memchr::{memchr, memrchr};
use regex::bytes::{Regex, RegexBuilder};

use super::{
    assignments, encoded,
    named_values::{self, NamedValue},
    plausibility,
    policy::MaskStyle,
    span::{self, Span},
    withheld::Failed,
};

/// The largest compiled expression, in bytes.
const MAX_COMPILED: usize = 2 << 20;
/// What may precede a token: a word boundary, an escape sequence, a percent-encoded byte, or a terminal colour code.
const BEFORE: &str = r"(?:\b|\\[nrt]|%[0-9A-Fa-f]{2}|\x1b\[[0-9;]*m)";

/// How far before its keyword a match can begin, in bytes.
pub(super) const LOOK_BACK: usize = 256;

/// One named pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    /// The name, with underscores.
    pub(super) name: &'static str,
    /// Other names for it.
    pub(super) aliases: &'static [&'static str],
    /// Whether it is on by default.
    pub(super) default: bool,
    /// Lower-case keywords, one of which occurs in every text that it matches. A pattern without keywords runs on every text.
    pub(super) keywords: &'static [&'static str],
    pub(super) detection: Detection,
    /// Whether it matches the name of a value.
    is_keyed: bool,
    /// Decides by name and value whether a match is a secret. The name is empty if the pattern does not match one.
    check: fn(&str, &str) -> bool,
    compiled: OnceLock<Option<Regex>>,
    placeholder: OnceLock<String>,
    is_in_line: OnceLock<bool>,
}

/// How a pattern finds secrets.
#[derive(Debug, Clone, Copy)]
pub(super) enum Detection {
    /// An expression for a token with a distinctive format.
    Token(&'static str),
    /// An expression whose groups are the secrets.
    Groups(&'static str),
    /// The value that is assigned to a name with this ending, see [`assignments`].
    Assigned(&'static str),
    /// The values of names of secrets, see [`named_values`].
    Named,
    /// A function that looks at each long run of letters, digits, `+`, `/`, `-` and `_`, and returns the token that it is a part of.
    InRuns(fn(&[u8], &Range<usize>) -> Option<Range<usize>>),
    /// A search function.
    Find(fn(&str) -> Vec<Range<usize>>),
    /// A function that also chooses the replacements.
    FindSpans(fn(&str) -> Vec<Span>),
}

pub(super) const fn pattern(name: &'static str, keywords: &'static [&'static str], detection: Detection) -> Pattern {
    Pattern {
        name,
        aliases: &[],
        default: true,
        keywords,
        is_keyed: matches!(detection, Detection::Assigned(_)),
        detection,
        check: |_, value| plausibility::plausible(value),
        compiled: OnceLock::new(),
        placeholder: OnceLock::new(),
        is_in_line: OnceLock::new(),
    }
}

impl Pattern {
    pub(super) const fn aliases(mut self, names: &'static [&'static str]) -> Self {
        self.aliases = names;
        self
    }

    pub(super) const fn check(mut self, check: fn(&str, &str) -> bool) -> Self {
        self.check = check;
        self
    }

    /// Turns it off by default.
    pub(super) const fn on_request(mut self) -> Self {
        self.default = false;
        self
    }

    /// Declares that its expression matches the name of a value.
    pub(super) const fn keyed(mut self) -> Self {
        self.is_keyed = true;
        self
    }

    /// Whether this is its name or one of its aliases.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// Whether it matches the name of a value.
    pub(super) fn is_keyed(&self) -> bool {
        self.is_keyed
    }

    /// Whether it matches tokens of a distinctive format, which are secrets in any surroundings.
    pub(super) fn is_distinctive(&self) -> bool {
        self.default && !self.keywords.is_empty() && matches!(self.detection, Detection::Token(_) | Detection::Find(_))
    }

    /// Finds secrets in `text` from `from` on.
    pub(super) fn find(&'static self, text: &str, from: usize, style: MaskStyle) -> Result<Vec<Span>, Failed> {
        let mut spans = Vec::new();
        self.find_in(text, from, style, &mut spans)?;
        Ok(spans)
    }

    /// Adds the secrets in `text` from `from` on.
    pub(super) fn find_in(
        &'static self,
        text: &str,
        from: usize,
        style: MaskStyle,
        spans: &mut Vec<Span>,
    ) -> Result<(), Failed> {
        match self.detection {
            Detection::Find(find) => spans.extend(
                find(text)
                    .into_iter()
                    .filter(|range| (self.check)("", &text[range.clone()]))
                    .map(|range| self.span(range)),
            ),
            Detection::FindSpans(find) => spans.extend(find(text)),
            Detection::InRuns(_) => {
                spans.extend(encoded::base64_runs(text.as_bytes()).filter_map(|run| self.find_in_run(text, &run)));
            }
            Detection::Named => {
                let found = named_values::find(text, from);
                spans.extend(found.into_iter().map(|found| self.named_span(found, style)));
            }
            Detection::Token(_) | Detection::Groups(_) | Detection::Assigned(_) => {
                self.find_regex(text, from..text.len(), style, spans)?;
            }
        }
        Ok(())
    }

    /// Returns the token that a run is a part of.
    pub(super) fn find_in_run(&'static self, text: &str, run: &Range<usize>) -> Option<Span> {
        let Detection::InRuns(find) = self.detection else {
            return None;
        };
        let found = find(text.as_bytes(), run)?;
        (self.check)("", text.get(found.clone())?).then(|| self.span(found))
    }

    /// Whether all matches are in the line of a keyword.
    pub(super) fn is_near_keyword(&self) -> bool {
        match self.detection {
            Detection::Token(_) | Detection::Assigned(_) => true,
            Detection::Groups(_) => *self.is_in_line.get_or_init(|| self.has_no_blank()),
            Detection::Named | Detection::InRuns(_) | Detection::Find(_) | Detection::FindSpans(_) => false,
        }
    }

    /// Whether no part of the expression matches the end of a line.
    fn has_no_blank(&self) -> bool {
        let Detection::Groups(expression) = self.detection else {
            return false;
        };
        // A class such as `[^\s"]` excludes it, `[^"]` does not.
        let mut rest = expression;
        while let Some((before, class)) = rest.split_once("[^") {
            let end = class.find(']').unwrap_or(class.len());
            if before.contains(r"\s") || !(class[..end].contains(r"\s") || class[..end].contains(r"\n")) {
                return false;
            }
            rest = &class[end..];
        }
        !rest.contains(r"\s")
    }

    /// Adds the secrets of an expression near the places of its keywords, which are all of them and in order.
    pub(super) fn find_near(
        &'static self,
        text: &str,
        places: &[usize],
        style: MaskStyle,
        spans: &mut Vec<Span>,
    ) -> Result<(), Failed> {
        let bytes = text.as_bytes();
        let mut done = 0;
        for place in places.iter().copied() {
            if place < done {
                continue;
            }
            let from = done.max(place.saturating_sub(LOOK_BACK));
            let before = &bytes[from..place];
            // A token has no blanks in it.
            let window = match self.detection {
                Detection::Token(_) => {
                    from + before.iter().rposition(u8::is_ascii_whitespace).unwrap_or(0)
                        ..place + bytes[place..].iter().take_while(|b| !b.is_ascii_whitespace()).count()
                }
                _ => {
                    from + memrchr(b'\n', before).unwrap_or(0)
                        ..place + memchr(b'\n', &bytes[place..]).unwrap_or(bytes.len() - place)
                }
            };
            done = window.end;
            self.find_regex(text, window, style, spans)?;
        }
        Ok(())
    }

    pub(super) fn span(&'static self, range: Range<usize>) -> Span {
        let placeholder = self.placeholder.get_or_init(|| span::placeholder(self.name));
        Span::new(range, self.name, placeholder)
    }

    fn named_span(&'static self, found: NamedValue, style: MaskStyle) -> Span {
        let range = match style {
            MaskStyle::Value => found.value,
            MaskStyle::Whole => found.whole,
        };
        let mut span = self.span(range);
        if found.is_nested {
            span.replacement = format!("\"{}\"", span.replacement).into();
        }
        span
    }

    /// Adds the matches in a range.
    fn find_regex(
        &'static self,
        text: &str,
        range: Range<usize>,
        style: MaskStyle,
        spans: &mut Vec<Span>,
    ) -> Result<(), Failed> {
        let regex = self.regex()?;
        let (mut at, end) = (range.start, range.end);
        let mut groups = matches!(self.detection, Detection::Groups(_)).then(|| regex.capture_locations());
        while at <= end {
            let searched = &text.as_bytes()[..end];
            let found = match &mut groups {
                Some(groups) => regex.captures_read_at(groups, searched, at),
                None => regex.find_at(searched, at),
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
            match (&groups, self.detection) {
                (Some(groups), _) => (1..groups.len())
                    .filter_map(|group| groups.get(group))
                    .for_each(|(start, end)| add("", start..end)),
                (None, Detection::Assigned(_)) => {
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

    /// The expression, compiled on first use.
    fn regex(&self) -> Result<&Regex, Failed> {
        let compiled = self.compiled.get_or_init(|| match self.detection {
            Detection::Token(token) => compile(&format!("{BEFORE}({token})")).ok(),
            Detection::Groups(groups) => compile(groups).ok(),
            Detection::Assigned(key) => compile(&assignments::pattern(key)).ok(),
            Detection::Named | Detection::InRuns(_) | Detection::Find(_) | Detection::FindSpans(_) => None,
        });
        compiled.as_ref().ok_or(Failed)
    }
}

/// Returns the start of the token in a match, after what [precedes](BEFORE) it. No token begins with `\\`, `%` or an escape character.
fn token_start(bytes: &[u8], found: Range<usize>) -> usize {
    match bytes[found.start] {
        b'\\' => found.start + 2,
        b'%' => found.start + 3,
        b'\x1b' => memchr(b'm', &bytes[found.clone()]).map_or(found.start, |end| found.start + end + 1),
        _ => found.start,
    }
}

/// Compiles an expression over bytes. Matching takes linear time.
pub(super) fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .unicode(false)
        .size_limit(MAX_COMPILED)
        .build()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A pattern whose expression does not compile.
    pub(crate) static BROKEN: Pattern = pattern("broken", &[], Detection::Groups("("));

    #[test]
    fn values_are_found_in_every_way_of_writing_them() {
        static PIN: Pattern = pattern("pin", &["pin"], Detection::Assigned("pin"));
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
    fn what_is_near_keywords_is_what_the_whole_text_has() {
        static TOKEN: Pattern = pattern("pin", &["pin_"], Detection::Token("pin_[a-z0-9]{4,}\\b"));
        static PIN: Pattern = pattern("pin", &["pin"], Detection::Assigned("pin"));
        static LINE: Pattern = pattern("pin", &["pin"], Detection::Groups(r"pin ([^\s]{4,}) end"));
        static LINES: Pattern = pattern("pin", &["pin"], Detection::Groups(r"pin\s+([a-z0-9]{4,})"));
        assert!(LINE.is_near_keyword() && !LINES.is_near_keyword());
        let text =
            "pin_a1b2c3 x,pin_d4e5f6,pin_77x8\npin=s3cr3t pin: '0th3r5' pin z9y8x7 end\n\tpin a9b8c7 end pin d1e2 end";
        for pattern in [&TOKEN, &PIN, &LINE] {
            let places: Vec<usize> = text.match_indices("pin").map(|(at, _)| at).collect();
            let mut near = Vec::new();
            pattern.find_near(text, &places, MaskStyle::Value, &mut near).unwrap();
            let near: Vec<_> = near.into_iter().map(|span| span.range).collect();
            let all = pattern.find(text, 0, MaskStyle::Value).unwrap();
            let all: Vec<_> = all.into_iter().map(|span| span.range).collect();
            assert!(!all.is_empty() && near == all, "{pattern:?}");
        }
    }

    #[test]
    fn a_pattern_that_cannot_be_used_is_a_failure_and_not_a_miss() {
        assert!(BROKEN.find("x", 0, MaskStyle::Value).is_err());
    }
}
