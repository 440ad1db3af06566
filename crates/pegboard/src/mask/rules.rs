//! The patterns that a policy asks for, with their words, which tell which of them a text can fit at all.

use std::{
    fmt,
    sync::{Arc, LazyLock},
};

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use super::{
    CustomPattern, Failed, MaskStyle, Masking, keywords::Keywords, patterns, policy::BadMasking, rule::Rule, span::Span,
};

/// The largest program that an operator's expression may become.
const MAX_COMPILED: usize = 4 << 20;
/// How far before its word a pattern can begin.
const LOOK_BACK: usize = 256;
/// The group that marks the secret in an operator's expression.
const SECRET: &str = "secret";

/// The patterns of one policy.
pub(super) struct Rules {
    active: Vec<&'static Rule>,
    /// The words of all of them, in any case.
    words: Keywords,
    /// For each word the patterns that it belongs to.
    by_word: Vec<Vec<usize>>,
    /// Patterns that are looked for in every text.
    always: Vec<usize>,
    custom: Vec<Custom>,
    except: Option<RegexSet>,
    style: MaskStyle,
    /// Set when the policy cannot be followed: then nothing is let through.
    is_broken: bool,
}

struct Custom {
    name: String,
    regex: Regex,
    replacement: String,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} patterns", self.active.len() + self.custom.len())
    }
}

impl Rules {
    /// The patterns of a policy. Those of the default one are made once.
    pub(super) fn of(policy: &Masking) -> Result<Arc<Self>, BadMasking> {
        static DEFAULT: LazyLock<Option<Arc<Rules>>> =
            LazyLock::new(|| Rules::new(&Masking::default()).ok().map(Arc::new));
        match &*DEFAULT {
            Some(rules) if *policy == Masking::default() => Ok(rules.clone()),
            _ => Self::new(policy).map(Arc::new),
        }
    }

    /// Lets everything through.
    pub(super) fn none() -> Self {
        Self::looking_for(Vec::new())
    }

    /// Lets nothing through.
    pub(super) fn broken() -> Self {
        Self {
            is_broken: true,
            ..Self::none()
        }
    }

    fn new(policy: &Masking) -> Result<Self, BadMasking> {
        if !policy.enabled {
            return Ok(Self::none());
        }
        let mut active: Vec<&'static Rule> = patterns::all().filter(|rule| policy.defaults && rule.default).collect();
        for name in &policy.groups {
            active.extend(group(name)?);
        }
        for name in &policy.patterns {
            active.push(pattern(name)?);
        }
        active.sort_by_key(|rule| rule.name);
        active.dedup_by_key(|rule| rule.name);
        let mut rules = Self::looking_for(active);
        for (index, custom) in policy.custom.iter().enumerate() {
            let description = custom.description.clone();
            rules.custom.push(Custom {
                name: format!("custom:{}", description.unwrap_or_else(|| index.to_string())),
                regex: check_custom(custom)?,
                replacement: custom.replacement.clone(),
            });
        }
        rules.except = exceptions(&policy.except)?;
        rules.style = policy.style;
        Ok(rules)
    }

    fn looking_for(active: Vec<&'static Rule>) -> Self {
        let mut words: Vec<&'static str> = Vec::new();
        let mut by_word: Vec<Vec<usize>> = Vec::new();
        for (at, rule) in active.iter().enumerate() {
            for word in rule.words {
                match words.iter().position(|known| known == word) {
                    Some(known) => by_word[known].push(at),
                    None => {
                        words.push(word);
                        by_word.push(vec![at]);
                    }
                }
            }
        }
        let is_always = |at: &usize| active[*at].words.is_empty();
        Self {
            always: (0..active.len()).filter(is_always).collect(),
            words: Keywords::new(words),
            by_word,
            active,
            custom: Vec::new(),
            except: None,
            style: MaskStyle::Value,
            is_broken: false,
        }
    }

    /// Adds all finds in a text.
    pub(super) fn find(&self, text: &str, with_custom: bool, spans: &mut Vec<Span>) -> Result<(), Failed> {
        if self.is_broken {
            return Err(Failed);
        }
        let known = spans.len();
        for (at, first) in self.candidates(text).into_iter().enumerate() {
            if let Some(first) = first {
                let from = first.saturating_sub(LOOK_BACK);
                self.active[at].find_in(text, from, self.style, spans)?;
            }
        }
        for at in &self.always {
            self.active[*at].find_in(text, 0, self.style, spans)?;
        }
        if with_custom {
            self.custom.iter().for_each(|custom| custom.find(text, spans));
        }
        if let Some(except) = &self.except {
            let mut own = spans.split_off(known);
            own.retain(|span| !except.is_match(&text.as_bytes()[span.range.clone()]));
            spans.append(&mut own);
        }
        Ok(())
    }

    /// Whether a pattern could find anything in a text or in a part of it.
    pub(super) fn may_find(&self, text: &str) -> bool {
        let finds = |at: &usize| !matches!(self.active[*at].find(text, 0, self.style), Ok(found) if found.is_empty());
        self.is_broken || !self.custom.is_empty() || !self.candidates(text).is_empty() || self.always.iter().any(finds)
    }

    /// Whether a pattern is among them.
    pub(super) fn has(&self, name: &str) -> bool {
        self.is_broken || self.active.iter().any(|rule| rule.name == name)
    }

    /// The pattern for which the value in a line `name: "value"` is a secret because of its name.
    pub(super) fn find_named(&self, line: &str) -> Result<Option<&'static str>, Failed> {
        if self.is_broken {
            return Err(Failed);
        }
        for (at, first) in self.candidates(line).into_iter().enumerate() {
            let rule = self.active[at];
            if first.is_none() || !rule.is_keyed() {
                continue;
            }
            let mut found = rule.find(line, 0, MaskStyle::Value)?;
            if let Some(except) = &self.except {
                found.retain(|span| !except.is_match(&line.as_bytes()[span.range.clone()]));
            }
            // Only at the end of the line is the value as a whole.
            if found.iter().any(|span| span.range.end + 1 == line.len()) {
                return Ok(Some(rule.name));
            }
        }
        Ok(None)
    }

    /// Whether a value under this name would be looked at for its name.
    pub(super) fn minds_name(&self, name: &str) -> bool {
        let minded = |at: usize| self.active[at].is_keyed();
        self.candidates(name)
            .iter()
            .enumerate()
            .any(|(at, first)| first.is_some() && minded(at))
    }

    /// Where the first word of each pattern stands; empty when there is none of any.
    fn candidates(&self, text: &str) -> Vec<Option<usize>> {
        let words = self.words.firsts(text);
        if words.is_empty() {
            return Vec::new();
        }
        let mut firsts = vec![None; self.active.len()];
        for (patterns, start) in self.by_word.iter().zip(words) {
            for at in patterns {
                firsts[*at] = match (firsts[*at], start) {
                    (Some(known), Some(start)) => Some(start.min(known)),
                    (known, start) => known.or(start),
                };
            }
        }
        firsts
    }

    #[cfg(test)]
    pub(super) fn with_broken_pattern() -> Self {
        Self::looking_for(vec![&super::rule::tests::BROKEN])
    }
}

impl Custom {
    fn find(&self, text: &str, spans: &mut Vec<Span>) {
        for found in self.regex.captures_iter(text.as_bytes()) {
            let Some(place) = found.name(SECRET).or_else(|| found.get(0)) else {
                continue;
            };
            let mut with = Vec::new();
            found.expand(self.replacement.as_bytes(), &mut with);
            spans.push(Span {
                range: place.range(),
                name: self.name.clone().into(),
                with: String::from_utf8_lossy(&with).into_owned().into(),
            });
        }
    }
}

fn group(name: &str) -> Result<Vec<&'static Rule>, BadMasking> {
    patterns::of_group(name).ok_or_else(|| BadMasking::Group(name.to_owned()))
}

fn pattern(name: &str) -> Result<&'static Rule, BadMasking> {
    patterns::named(name).ok_or_else(|| BadMasking::Pattern(name.to_owned()))
}

/// Whether there is a group of this name.
pub(crate) fn check_group(name: &str) -> Result<(), BadMasking> {
    group(name).map(|_| ())
}

/// Whether there is a pattern of this name.
pub(crate) fn check_pattern(name: &str) -> Result<(), BadMasking> {
    pattern(name).map(|_| ())
}

/// An operator's own expression, if it can be used.
pub(crate) fn check_custom(custom: &CustomPattern) -> Result<Regex, BadMasking> {
    let bad = |reason: String| BadMasking::Regex {
        pattern: custom.pattern.clone(),
        reason,
    };
    let regex = RegexBuilder::new(&custom.pattern)
        .size_limit(MAX_COMPILED)
        .build()
        .map_err(|error| bad(reason(&error)))?;
    if regex.is_match(b"") {
        return Err(bad("it fits the empty text".to_owned()));
    }
    Ok(regex)
}

/// The last line of what the parser says, which is the one that says what is wrong.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default().trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// An expression of values that are no secrets, if it can be used.
pub(crate) fn check_exception(pattern: &str) -> Result<(), BadMasking> {
    exceptions(&[pattern.to_owned()]).map(|_| ())
}

fn exceptions(patterns: &[String]) -> Result<Option<RegexSet>, BadMasking> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let whole = patterns.iter().map(|pattern| format!("^(?:{pattern})$"));
    let set = RegexSetBuilder::new(whole).size_limit(MAX_COMPILED).build();
    set.map(Some).map_err(|error| BadMasking::Regex {
        pattern: patterns.join(", "),
        reason: reason(&error),
    })
}
