//! The table of attacks in `docs/security.md`: it has every attack, and the tests that it names exist.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::{lines, root};

/// The attacks of the table.
const ATTACKS: usize = 33;

/// A row: the attack's number, the defence and the tests that prove it.
struct Row {
    number: String,
    defence: String,
    tests: Vec<String>,
}

#[test]
fn every_attack_has_a_defence_and_a_test_or_says_what_is_missing() {
    let rows = rows();
    let numbers: Vec<String> = rows.iter().map(|row| row.number.clone()).collect();
    assert_eq!(
        numbers,
        (1..=ATTACKS).map(|number| number.to_string()).collect::<Vec<_>>()
    );
    let untested = rows
        .iter()
        .filter(|row| row.tests.is_empty() && !row.defence.contains("not built yet"));
    let untested: Vec<_> = untested.map(|row| &row.number).collect();
    assert!(untested.is_empty(), "without a test: {untested:?}");
}

#[test]
fn every_test_of_the_table_exists() {
    let known = tests();
    let missing = rows().into_iter().flat_map(|row| {
        let unknown: Vec<_> = row.tests.into_iter().filter(|test| !known.contains(test)).collect();
        unknown.into_iter().map(move |test| format!("{}: {test}", row.number))
    });
    let missing: Vec<_> = missing.collect();
    assert!(missing.is_empty(), "{}", lines(missing));
}

fn rows() -> Vec<Row> {
    let text = fs::read_to_string(root().join("docs/security.md")).expect("the document");
    let rows = text
        .lines()
        .skip_while(|line| !line.starts_with("| # | attack | defence | tests |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        assert_eq!(cells.len(), 6, "{row}");
        Row {
            number: cells[1].to_owned(),
            defence: cells[3].to_owned(),
            tests: cells[4].split('`').skip(1).step_by(2).map(str::to_owned).collect(),
        }
    })
    .collect()
}

/// The names of all functions in source files that have tests.
fn tests() -> BTreeSet<String> {
    let mut files = Vec::new();
    for folder in ["crates", "fuzz"] {
        collect_sources(&root().join(folder), &mut files);
    }
    let texts = files
        .iter()
        .map(|file| fs::read_to_string(file).expect("a source file"));
    texts
        .flat_map(|text| {
            let functions = text.split("fn ").skip(1);
            let names = functions.map(|rest| rest.split(|c: char| c != '_' && !c.is_ascii_alphanumeric()).next());
            names
                .flatten()
                .filter(|name| is_test(&text, name))
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Whether the lines directly before the function have a test attribute.
pub(super) fn is_test(text: &str, name: &str) -> bool {
    let Some(at) = text.find(&format!("fn {name}(")) else {
        return false;
    };
    let line = text[..at].rfind('\n').unwrap_or(0);
    let before = text[..line].lines().rev();
    let mut attributes = before.take_while(|line| line.trim_start().starts_with(['#', '/']));
    attributes.any(|line| line.contains("#[test]") || line.contains("#[tokio::test"))
}

fn collect_sources(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if !path.ends_with("target") {
                collect_sources(&path, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}
