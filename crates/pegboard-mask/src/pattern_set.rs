//! The patterns of a policy, with a keyword search that selects those that can match a text.

use std::{
    fmt,
    ops::Range,
    sync::{Arc, LazyLock},
};

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use super::{
    encoded,
    keywords::{Keywords, Places},
    known_values::KnownValues,
    pattern::{Detection, LOOK_BACK, Pattern},
    patterns,
    policy::{BadMasking, CustomPattern, MaskStyle, Masking},
    span::Span,
    withheld::Failed,
    wrapped_tokens,
};

/// The largest compiled expression of an operator, in bytes.
const MAX_COMPILED: usize = 4 << 20;
/// The length of a text from which on patterns with rare keywords are searched near these only.
const MIN_LONG: usize = 16 << 10;
/// A keyword is rare if there are at least this many bytes for each of its places.
const RARE: usize = 128;
/// The name under which secrets in base64 and percent-encoding are counted.
const ENCODED: &str = "encoded_secret";
/// The capture group of the secret in an operator's expression.
const SECRET: &str = "secret";

/// The patterns of one policy.
pub(super) struct PatternSet {
    active: Vec<&'static Pattern>,
    /// The keywords of all active patterns.
    keywords: Keywords,
    /// The patterns of each keyword.
    by_keyword: Vec<Vec<usize>>,
    /// Whether more than the first place of each keyword matters.
    is_many: Vec<bool>,
    /// The patterns without keywords, which run on every text.
    always: Vec<usize>,
    /// The patterns that look at every long run of letters and digits.
    in_runs: Vec<usize>,
    custom: Vec<Custom>,
    except: Option<RegexSet>,
    style: MaskStyle,
    /// Set if the policy is invalid; then every text is withheld.
    is_broken: bool,
}

struct Custom {
    name: String,
    regex: Regex,
    replacement: String,
}

impl fmt::Debug for PatternSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} patterns", self.active.len() + self.custom.len())
    }
}

impl PatternSet {
    /// Returns the patterns of a policy. Those of the default policy are built once.
    pub(super) fn get_or_compile(policy: &Masking) -> Result<Arc<Self>, BadMasking> {
        static DEFAULT: LazyLock<Option<Arc<PatternSet>>> =
            LazyLock::new(|| PatternSet::new(&Masking::default()).ok().map(Arc::new));
        match &*DEFAULT {
            Some(patterns) if *policy == Masking::default() => Ok(patterns.clone()),
            _ => Self::new(policy).map(Arc::new),
        }
    }

    /// Masks nothing.
    pub(super) fn none() -> Self {
        Self::with_active(Vec::new())
    }

    /// Withholds every text.
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
        let mut active: Vec<&'static Pattern> = patterns::all()
            .filter(|pattern| policy.defaults && pattern.default)
            .collect();
        for name in &policy.groups {
            active.extend(find_group(name)?);
        }
        for name in &policy.patterns {
            active.push(find_pattern(name)?);
        }
        active.sort_by_key(|pattern| pattern.name);
        active.dedup_by_key(|pattern| pattern.name);
        let mut patterns = Self::with_active(active);
        for (index, custom) in policy.custom.iter().enumerate() {
            let description = custom.description.clone();
            patterns.custom.push(Custom {
                name: format!("custom:{}", description.unwrap_or_else(|| index.to_string())),
                regex: check_custom(custom)?,
                replacement: custom.replacement.clone(),
            });
        }
        patterns.except = exceptions(&policy.except)?;
        patterns.style = policy.style;
        Ok(patterns)
    }

    fn with_active(active: Vec<&'static Pattern>) -> Self {
        let mut keywords: Vec<&'static str> = Vec::new();
        let mut by_keyword: Vec<Vec<usize>> = Vec::new();
        for (at, pattern) in active.iter().enumerate() {
            for keyword in pattern.keywords {
                match keywords.iter().position(|known| known == keyword) {
                    Some(known) => by_keyword[known].push(at),
                    None => {
                        keywords.push(keyword);
                        by_keyword.push(vec![at]);
                    }
                }
            }
        }
        let is_near = |at: &usize| active[*at].is_near_keyword();
        let is_many = by_keyword.iter().map(|patterns| patterns.iter().any(is_near)).collect();
        let is_in_runs = |at: &usize| matches!(active[*at].detection, Detection::InRuns(_));
        let is_always = |at: &usize| active[*at].keywords.is_empty() && !is_in_runs(at);
        Self {
            always: (0..active.len()).filter(is_always).collect(),
            in_runs: (0..active.len()).filter(is_in_runs).collect(),
            keywords: Keywords::new(keywords),
            by_keyword,
            is_many,
            active,
            custom: Vec::new(),
            except: None,
            style: MaskStyle::Value,
            is_broken: false,
        }
    }

    /// Adds the spans of all secrets in a text.
    pub(super) fn find(
        &self,
        text: &str,
        with_custom: bool,
        values: &KnownValues,
        spans: &mut Vec<Span>,
    ) -> Result<(), Failed> {
        if self.is_broken {
            return Err(Failed);
        }
        let known = spans.len();
        let most = most_places(text);
        let places = self.keywords.places(text, most, &self.is_many);
        let near = self.near(&places, most);
        let firsts = self.firsts(&places);
        for (at, first) in firsts.iter().enumerate() {
            let Some(first) = first else { continue };
            match near.get(at) {
                Some(Some(places)) => self.active[at].find_near(text, places, self.style, spans)?,
                _ => self.active[at].find_in(text, first.saturating_sub(LOOK_BACK), self.style, spans)?,
            }
        }
        self.find_over_lines(text, &firsts, spans)?;
        for at in &self.always {
            self.active[*at].find_in(text, 0, self.style, spans)?;
        }
        if !self.active.is_empty() {
            let mut visit = |run: &Range<usize>| spans.extend(self.find_in_run(text, run));
            let has_secret = |decoded: &str| Ok(values.occur_in(decoded)? || self.has_token(decoded)?);
            let encoded = encoded::find(text, &has_secret, &mut visit)?;
            for range in encoded {
                spans.push(Span::new(range, ENCODED, "[MASKED_ENCODED_SECRET]"));
            }
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

    /// Returns the token that a run of letters and digits is or ends with.
    fn find_in_run(&self, text: &str, run: &Range<usize>) -> Option<Span> {
        let found = |at: &usize| self.active[*at].find_in_run(text, run);
        self.in_runs.iter().find_map(found)
    }

    /// Adds the tokens with a distinctive format that a line break divides. `firsts` has a place for each pattern whose keyword occurs.
    fn find_over_lines(&self, text: &str, firsts: &[Option<usize>], spans: &mut Vec<Span>) -> Result<(), Failed> {
        let is_token =
            |pattern: &&Pattern| pattern.is_distinctive() && matches!(pattern.detection, Detection::Token(_));
        let candidates: Vec<&'static Pattern> = firsts
            .iter()
            .zip(&self.active)
            .filter(|(first, pattern)| first.is_some() && is_token(pattern))
            .map(|(_, pattern)| *pattern)
            .collect();
        if candidates.is_empty() {
            return Ok(());
        }
        for wrapped in wrapped_tokens::find(text) {
            for pattern in &candidates {
                if !wrapped.begins_with_one_of(pattern.keywords) {
                    continue;
                }
                for found in pattern.find(&wrapped.joined, 0, MaskStyle::Value)? {
                    let parts = wrapped.parts(&found.range);
                    if parts.len() > 1 {
                        spans.extend(parts.into_iter().map(|range| pattern.span(range)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether a text holds a token with a distinctive format, or a private key.
    fn has_token(&self, text: &str) -> Result<bool, Failed> {
        for (at, first) in self.candidates(text).into_iter().enumerate() {
            let pattern = self.active[at];
            if let Some(first) = first
                && pattern.is_distinctive()
                && !pattern
                    .find(text, first.saturating_sub(LOOK_BACK), MaskStyle::Value)?
                    .is_empty()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a pattern may match a text or a part of it.
    pub(super) fn may_find(&self, text: &str, values: &KnownValues) -> bool {
        let finds = |at: &usize| !matches!(self.active[*at].find(text, 0, self.style), Ok(found) if found.is_empty());
        let has_encoded = || {
            let mut has_key = false;
            let mut visit = |run: &Range<usize>| has_key |= self.find_in_run(text, run).is_some();
            let has_secret = |decoded: &str| Ok(values.occur_in(decoded)? || self.has_token(decoded)?);
            let encoded = encoded::find(text, &has_secret, &mut visit);
            has_key || !matches!(encoded, Ok(found) if found.is_empty())
        };
        self.is_broken
            || !self.custom.is_empty()
            || !self.candidates(text).is_empty()
            || has_encoded()
            || self.always.iter().any(finds)
    }

    /// Whether a space after each quote, line feed and tab of a text hides nothing from [`may_find`](Self::may_find). Keywords have such
    /// characters only at their end, and tokens that are found without a keyword have none; of the other patterns without keywords this is
    /// not known.
    pub(super) fn reads_spaced(&self) -> bool {
        self.always.iter().all(|at| self.active[*at].default)
    }

    /// Whether only patterns of the default policy are active. The others may match what their own replacements leave.
    pub(super) fn is_default(&self) -> bool {
        self.custom.is_empty() && self.active.iter().all(|pattern| pattern.default)
    }

    /// Whether the pattern of this name is active.
    pub(super) fn has(&self, name: &str) -> bool {
        self.is_broken || self.active.iter().any(|pattern| pattern.name == name)
    }

    /// Whether an exception of the policy matches all of a value.
    pub(super) fn is_excepted(&self, value: &str) -> bool {
        self.except
            .as_ref()
            .is_some_and(|except| except.is_match(value.as_bytes()))
    }

    /// Returns the pattern by which the value in a line `name: "value"` is a secret because of its name.
    pub(super) fn find_by_name(&self, line: &str) -> Result<Option<&'static str>, Failed> {
        if self.is_broken {
            return Err(Failed);
        }
        for (at, first) in self.candidates(line).into_iter().enumerate() {
            let pattern = self.active[at];
            if first.is_none() || !pattern.is_keyed() {
                continue;
            }
            let mut found = pattern.find(line, 0, MaskStyle::Value)?;
            if let Some(except) = &self.except {
                found.retain(|span| !except.is_match(&line.as_bytes()[span.range.clone()]));
            }
            // A span that ends before the closing quote covers only a part of the value.
            if found.iter().any(|span| span.range.end + 1 == line.len()) {
                return Ok(Some(pattern.name));
            }
        }
        Ok(None)
    }

    /// Whether a pattern may match a value because of this name.
    pub(super) fn is_sensitive_name(&self, name: &str) -> bool {
        let is_keyed = |at: usize| self.active[at].is_keyed();
        self.candidates(name)
            .iter()
            .enumerate()
            .any(|(at, first)| first.is_some() && is_keyed(at))
    }

    /// Returns the position of the first keyword of each pattern; an empty list if no keyword occurs.
    fn candidates(&self, text: &str) -> Vec<Option<usize>> {
        self.firsts(&self.keywords.places(text, 1, &self.is_many))
    }

    fn firsts(&self, places: &Places<'_>) -> Vec<Option<usize>> {
        if places.is_empty() {
            return Vec::new();
        }
        let mut firsts: Vec<Option<usize>> = vec![None; self.active.len()];
        for (word, start) in places.iter() {
            for at in &self.by_keyword[word] {
                firsts[*at] = Some(firsts[*at].map_or(start, |known| known.min(start)));
            }
        }
        firsts
    }

    /// For each pattern the places of its keywords in order, if they are rare and matches are near them. Empty for a short text.
    fn near(&self, places: &Places<'_>, most: usize) -> Vec<Option<Vec<usize>>> {
        if most == 1 || places.is_empty() {
            return Vec::new();
        }
        let is_near = |pattern: &&'static Pattern| pattern.is_near_keyword().then(Vec::new);
        let mut near: Vec<Option<Vec<usize>>> = self.active.iter().map(is_near).collect();
        for (word, patterns) in self.by_keyword.iter().enumerate() {
            if places.count(word) >= most {
                patterns.iter().for_each(|at| near[*at] = None);
            }
        }
        for (word, start) in places.iter() {
            for at in &self.by_keyword[word] {
                if let Some(starts) = &mut near[*at] {
                    starts.push(start);
                }
            }
        }
        near.iter_mut().flatten().for_each(|starts| starts.sort_unstable());
        near
    }

    #[cfg(test)]
    pub(super) fn with_broken_pattern() -> Self {
        Self::with_active(vec![&super::pattern::tests::BROKEN])
    }
}

impl Custom {
    fn find(&self, text: &str, spans: &mut Vec<Span>) {
        for found in self.regex.captures_iter(text.as_bytes()) {
            let Some(secret) = found.name(SECRET).or_else(|| found.get(0)) else {
                continue;
            };
            let mut replacement = Vec::new();
            found.expand(self.replacement.as_bytes(), &mut replacement);
            spans.push(Span {
                range: secret.range(),
                name: self.name.clone().into(),
                replacement: String::from_utf8_lossy(&replacement).into_owned().into(),
            });
        }
    }
}

/// How many places of each keyword are worth knowing: only the first one in a short text.
fn most_places(text: &str) -> usize {
    match text.len() {
        ..MIN_LONG => 1,
        len => len / RARE,
    }
}

fn find_group(name: &str) -> Result<Vec<&'static Pattern>, BadMasking> {
    patterns::patterns_in_group(name).ok_or_else(|| BadMasking::Group(name.to_owned()))
}

fn find_pattern(name: &str) -> Result<&'static Pattern, BadMasking> {
    patterns::find_named(name).ok_or_else(|| BadMasking::Pattern(name.to_owned()))
}

/// Checks that there is a group of this name.
pub fn check_group(name: &str) -> Result<(), BadMasking> {
    find_group(name).map(|_| ())
}

/// Checks that there is a pattern of this name.
pub fn check_pattern(name: &str) -> Result<(), BadMasking> {
    find_pattern(name).map(|_| ())
}

/// Compiles an operator's own expression.
pub fn check_custom(custom: &CustomPattern) -> Result<Regex, BadMasking> {
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

/// The last line of the parser's error message, which holds the reason.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default().trim();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// Checks an expression for values that are not secrets.
pub fn check_exception(pattern: &str) -> Result<(), BadMasking> {
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
