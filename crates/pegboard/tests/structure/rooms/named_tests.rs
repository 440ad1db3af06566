//! The tests that documents name by file and function, as `tests/engine/life/processes.rs::a_name`: every one of them exists.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::{attack_table::is_test, lines, root};

/// The page that names a test for each requirement of the designs, and how many names it has at least. Fewer would mean that they are not found.
const SEEDS: (&str, usize) = ("docs/seeds.md", 150);

#[test]
fn every_test_that_a_document_names_is_a_test_of_that_file() {
    let mut texts = BTreeMap::new();
    let mut missing = Vec::new();
    let mut found = BTreeMap::new();
    for page in pages() {
        let text = fs::read_to_string(&page).expect("a document");
        let page = page.strip_prefix(root()).expect("below the root").display().to_string();
        for (file, name) in named(&text) {
            *found.entry(page.clone()).or_insert(0) += 1;
            let text = texts.entry(file.to_owned()).or_insert_with(|| source(file));
            match text {
                None => missing.push(format!("{page}: there is no file {file}")),
                Some(text) if !is_test(text, name) => missing.push(format!("{page}: {file} has no test {name}")),
                Some(_) => {}
            }
        }
    }
    assert!(missing.is_empty(), "{}", lines(missing));
    let (page, least) = SEEDS;
    assert!(
        found.get(page).is_some_and(|count| *count >= least),
        "{page} names too few: {found:?}"
    );
}

/// Every document of the project.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for folder in [root(), root().join("docs")] {
        let is_all = folder.ends_with("docs");
        collect(&folder, is_all, &mut pages);
    }
    pages
}

fn collect(folder: &Path, with_folders: bool, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            if with_folders {
                collect(&path, true, pages);
            }
        } else if path.extension().is_some_and(|extension| extension == "md") {
            pages.push(path);
        }
    }
}

/// The pairs of file and function in code spans.
fn named(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let spans = text.split('`').filter(|span| !span.contains(char::is_whitespace));
    spans.filter_map(|span| {
        let (file, name) = span.split_once(".rs::")?;
        Some((span.get(..file.len() + 3)?, name.rsplit("::").next()?))
    })
}

/// The text of a source file, by its path from the root or from the library.
fn source(file: &str) -> Option<String> {
    let places = [root().join(file), root().join("crates/pegboard").join(file)];
    places.iter().find_map(|place| fs::read_to_string(place).ok())
}
