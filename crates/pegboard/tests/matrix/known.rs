//! What is wrong today: each entry names cells that do not end as they must, and what is seen instead.

use crate::case::Cell;

/// Cells that are wrong, until the fault behind them is mended. An entry that is no longer true fails the test.
pub(crate) struct Known {
    pub(crate) id: &'static str,
    /// The wires and eras by letter, as in a case.
    pub(crate) wires: &'static str,
    pub(crate) eras: &'static str,
    /// What is seen.
    pub(crate) seen: &'static str,
    /// What is behind it.
    pub(crate) why: &'static str,
}

impl Known {
    pub(crate) fn covers(&self, cell: &Cell) -> bool {
        self.id == cell.case.id && cell.is_among(self.wires, self.eras)
    }
}

pub(crate) const KNOWN: &[Known] = &[];
