//! Keeps secrets out of what models, people and logs see: the config's own secrets wherever they appear, and whatever looks like one.
//!
//! A text is looked through once for all that a secret can begin with. Only the patterns whose words are in it are tried, and only what they find is replaced,
//! so that JSON stays JSON and YAML stays YAML. When anything goes wrong the text is withheld, never passed on.

mod assignments;
mod keywords;
mod known_values;
mod kubernetes;
mod patterns;
mod plausibility;
mod policy;
mod quoted_strings;
mod rule;
mod rules;
mod server_masker;
mod span;
mod structured;

#[cfg(test)]
mod tests;

pub use policy::{BadMasking, CustomPattern, MaskStyle, Masking};
pub(crate) use rules::{check_custom, check_exception, check_group, check_pattern};
pub(crate) use server_masker::{KnownSecrets, LONG, ServerMasker};

use std::{
    borrow::Cow,
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use crate::secret::Secret;
use known_values::Values;
use rules::Rules;
use span::Span;

/// What stands in for a text that could not be masked. It does not invite anybody to try again.
pub(crate) const WITHHELD: &str = "[REDACTED: data masking failure — the text could not be safely processed]";
/// What is counted when a text was withheld.
const WITHHELD_NAME: &str = "withheld";
/// How often a text is looked through again after something was replaced in it. Two that stood side by side are found in two rounds.
const ROUNDS: usize = 4;
/// How deep texts within texts are looked at.
const MAX_DEPTH: usize = 3;
/// No secret is shorter.
const SHORTEST: usize = 4;

/// Finds and replaces secrets. It is made once and used for every text; it is cheap to clone.
///
/// ```
/// use pegboard::{Masker, Masking, Secret};
///
/// let masker = Masker::new(&Masking::default(), [Secret::new("hunter2!")])?;
/// let masked = masker.text("the password is hunter2!");
/// assert_eq!(masked.text, "the password is [MASKED_SECRET]");
/// assert_eq!(masked.counts.total(), 1);
/// # Ok::<(), pegboard::BadMasking>(())
/// ```
#[derive(Debug, Clone)]
pub struct Masker {
    rules: Arc<Rules>,
    values: Arc<Values>,
}

/// A text without its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Masked<'t> {
    /// The text; borrowed when there was nothing to hide.
    pub text: Cow<'t, str>,
    /// How much was hidden in it.
    pub counts: Counts,
}

/// How many secrets were hidden, by the names of the patterns that found them.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct Counts(BTreeMap<String, usize>);

impl Counts {
    /// All of them.
    pub fn total(&self) -> usize {
        self.0.values().sum()
    }

    /// Whether nothing was hidden.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The patterns that found something, and how often.
    pub fn iter(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().map(|(name, count)| (name.as_str(), *count))
    }

    fn add(&mut self, name: &str, count: usize) {
        match self.0.get_mut(name) {
            Some(known) => *known += count,
            None => {
                self.0.insert(name.to_owned(), count);
            }
        }
    }

    /// Adds others to them.
    pub(crate) fn add_all(&mut self, others: &Self) {
        others.iter().for_each(|(name, count)| self.add(name, count));
    }
}

/// A text could not be looked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Failed;

impl Masker {
    /// Whether this one hides exactly what `other` hides, as far as that is seen without a look at the secrets.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.rules, &other.rules) && Arc::ptr_eq(&self.values, &other.values)
    }

    /// A masker for this policy that also knows these secrets.
    pub fn new(policy: &Masking, secrets: impl IntoIterator<Item = Secret>) -> Result<Self, BadMasking> {
        Ok(Self {
            rules: Rules::of(policy)?,
            values: Arc::new(Values::new(secrets)),
        })
    }

    /// The names of all patterns.
    pub fn pattern_names() -> impl Iterator<Item = &'static str> {
        patterns::all().map(|rule| rule.name)
    }

    /// The names of all groups of patterns.
    pub fn group_names() -> impl Iterator<Item = &'static str> {
        patterns::group_names()
    }

    /// The text without its secrets.
    pub fn text<'t>(&self, text: &'t str) -> Masked<'t> {
        let mut counts = Counts::default();
        let masked = catch_unwind(AssertUnwindSafe(|| self.masked(text, &mut counts, 0))).unwrap_or(Err(Failed));
        let text = match masked {
            Ok(None) => Cow::Borrowed(text),
            Ok(Some(masked)) => masked.into(),
            Err(Failed) => {
                counts.add(WITHHELD_NAME, 1);
                // Owned, so that whoever looks whether anything changed sees that it did.
                Cow::Owned(WITHHELD.to_owned())
            }
        };
        Masked { text, counts }
    }

    /// Masks a text in its place.
    pub(crate) fn mask(&self, text: &mut String, counts: &mut Counts) {
        let masked = self.text(text);
        counts.add_all(&masked.counts);
        if let Cow::Owned(masked) = masked.text {
            *text = masked;
        }
    }

    /// The text without its secrets, or nothing when there are none in it.
    fn masked(&self, text: &str, counts: &mut Counts, depth: usize) -> Result<Option<String>, Failed> {
        if text.len() < SHORTEST {
            return Ok(None);
        }
        let mut masked: Option<String> = None;
        let mut clean = quoted_strings::Clean::default();
        for round in 0..ROUNDS {
            let current = masked.as_deref().unwrap_or(text);
            let mut spans = self.spans(current, round == 0)?;
            if depth < MAX_DEPTH {
                let nested = |literal: &str, counts: &mut Counts| self.masked(literal, counts, depth + 1);
                quoted_strings::find(current, &mut spans, counts, &mut clean, nested)?;
            }
            match span::replace(current, spans, counts) {
                Some(next) => masked = Some(next),
                None => break,
            }
        }
        Ok(masked)
    }

    /// All finds in a text. Custom patterns are looked for once only: what they put in may fit them again.
    fn spans(&self, text: &str, with_custom: bool) -> Result<Vec<Span>, Failed> {
        // What is known comes first and gives its name to finds of the same place.
        let mut spans = self.values.find(text)?;
        self.rules.find(text, with_custom, &mut spans)?;
        Ok(spans)
    }
}
