//! Prints the results of the cells as a table.

use std::collections::BTreeMap;

use crate::matrix::{
    case::{Era, Wire},
    run::{Verdict, What},
};

/// The fault, and the result of each cell.
type Row<'a> = (&'a str, BTreeMap<(Wire, Era), &'static str>);

#[expect(clippy::print_stdout, reason = "the table is the result of the test")]
pub(crate) fn print(verdicts: &[Verdict]) {
    let columns: Vec<(Wire, Era)> = Wire::ALL
        .into_iter()
        .flat_map(|wire| Era::ALL.map(|era| (wire, era)))
        .filter(|column| *column != (Wire::Sse, Era::Modern))
        .collect();
    let mut rows: BTreeMap<&str, Row<'_>> = BTreeMap::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for verdict in verdicts {
        let cell = &verdict.cell;
        let word = word(&verdict.what);
        *counts.entry(word).or_default() += 1;
        let row = rows.entry(cell.case.id).or_insert((cell.case.fault, BTreeMap::new()));
        row.1.insert((cell.wire, cell.era), word);
    }
    let head: Vec<_> = columns
        .iter()
        .map(|(wire, era)| format!("{} {}", wire.name(), era.name()))
        .collect();
    println!("| case | fault | {} |", head.join(" | "));
    println!("|---|---|{}", "---|".repeat(columns.len()));
    for (id, (fault, cells)) in &rows {
        let words: Vec<_> = columns
            .iter()
            .map(|column| cells.get(column).copied().unwrap_or(""))
            .collect();
        println!("| {id} | {fault} | {} |", words.join(" | "));
    }
    let counts: Vec<_> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    println!("\n{} cells: {}", verdicts.len(), counts.join(", "));
    let mut reasons: Vec<String> = verdicts.iter().filter_map(reason).collect();
    reasons.dedup();
    for reason in reasons {
        println!("{reason}");
    }
}

fn word(what: &What) -> &'static str {
    match what {
        What::Right => "ok",
        What::Known(_) => "told wrongly",
        What::Wrong(_) => "WRONG",
        What::Mended => "MENDED",
        What::CannotRun(_) => "cannot run here",
    }
}

fn reason(verdict: &Verdict) -> Option<String> {
    let cell = &verdict.cell;
    match &verdict.what {
        What::CannotRun(why) => Some(format!("* {} cannot run here: {why}", cell.case.id)),
        What::Known(known) => Some(format!(
            "* {} is told wrongly: {} (must be `{}`, is `{}`)",
            cell.label(),
            known.why,
            cell.expected(),
            known.seen
        )),
        What::Right | What::Wrong(_) | What::Mended => None,
    }
}
