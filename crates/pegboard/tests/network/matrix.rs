//! The fault matrix: every known fault on every wire and in every era it can happen in, each with its required outcome.
//!
//! A row is a [`case::Case`]: its id, the fault in one sentence, and the required behaviour. The rows in `cases` are the only definition of
//! the ids. A cell is a case on one wire in one era. Each cell checks four things: the exact outcome, the time it took, the processes, tasks
//! and connections that are left, and whether a healthy server on the same board kept answering.
//!
//! By default two cells per case run; `PEGBOARD_MATRIX=all` runs every cell, `PEGBOARD_MATRIX=F040` those of one case.

mod case;
mod cases;
mod known;
mod leftovers;
mod raw;
mod run;
mod stage;
mod table;

use case::Cell;

/// The cells to run, from the environment.
fn chosen() -> Vec<Cell> {
    let all = case::cells();
    match std::env::var("PEGBOARD_MATRIX").as_deref() {
        Err(_) | Ok("") => case::sample(&all),
        Ok("all") => all,
        Ok(ids) => all
            .into_iter()
            .filter(|cell| ids.split(',').any(|id| cell.label().starts_with(id)))
            .collect(),
    }
}

#[test]
fn every_fault_ends_as_it_must_on_every_wire_and_in_every_era() {
    let verdicts = run::all(chosen());
    table::print(&verdicts);
    let wrong: Vec<_> = verdicts.iter().filter(|verdict| verdict.is_wrong()).collect();
    assert!(
        wrong.is_empty(),
        "{} cells are wrong:\n{}",
        wrong.len(),
        wrong
            .iter()
            .map(|verdict| verdict.complaint())
            .collect::<Vec<_>>()
            .join("\n")
    );
}

#[test]
fn every_fault_has_a_case_and_each_case_an_id_of_its_own() {
    let mut ids: Vec<_> = cases::all().iter().map(|case| case.id).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "an id is used twice");
    for case in cases::all() {
        assert!(!case.fault.is_empty() && !case.must.is_empty(), "{}", case.id);
        assert!(!case.cells().is_empty(), "{} has no cell", case.id);
    }
    for known in known::KNOWN {
        let cells = case::cells();
        assert!(
            cells.iter().any(|cell| known.covers(cell)),
            "{} names no cell",
            known.id
        );
    }
}
