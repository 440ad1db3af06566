//! The structure of the library: rooms use only rooms below them, files of a room do not use each other in circles, and
//! ARCHITECTURE.md describes the tree as it is.

mod attack_table;
mod named_tests;
mod source;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use source::{Crate, ModulePath};

/// Rooms whose code is synchronous.
const PURE: &[&str] = &[
    "args", "filter", "grant", "catalog", "provider", "search", "mask", "outcome",
];

/// Circles that are one recursive algorithm in several files.
const RECURSIONS: &[&[&str]] = &[];

#[test]
fn every_room_uses_only_rooms_below_it() {
    let rooms = rooms();
    let library = Crate::read();
    let mut wrong = BTreeSet::new();
    for (path, module) in library.modules().filter(|(path, _)| !path.is_empty()) {
        let Some(own) = rooms.iter().position(|room| *room == path[0]) else {
            wrong.insert(format!("`{}` is not in the table of rooms in ARCHITECTURE.md", path[0]));
            continue;
        };
        for used in library.used_by(path).iter().filter(|used| !used.is_empty()) {
            if rooms.iter().position(|room| *room == used[0]) > Some(own) {
                wrong.insert(format!(
                    "{} uses `{}`, which is above it",
                    module.file.display(),
                    used[0]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", lines(wrong));
}

#[test]
fn the_files_of_a_room_do_not_use_each_other_in_circles() {
    let library = Crate::read();
    let graph: BTreeMap<_, _> = library
        .modules()
        .filter(|(path, _)| !path.is_empty())
        .map(|(path, _)| (path.clone(), library.used_by(path)))
        .collect();
    let allowed: Vec<BTreeSet<String>> = RECURSIONS
        .iter()
        .map(|files| files.iter().map(ToString::to_string).collect())
        .collect();
    let circles = circles(&graph)
        .into_iter()
        .map(|circle| circle.iter().map(|path| path.join("/")).collect());
    let unknown: Vec<BTreeSet<String>> = circles.filter(|circle| !allowed.contains(circle)).collect();
    let shown = unknown.iter().map(|circle| {
        let arrows = graph.iter().flat_map(|(path, used)| {
            let from = path.join("/");
            let inside = used
                .iter()
                .map(|used| used.join("/"))
                .filter(|used| circle.contains(used));
            inside
                .map(move |used| format!("    {from} -> {used}"))
                .collect::<Vec<_>>()
        });
        let arrows = arrows.filter(|arrow| {
            circle
                .iter()
                .any(|file| arrow.trim_start().starts_with(&format!("{file} ")))
        });
        format!("{} files:\n{}", circle.len(), lines(arrows))
    });
    assert!(
        unknown.is_empty(),
        "files that use each other in circles\n{}",
        lines(shown)
    );
}

#[test]
fn pure_rooms_are_synchronous() {
    for (path, module) in Crate::read().modules() {
        if path.first().is_some_and(|room| PURE.contains(&room.as_str())) {
            let is_async = module.tokens.iter().any(|token| token == "async");
            assert!(!is_async, "{} is async", module.file.display());
        }
    }
}

#[test]
fn every_room_of_the_map_exists() {
    let source = root().join("crates/pegboard/src");
    let missing = rooms()
        .into_iter()
        .filter(|room| !source.join(room).with_extension("rs").exists());
    assert_eq!(
        missing.collect::<Vec<_>>(),
        Vec::<String>::new(),
        "ARCHITECTURE.md has rooms that do not exist"
    );
}

#[test]
fn the_documents_name_only_files_that_exist() {
    let mut missing = Vec::new();
    for document in documents() {
        let text = std::fs::read_to_string(&document).expect("a document");
        for path in source_paths(&text) {
            let bases = [
                "",
                "crates",
                "crates/pegboard",
                "crates/pegboard/src",
                "crates/pegboard/tests",
                "crates/pegboard-cli/src",
                "crates/pegboard-gateway/src",
                "crates/pegboard-daemon/src",
                "crates/pegboard-hosts/src",
                "crates/pegboard-torture/src",
            ];
            let relative = document.parent().expect("a folder").join(&path);
            if !relative.exists() && !bases.iter().any(|base| root().join(base).join(&path).exists()) {
                missing.push(format!(
                    "{}: {path}",
                    document.strip_prefix(root()).expect("below the root").display()
                ));
            }
        }
    }
    assert!(missing.is_empty(), "{}", lines(missing));
}

#[test]
fn every_file_opens_with_a_sentence_about_it() {
    for (_, module) in Crate::read().modules() {
        let text =
            std::fs::read_to_string(root().join("crates/pegboard/src").join(&module.file)).expect("a source file");
        assert!(
            text.starts_with("//! ") || text.starts_with("#![doc"),
            "{}",
            module.file.display()
        );
    }
}

/// The rooms from the bottom up, as the table in ARCHITECTURE.md lists them.
fn rooms() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the map");
    let rows = text
        .lines()
        .skip_while(|line| !line.starts_with("| layer | rooms |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let cells = rows.map(|row| row.split('|').nth(2).expect("a row has two cells").to_owned());
    cells
        .flat_map(|cell| {
            let quoted: Vec<String> = cell.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            quoted
                .into_iter()
                .filter(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '_'))
        })
        .collect()
}

/// The paths of source files in a document, with and without folders.
fn source_paths(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"_-./".contains(c));
    let paths = words.filter(|word| word.ends_with(".rs") && word.contains('/') && !word.starts_with("//"));
    paths.map(|path| path.trim_start_matches("./").to_owned()).collect()
}

fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.extend(["ARCHITECTURE.md", "README.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    found
}

fn root() -> PathBuf {
    let library = Path::new(env!("CARGO_MANIFEST_DIR"));
    library
        .ancestors()
        .nth(2)
        .expect("the library is two folders down")
        .to_owned()
}

fn lines(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().collect::<Vec<_>>().join("\n")
}

/// The groups of two or more modules of one room that reach each other.
fn circles(graph: &BTreeMap<ModulePath, BTreeSet<ModulePath>>) -> Vec<Vec<ModulePath>> {
    let reached: BTreeMap<_, _> = graph.keys().map(|path| (path, reachable(graph, path))).collect();
    let mut grouped = BTreeSet::new();
    let mut found = Vec::new();
    for path in graph.keys() {
        if !grouped.contains(path) && reached[path].contains(path) {
            let circle: Vec<_> = reached[path]
                .iter()
                .filter(|other| reached[other].contains(path))
                .cloned()
                .collect();
            grouped.extend(circle.iter().cloned());
            found.push(circle);
        }
    }
    found
}

/// The modules of its own room that a module reaches by one or more steps.
fn reachable(graph: &BTreeMap<ModulePath, BTreeSet<ModulePath>>, from: &ModulePath) -> BTreeSet<ModulePath> {
    let mut reached = BTreeSet::new();
    let mut unread = vec![from];
    while let Some(path) = unread.pop() {
        for used in graph.get(path).into_iter().flatten() {
            if used.first() == from.first() && reached.insert(used.clone()) {
                unread.push(used);
            }
        }
    }
    reached
}
