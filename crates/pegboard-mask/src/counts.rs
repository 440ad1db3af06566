//! Counts of masked secrets.

use std::collections::BTreeMap;

/// How many secrets were masked, by the names of the patterns that found them.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Counts(BTreeMap<String, usize>);

impl Counts {
    /// The number of masked secrets.
    pub fn total(&self) -> usize {
        self.0.values().sum()
    }

    /// Whether nothing was masked.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the patterns that found secrets, and how many.
    pub fn iter(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().map(|(name, count)| (name.as_str(), *count))
    }

    pub(super) fn add(&mut self, name: &str, count: usize) {
        match self.0.get_mut(name) {
            Some(known) => *known += count,
            None => {
                self.0.insert(name.to_owned(), count);
            }
        }
    }

    /// Adds all counts of `others`.
    #[doc(hidden)]
    pub fn add_all(&mut self, others: &Self) {
        others.iter().for_each(|(name, count)| self.add(name, count));
    }
}
