//! Tables with aligned columns, truncated at the width of the terminal.

use super::sanitize::one_line;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Rows of cells. The last column is truncated at the edge of the terminal; the others are as wide as their widest cell.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    indent: usize,
    /// Columns that a narrow terminal does without, the least important first.
    optional: Vec<usize>,
}

const GAP: usize = 2;
/// The least width of the last column, however narrow the terminal.
const MIN_LAST: usize = 20;

impl Table {
    /// A table that is indented by this many columns.
    pub(crate) fn with_indent(indent: usize) -> Self {
        Self {
            rows: Vec::new(),
            indent,
            optional: Vec::new(),
        }
    }

    /// Names the columns that are left out on a terminal on which the table has no room, the least important first. A pipe gets all of them.
    pub(crate) fn with_optional(mut self, columns: &[usize]) -> Self {
        self.optional = columns.to_vec();
        self
    }

    /// Adds a row. All rows must have the same number of cells.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Returns `true` if the last column shows all of `text`.
    pub(crate) fn has_room(&self, text: &str, width: Option<usize>) -> bool {
        let left = self.width_of_last(&self.columns(width), width);
        one_line(text) == text && left.is_none_or(|left| text.width() <= left)
    }

    /// The columns that are shown, all but the last, with their widths.
    fn columns(&self, width: Option<usize>) -> Vec<(usize, usize)> {
        let count = self.rows.first().map_or(0, Vec::len);
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            (column, cells.map(|cell| cell.width()).max().unwrap_or(0))
        };
        let mut columns: Vec<_> = (0..count.saturating_sub(1)).map(widest).collect();
        for left_out in &self.optional {
            if width.is_none_or(|width| self.width_before_last(&columns) + MIN_LAST <= width) {
                break;
            }
            columns.retain(|(column, _)| column != left_out);
        }
        columns
    }

    /// The width of everything before the last column.
    fn width_before_last(&self, columns: &[(usize, usize)]) -> usize {
        self.indent + columns.iter().map(|(_, width)| width + GAP).sum::<usize>()
    }

    /// The width left for the last column, on a terminal.
    fn width_of_last(&self, columns: &[(usize, usize)], width: Option<usize>) -> Option<usize> {
        width.map(|width| width.saturating_sub(self.width_before_last(columns)).max(MIN_LAST))
    }

    /// Renders the table; `width` is that of the terminal, if there is one.
    pub(crate) fn render(&self, width: Option<usize>) -> String {
        self.render_painted(width, |_, _, cell| cell.to_owned())
    }

    /// Renders the table, with each cell as `paint` shows it: its row, its column and its text are given.
    pub(crate) fn render_painted(&self, width: Option<usize>, paint: impl Fn(usize, usize, &str) -> String) -> String {
        let columns = self.columns(width);
        let left = self.width_of_last(&columns, width);
        let mut text = String::new();
        for (number, row) in self.rows.iter().enumerate() {
            let mut line = " ".repeat(self.indent);
            for (column, width) in &columns {
                let cell = row.get(*column).map_or("", String::as_str);
                line.push_str(&paint(number, *column, cell));
                line.push_str(&" ".repeat(width - cell.width() + GAP));
            }
            if let Some(last) = row.last() {
                let last = left.map_or_else(|| last.clone(), |left| fit(last, left));
                line.push_str(&paint(number, row.len() - 1, &last));
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Truncates a text that is wider than `width`, with `…` at the end.
pub(crate) fn fit(text: &str, width: usize) -> String {
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
        let mut table = Table::with_indent(2);
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
    fn a_narrow_terminal_does_without_columns_that_are_optional() {
        let mut table = Table::with_indent(0).with_optional(&[1, 0]);
        table.row(["name", "a column of some width", "what it is"].map(str::to_owned));
        let whole = "name  a column of some width  what it is\n";
        assert_eq!(table.render(None), whole);
        assert_eq!(table.render(Some(50)), whole);
        assert_eq!(table.render(Some(49)), "name  what it is\n");
        assert_eq!(table.render(Some(25)), "what it is\n");
    }

    #[test]
    fn colours_take_no_room() {
        let mut table = Table::default();
        table.row(["NAME", "STATE"].map(str::to_owned));
        table.row(["a", "ready"].map(str::to_owned));
        let shown = table.render_painted(
            None,
            |row, _, cell| if row == 0 { format!("<{cell}>") } else { cell.to_owned() },
        );
        assert_eq!(shown, "<NAME>  <STATE>\na     ready\n");
    }

    #[test]
    fn a_cut_text_is_never_wider_than_asked() {
        for width in 1..12 {
            assert!(fit("日本語のテキスト", width).width() <= width, "{width}");
        }
        assert_eq!(fit("just fits", 9), "just fits");
    }
}
