//! The Secret data found so far, and the markers of Secrets that were parsed.

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use crate::{pattern, span::Span};

/// The pattern's name.
pub(crate) const NAME: &str = "kubernetes_secret";
/// The placeholder of a section.
pub(crate) const PLACEHOLDER: &str = "[MASKED_SECRET_DATA]";
/// The sections that hold secrets.
pub(crate) const SECTIONS: &[&str] = &["data", "stringData"];

/// The sections found so far.
pub(super) struct Findings {
    pub(super) spans: Vec<Span>,
    /// The positions of `kind: Secret` in ascending order, and whether the structure around each was parsed.
    pub(super) markers: Vec<(usize, bool)>,
}

impl Findings {
    pub(super) fn new(text: &str) -> Self {
        static MARKER: LazyLock<Option<Regex>> =
            LazyLock::new(|| pattern::compile(r#"\bkind\\*["']?[ \t]*:\s*\\*["']?Secret(?:List)?\b"#).ok());
        let markers = match &*MARKER {
            Some(marker) => marker
                .find_iter(text.as_bytes())
                .map(|found| (found.start(), false))
                .collect(),
            None => Vec::new(),
        };
        Self {
            spans: Vec::new(),
            markers,
        }
    }

    /// Records that the structure around the markers in this range was parsed.
    pub(super) fn mark_parsed(&mut self, range: Range<usize>) {
        let markers = self.markers_in(&range);
        self.markers[markers]
            .iter_mut()
            .for_each(|(_, is_parsed)| *is_parsed = true);
    }

    pub(super) fn is_parsed(&self, range: Range<usize>) -> bool {
        let markers = &self.markers[self.markers_in(&range)];
        !markers.is_empty() && markers.iter().all(|(_, is_parsed)| *is_parsed)
    }

    /// The indices of the markers in this range.
    fn markers_in(&self, range: &Range<usize>) -> Range<usize> {
        let before = |end: usize| self.markers.partition_point(|(at, _)| *at < end);
        before(range.start)..before(range.end)
    }

    pub(super) fn unparsed_markers(&self) -> Vec<usize> {
        let open = self.markers.iter().filter(|(_, is_parsed)| !is_parsed);
        open.map(|(at, _)| *at).collect()
    }

    /// Adds a section, unless it is empty or masked already.
    pub(super) fn mask(&mut self, text: &str, range: Range<usize>, replacement: String) {
        let plain = text[range.clone()].trim_matches(|c: char| c.is_whitespace() || "\"'\\".contains(c));
        if !matches!(plain, "" | "{}" | "null" | "~") && plain != PLACEHOLDER {
            self.spans.push(Span {
                range,
                name: NAME.into(),
                replacement: replacement.into(),
            });
        }
    }
}

/// The `kind` of an object in a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ObjectKind {
    Secret,
    List,
    Other,
}

impl ObjectKind {
    pub(super) fn from_word(word: &str) -> Self {
        match word {
            "Secret" => Self::Secret,
            "SecretList" => Self::List,
            _ => Self::Other,
        }
    }
}

/// Whether all values of a section are base64, as those of Secrets are. The last one may be truncated.
pub(super) fn looks_encoded(section: &str) -> bool {
    let mut values: Vec<&str> = section
        .split(['\n', ',', '{', '}'])
        .filter_map(|entry| entry.split_once(':'))
        .map(|(_, value)| value.trim_matches(|c: char| c.is_whitespace() || "\"'\\".contains(c)))
        .filter(|value| !value.is_empty())
        .collect();
    let is_base64 = |value: &str| value.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b));
    let Some(last) = values.pop() else { return false };
    is_base64(last)
        && values
            .iter()
            .all(|value| is_base64(value) && value.len().is_multiple_of(4))
}
