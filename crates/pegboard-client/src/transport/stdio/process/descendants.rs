//! [`Descendants`]: what becomes of the processes that a server has started.

/// What becomes of the descendants of a child that exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Descendants {
    /// They are killed.
    Kill,
    /// They stay until the handle to the child is dropped.
    Keep,
}
