//! Known failures: cells that do not have their required outcome, and the outcome that they have instead.

use crate::matrix::case::Cell;

/// Cells with a wrong outcome, until the bug behind them is fixed. An entry that is no longer true fails the test.
pub(crate) struct Known {
    pub(crate) id: &'static str,
    /// The wires and eras by letter, as in a case.
    pub(crate) wires: &'static str,
    pub(crate) eras: &'static str,
    /// The actual outcome.
    pub(crate) seen: &'static str,
    /// The cause.
    pub(crate) why: &'static str,
}

impl Known {
    pub(crate) fn covers(&self, cell: &Cell) -> bool {
        self.id == cell.case.id && cell.is_among(self.wires, self.eras)
    }
}

pub(crate) const KNOWN: &[Known] = &[];
