//! The masker: finds the secrets in a text and replaces them.

use std::{
    borrow::Cow,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use serde::de::IgnoredAny;
use serde_json::Value;

use super::{
    counts::Counts,
    known_values::KnownValues,
    pattern_set::PatternSet,
    patterns,
    policy::{BadMasking, Masking},
    quoted_strings,
    span::{self, Span},
    withheld::{Failed, WITHHELD, WITHHELD_NAME},
};
use pegboard_base::secret::Secret;

/// How many rounds a text is searched while replacements reveal further secrets. Two adjacent secrets take two rounds.
const MAX_ROUNDS: usize = 4;
/// How deeply quoted strings within quoted strings are searched.
pub(super) const MAX_DEPTH: usize = 3;
/// The pattern of private keys, which may be spread over several texts.
const PRIVATE_KEY: &str = "pem_private_key";
/// The length of a text from which on a further round is saved where possible.
const MIN_LONG: usize = 16 << 10;
/// The length of the shortest secret, in bytes.
const MIN_LEN: usize = 4;

/// Finds and replaces secrets. It is built once and used for every text; it is cheap to clone.
///
/// ```
/// # mod pegboard { pub use pegboard_base::secret::Secret; pub use pegboard_mask as mask; }
/// use pegboard::{Secret, mask::{Masker, Masking}};
///
/// let masker = Masker::new(&Masking::default(), [Secret::new("hunter2!")])?;
/// let masked = masker.text("the password is hunter2!");
/// assert_eq!(masked.text, "the password is [MASKED_SECRET]");
/// assert_eq!(masked.counts.total(), 1);
/// # Ok::<(), pegboard::mask::BadMasking>(())
/// ```
#[derive(Debug, Clone)]
pub struct Masker {
    pub(super) patterns: Arc<PatternSet>,
    pub(super) values: Arc<KnownValues>,
}

/// What one text leaves open for the next, see [`Masker::next_text`].
#[derive(Debug, Clone, Default)]
pub struct Carried {
    key: patterns::OpenKey,
}

/// A masked text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Masked<'t> {
    /// The text; borrowed if it has no secrets.
    pub text: Cow<'t, str>,
    /// What was masked in it.
    pub counts: Counts,
}

impl Masker {
    /// Whether both share the same patterns and secrets. Compares pointers, so `false` does not mean that they differ.
    #[doc(hidden)]
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.patterns, &other.patterns) && Arc::ptr_eq(&self.values, &other.values)
    }

    /// Creates a masker for this policy that also masks `secrets`.
    pub fn new(policy: &Masking, secrets: impl IntoIterator<Item = Secret>) -> Result<Self, BadMasking> {
        Ok(Self {
            patterns: PatternSet::get_or_compile(policy)?,
            values: Arc::new(KnownValues::new(secrets)),
        })
    }

    /// Returns a masker for the known secrets alone, for texts that would become useless if patterns were applied.
    #[doc(hidden)]
    pub fn without_patterns(&self) -> Self {
        Self {
            patterns: Arc::new(PatternSet::none()),
            values: self.values.clone(),
        }
    }

    /// The names of all patterns.
    pub fn pattern_names() -> impl Iterator<Item = &'static str> {
        patterns::all().map(|pattern| pattern.name)
    }

    /// The names of all groups of patterns.
    pub fn group_names() -> impl Iterator<Item = &'static str> {
        patterns::group_names()
    }

    /// Masks a text.
    pub fn text<'t>(&self, text: &'t str) -> Masked<'t> {
        let mut counts = Counts::default();
        let masked = catch_unwind(AssertUnwindSafe(|| self.mask_text(text, &mut counts, 0))).unwrap_or(Err(Failed));
        let text = match masked {
            Ok(None) => Cow::Borrowed(text),
            Ok(Some(masked)) => self.as_json(text, &masked, &mut counts).unwrap_or(masked).into(),
            Err(Failed) => {
                counts.add(WITHHELD_NAME, 1);
                // Owned, because callers take a borrowed text as unchanged.
                Cow::Owned(WITHHELD.to_owned())
            }
        };
        Masked { text, counts }
    }

    /// Masks a JSON document value by value, if it is no JSON any more after it was masked as a text. Returns `None` if a known secret is
    /// spread over several values.
    fn as_json(&self, text: &str, masked: &str, counts: &mut Counts) -> Option<String> {
        let is_document = text.trim_start().starts_with(['{', '[', '"']);
        if !is_document || serde_json::from_str::<IgnoredAny>(masked).is_ok() {
            return None;
        }
        let mut value: Value = serde_json::from_str(text).ok()?;
        let mut by_value = Counts::default();
        self.mask_value(&mut value, &mut by_value);
        let shown = value.to_string();
        if !matches!(self.values.occur_in(&shown), Ok(false)) {
            return None;
        }
        *counts = by_value;
        Some(shown)
    }

    /// Masks the next of several texts that belong together, such as the content blocks of a result or the lines of a log. A private key that
    /// an earlier text began is masked in this one.
    ///
    /// ```
    /// # mod pegboard { pub use pegboard_base::secret::Secret; pub use pegboard_mask as mask; }
    /// use pegboard::mask::{Carried, Masker, Masking};
    ///
    /// let masker = Masker::new(&Masking::default(), [])?;
    /// let mut carried = Carried::default();
    /// let header = concat!("-----BEGIN PRIV", "ATE KEY-----");
    /// masker.next_text(header, &mut carried);
    /// let line = masker.next_text("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7", &mut carried);
    /// assert_eq!(line.text, "[MASKED_PEM_PRIVATE_KEY]");
    /// # Ok::<(), pegboard::mask::BadMasking>(())
    /// ```
    pub fn next_text<'t>(&self, text: &'t str, carried: &mut Carried) -> Masked<'t> {
        if !self.patterns.has(PRIVATE_KEY) {
            return self.text(text);
        }
        let spans: Vec<Span> = match carried.key.is_open() {
            true => carried
                .key
                .find(text)
                .into_iter()
                .map(|range| Span::new(range, PRIVATE_KEY, "[MASKED_PEM_PRIVATE_KEY]"))
                .collect(),
            false => Vec::new(),
        };
        carried.key.note(text);
        let mut counts = Counts::default();
        let Some(continued) = span::replace(text, spans, &mut counts) else {
            return self.text(text);
        };
        let masked = self.text(&continued.text);
        counts.add_all(&masked.counts);
        Masked {
            text: masked.text.into_owned().into(),
            counts,
        }
    }

    /// Masks the next of several texts in place.
    #[doc(hidden)]
    pub fn mask_next(&self, text: &mut String, carried: &mut Carried, counts: &mut Counts) {
        let masked = self.next_text(text, carried);
        counts.add_all(&masked.counts);
        if let Cow::Owned(masked) = masked.text {
            *text = masked;
        }
    }

    /// Masks a text in place.
    #[doc(hidden)]
    pub fn mask(&self, text: &mut String, counts: &mut Counts) {
        let masked = self.text(text);
        counts.add_all(&masked.counts);
        if let Cow::Owned(masked) = masked.text {
            *text = masked;
        }
    }

    /// Masks a text. Returns `None` if it has no secrets.
    fn mask_text(&self, text: &str, counts: &mut Counts, depth: usize) -> Result<Option<String>, Failed> {
        if text.len() < MIN_LEN {
            return Ok(None);
        }
        let mut masked: Option<String> = None;
        let mut clean = quoted_strings::CleanStrings::default();
        for round in 0..MAX_ROUNDS {
            let current = masked.as_deref().unwrap_or(text);
            // Of spans with the same range the first one is counted, so known values come first.
            let mut spans = self.values.find(current)?;
            let has_known = !spans.is_empty();
            // Custom patterns run in the first round only, because their replacements may match them again.
            self.patterns.find(current, round == 0, &self.values, &mut spans)?;
            if depth < MAX_DEPTH {
                let nested = |literal: &str, counts: &mut Counts| self.mask_text(literal, counts, depth + 1);
                quoted_strings::find(current, &mut spans, counts, &mut clean, nested)?;
            }
            match span::replace(current, spans, counts) {
                Some(next) => {
                    masked = Some(next.text);
                    // A long text full of secrets is not searched again if that cannot find more.
                    if next.is_settled && text.len() >= MIN_LONG && !has_known && self.patterns.is_default() {
                        break;
                    }
                }
                None => break,
            }
        }
        Ok(masked)
    }
}
