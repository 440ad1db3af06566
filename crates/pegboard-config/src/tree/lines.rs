//! Maps byte offsets of a text to lines and columns.

use super::node::Location;

/// The byte offsets at which the lines of a text start.
pub(super) struct LineStarts<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> LineStarts<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let ends = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(ends).collect(),
        }
    }

    /// The location of a byte offset.
    pub(super) fn place(&self, offset: usize) -> Location {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        // Counting characters for every value of a file with one long line would be quadratic, so bytes are counted there.
        let before = match self.text.get(start..offset) {
            Some(text) if text.len() < 1000 => text.chars().count(),
            _ => offset.saturating_sub(start),
        };
        Location::new(line, before + 1)
    }
}
