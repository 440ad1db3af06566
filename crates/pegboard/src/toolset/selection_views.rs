//! [`SelectionViews`]: copies of a view with the selections of recent calls.

use std::sync::Arc;

use super::open_view::OpenView;
use pegboard_base::sync::Mutex;
use pegboard_tools::filter::Selection;

/// How many selections of single calls are cached with their route tables.
const MAX_CACHED: usize = 8;

/// Copies of a view with the selections of recent calls, the newest first. Many calls have the same selection.
#[derive(Debug, Default)]
pub(super) struct SelectionViews(Mutex<Vec<(Arc<Selection>, OpenView)>>);

impl SelectionViews {
    /// Returns `open` with another selection.
    pub(super) fn get(&self, open: &OpenView, selection: &Arc<Selection>) -> OpenView {
        let mut cached = self.0.lock();
        let is_same = |known: &Arc<Selection>| Arc::ptr_eq(known, selection) || known == selection;
        if let Some((_, view)) = cached.iter().find(|(known, _)| is_same(known)) {
            return view.clone();
        }
        let view = open.with_selection(selection.clone());
        cached.truncate(MAX_CACHED - 1);
        cached.insert(0, (selection.clone(), view.clone()));
        view
    }
}
