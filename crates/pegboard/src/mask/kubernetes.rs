//! The data of Kubernetes Secrets, in YAML, JSON, lists and annotations, also in the middle of prose, cut off, or broken.
//!
//! Nothing is parsed and written anew: the sections are found where they stand, so the rest of a text stays as it is. A Secret whose sections cannot
//! be made out loses everything from the first name that may begin one.

mod block;
mod flow;

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use super::{rule, span::Span};

/// The pattern's name.
pub(super) const NAME: &str = "kubernetes_secret";
/// What stands in for a section.
pub(super) const MARK: &str = "[MASKED_SECRET_DATA]";
/// The sections that hold secrets.
pub(super) const SECTIONS: &[&str] = &["data", "stringData"];

/// All sections of Secrets in a text.
pub(super) fn find(text: &str) -> Vec<Span> {
    let mut finds = Finds::new(text);
    if finds.markers.is_empty() && !may_be_cut(text) {
        return Vec::new();
    }
    flow::scan(text, &mut finds);
    block::scan(text, &mut finds);
    let open = finds.open_markers();
    if !open.is_empty() {
        block::hide_all_after(text, &open, &mut finds);
    }
    finds.spans
}

/// What was found so far.
struct Finds {
    spans: Vec<Span>,
    /// Where it says that something is a Secret, and whether the structure around it was understood.
    markers: Vec<(usize, bool)>,
}

impl Finds {
    fn new(text: &str) -> Self {
        static MARKER: LazyLock<Option<Regex>> =
            LazyLock::new(|| rule::compile(r#"\bkind\\*["']?[ \t]*:\s*\\*["']?Secret(?:List)?\b"#).ok());
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

    /// The structure around the markers in this place was understood.
    fn settle(&mut self, place: Range<usize>) {
        let markers = self.within(&place);
        self.markers[markers]
            .iter_mut()
            .for_each(|(_, is_settled)| *is_settled = true);
    }

    fn is_settled(&self, place: Range<usize>) -> bool {
        let markers = &self.markers[self.within(&place)];
        !markers.is_empty() && markers.iter().all(|(_, is_settled)| *is_settled)
    }

    /// Which markers stand in a place. They are in order.
    fn within(&self, place: &Range<usize>) -> Range<usize> {
        let before = |end: usize| self.markers.partition_point(|(at, _)| *at < end);
        before(place.start)..before(place.end)
    }

    fn open_markers(&self) -> Vec<usize> {
        let open = self.markers.iter().filter(|(_, is_settled)| !is_settled);
        open.map(|(at, _)| *at).collect()
    }

    /// Hides a section, unless there is nothing in it or it is hidden already.
    fn hide(&mut self, text: &str, range: Range<usize>, with: String) {
        let plain = text[range.clone()].trim_matches(|c: char| c.is_whitespace() || "\"'\\".contains(c));
        if !matches!(plain, "" | "{}" | "null" | "~") && plain != MARK {
            self.spans.push(Span {
                range,
                name: NAME.into(),
                with: with.into(),
            });
        }
    }
}

/// What a key of a manifest says about the object that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Secret,
    List,
    Other,
}

impl Kind {
    fn named(word: &str) -> Self {
        match word {
            "Secret" => Self::Secret,
            "SecretList" => Self::List,
            _ => Self::Other,
        }
    }
}

/// A manifest whose end is missing may have been a Secret: its kind often stands after its data.
fn may_be_cut(text: &str) -> bool {
    text.contains("apiVersion") && text.contains("data")
}

/// Whether the values of a section are all base64, as those of Secrets are. The last one may be cut.
fn looks_encoded(section: &str) -> bool {
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
