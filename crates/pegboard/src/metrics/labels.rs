//! [`LabelTable`]: counters by a name that clients and servers choose, such as that of a tool, within a bound.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use pegboard_base::sync::RwLock;

/// The label of all names that have none of their own.
const OTHER: &str = "other";
/// The longest name that is a label, in bytes.
const MAX_NAME: usize = 128;

/// How many names have a label of their own in the metrics of a board; the first ones to be seen have one, and the rest are counted together. Zero
/// switches the metrics with such labels off. See [`Builder::metric_labels`](crate::Builder::metric_labels).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetricLabels {
    /// The tools of all servers.
    pub tools: usize,
    /// The principals.
    pub principals: usize,
    /// The labels of views.
    pub views: usize,
}

impl MetricLabels {
    /// Labels for so many tools, principals and views.
    pub fn new(tools: usize, principals: usize, views: usize) -> Self {
        Self {
            tools,
            principals,
            views,
        }
    }
}

/// How many more names get a label of their own. Tables may share it.
#[derive(Debug, Default)]
pub(super) struct LabelBound {
    max: usize,
    free: AtomicUsize,
}

impl LabelBound {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            free: AtomicUsize::new(max),
        })
    }

    fn take(&self) -> bool {
        let take = |free: usize| free.checked_sub(1);
        let taken = self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        taken.is_ok()
    }

    fn give_back(&self, count: usize) {
        self.free.fetch_add(count, Ordering::Relaxed);
    }
}

/// Counters by name.
#[derive(Debug, Default)]
pub(crate) struct LabelTable<T> {
    bound: Arc<LabelBound>,
    named: RwLock<HashMap<Box<str>, Arc<T>>>,
    /// Those of all other names.
    other: OnceLock<Arc<T>>,
}

impl<T: Default> LabelTable<T> {
    pub(super) fn new(bound: &Arc<LabelBound>) -> Self {
        Self {
            bound: bound.clone(),
            named: RwLock::default(),
            other: OnceLock::new(),
        }
    }

    /// The counters of a name, which may be those of all others. `None` if nothing is counted by name.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<T>> {
        if self.bound.max == 0 {
            return None;
        }
        if let Some(known) = self.named.read().get(name) {
            return Some(known.clone());
        }
        Some(self.add(name))
    }

    #[cold]
    fn add(&self, name: &str) -> Arc<T> {
        let other = || self.other.get_or_init(Arc::default).clone();
        if name.is_empty() || name.len() > MAX_NAME {
            return other();
        }
        let mut named = self.named.write();
        if let Some(known) = named.get(name) {
            return known.clone();
        }
        if !self.bound.take() {
            return other();
        }
        named.entry(name.into()).or_default().clone()
    }

    /// Reads the counters of all labels.
    pub(super) fn read<R>(&self, read: impl Fn(&T) -> R) -> BTreeMap<String, R> {
        let named = self.named.read();
        let named = named.iter().map(|(name, counts)| (label_of(name), read(counts)));
        let other = self.other.get().map(|counts| (OTHER.to_owned(), read(counts)));
        named.chain(other).collect()
    }
}

impl<T> Drop for LabelTable<T> {
    fn drop(&mut self) {
        self.bound.give_back(self.named.read().len());
    }
}

/// The label of a name. One that is called as the label of all others, with or without apostrophes after it, gets one more apostrophe.
fn label_of(name: &str) -> String {
    match name.trim_end_matches('\'') {
        OTHER => format!("{name}'"),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    fn count(table: &LabelTable<AtomicU64>, name: &str) {
        table.find(name).unwrap().fetch_add(1, Ordering::Relaxed);
    }

    fn read(table: &LabelTable<AtomicU64>) -> Vec<(String, u64)> {
        let read = table.read(|count| count.load(Ordering::Relaxed));
        read.into_iter().collect()
    }

    #[test]
    fn the_first_names_have_labels_and_the_rest_share_one() {
        let bound = LabelBound::new(3);
        let (table, second) = (LabelTable::new(&bound), LabelTable::new(&bound));
        for name in ["a", "b", "a"] {
            count(&table, name);
        }
        for name in ["c", "d", "e", "c"] {
            count(&second, name);
        }
        count(&table, "f");
        count(&table, "a");
        let rows = |rows: &[(&str, u64)]| -> Vec<_> { rows.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect() };
        assert_eq!(read(&table), rows(&[("a", 3), ("b", 1), ("other", 1)]));
        assert_eq!(read(&second), rows(&[("c", 2), ("other", 2)]));
        drop(table);
        count(&second, "g");
        count(&second, "h");
        count(&second, "i");
        assert_eq!(read(&second), rows(&[("c", 2), ("g", 1), ("h", 1), ("other", 3)]));
    }

    #[test]
    fn a_name_that_is_called_other_is_not_taken_for_the_others() {
        let table = LabelTable::new(&LabelBound::new(3));
        for name in ["other", "other'", "others", "rest", ""] {
            count(&table, name);
        }
        count(&table, &"x".repeat(MAX_NAME + 1));
        let names: Vec<String> = read(&table).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["other", "other'", "other''", "others"]);
        assert_eq!(read(&table)[0].1, 3);
    }

    #[test]
    fn without_a_bound_nothing_is_counted_by_name() {
        let table = LabelTable::<AtomicU64>::new(&LabelBound::new(0));
        assert!(table.find("a").is_none());
        assert_eq!(read(&table), []);
    }
}
