//! Medians over rounds, and their table.

use std::collections::BTreeMap;

/// The measurements by row and client: one number per round.
#[derive(Default)]
pub struct Numbers(BTreeMap<(String, String, String), Vec<f64>>);

impl Numbers {
    /// Adds the measurement of one round for `client` in `row`.
    pub fn add(&mut self, row: &str, client: &str, what: &str, number: f64) {
        let key = (row.to_owned(), client.to_owned(), what.to_owned());
        self.0.entry(key).or_default().push(number);
    }

    /// The median over all rounds.
    pub fn median(&self, row: &str, client: &str, what: &str) -> Option<f64> {
        let key = (row.to_owned(), client.to_owned(), what.to_owned());
        let mut numbers = self.0.get(&key)?.clone();
        numbers.sort_by(f64::total_cmp);
        numbers.get(numbers.len() / 2).copied()
    }
}

/// Prints a table: the first column left-aligned, the others right-aligned.
pub fn print(heading: &str, lines: &[Vec<String>]) {
    println!("\n{heading}");
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|at| {
            lines
                .iter()
                .filter_map(|line| line.get(at))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    for line in lines {
        let cells = line.iter().enumerate().map(|(at, cell)| match at {
            0 => format!("{cell:<width$}", width = widths[0]),
            _ => format!("{cell:>width$}", width = widths[at]),
        });
        println!("  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

/// Formats a number with about three significant digits.
pub fn short(number: Option<f64>) -> String {
    match number {
        None => "-".to_owned(),
        Some(number) if number.abs() < 10.0 => format!("{number:.2}"),
        Some(number) if number.abs() < 100.0 => format!("{number:.1}"),
        Some(number) => format!("{number:.0}"),
    }
}
