//! Tables with aligned columns, truncated at the width of the terminal.

use super::sanitize::one_line;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Rows of cells. The last column is truncated at the edge of the terminal; the others are as wide as their widest cell.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    indent: usize,
}

const GAP: usize = 2;
/// The least width of the last column, however narrow the terminal.
const MIN_LAST: usize = 20;

impl Table {
    /// A table that is indented by this many columns.
    pub(crate) fn indented(indent: usize) -> Self {
        Self {
            rows: Vec::new(),
            indent,
        }
    }

    /// Adds a row. All rows must have the same number of cells.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns `true` if the last column shows all of `text`.
    pub(crate) fn has_room(&self, text: &str, width: Option<usize>) -> bool {
        let left = self.left(&self.widths(), width);
        one_line(text) == text && left.is_none_or(|left| text.width() <= left)
    }

    /// The widths of all columns but the last.
    fn widths(&self) -> Vec<usize> {
        let columns = self.rows.first().map_or(0, Vec::len);
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.width()).max().unwrap_or(0)
        };
        (0..columns.saturating_sub(1)).map(widest).collect()
    }

    /// The width left for the last column, on a terminal.
    fn left(&self, widths: &[usize], width: Option<usize>) -> Option<usize> {
        let taken = self.indent + widths.iter().map(|width| width + GAP).sum::<usize>();
        width.map(|width| width.saturating_sub(taken).max(MIN_LAST))
    }

    /// Renders the table; `width` is that of the terminal, if there is one.
    pub(crate) fn render(&self, width: Option<usize>) -> String {
        let widths = self.widths();
        let left = self.left(&widths, width);
        let mut text = String::new();
        for row in &self.rows {
            let mut line = " ".repeat(self.indent);
            for (cell, width) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.push_str(&" ".repeat(width - cell.width() + GAP));
            }
            if let Some(last) = row.last() {
                line.push_str(&left.map_or_else(|| last.clone(), |left| fitted(last, left)));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Truncates a text that is wider than `width`, with `…` at the end.
pub(crate) fn fitted(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut taken = 0;
    let kept = text.chars().take_while(|c| {
        taken += c.width().unwrap_or(0);
        taken < width
    });
    let mut cut: String = kept.collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_the_last_is_cut_at_the_terminals_edge() {
        let mut table = Table::indented(2);
        table.row(["a", "日本", "short"].map(str::to_owned));
        table.row(["bbb", "x", "a long text that does not fit"].map(str::to_owned));
        assert_eq!(
            table.render(None),
            "  a    日本  short\n  bbb  x     a long text that does not fit\n"
        );
        assert_eq!(
            table.render(Some(34)),
            "  a    日本  short\n  bbb  x     a long text that doe…\n"
        );
        assert_eq!(
            table.render(Some(1)),
            "  a    日本  short\n  bbb  x     a long text that do…\n"
        );
    }

    #[test]
    fn a_cut_text_is_never_wider_than_asked() {
        for width in 1..12 {
            assert!(fitted("日本語のテキスト", width).width() <= width, "{width}");
        }
        assert_eq!(fitted("just fits", 9), "just fits");
    }
}
