//! The structure of the workspace: crates and rooms use only what is below them, files do not use each other in circles, and
//! ARCHITECTURE.md describes the tree as it is.
//!
//! Cargo refuses circles of crates. What it does not check is checked here, for every crate under `crates/`.

mod attack_table;
mod circles;
mod named_tests;
mod source;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use source::Crate;

/// The head of the table of crates in ARCHITECTURE.md.
const TABLE: &str = "| crate | what it is | rooms, bottom to top |";

/// Crates whose code is synchronous.
const PURE: &[&str] = &[
    "pegboard-protocol",
    "pegboard-mask",
    "pegboard-config",
    "pegboard-tools",
    "pegboard-hosts",
];

/// A row of the table of crates. A crate without rooms is one room itself.
struct Row {
    name: String,
    rooms: Vec<String>,
}

#[test]
fn the_table_lists_every_crate_after_those_that_it_depends_on() {
    let listed: Vec<String> = table().into_iter().map(|row| row.name).collect();
    let (unique, existing) = (listed.iter().cloned().collect::<BTreeSet<_>>(), crates());
    assert_eq!(
        (listed.len(), &unique),
        (existing.len(), &existing),
        "the crates in ARCHITECTURE.md"
    );
    for (place, name) in listed.iter().enumerate() {
        for used in dependencies(name) {
            let is_below = listed[..place].contains(&used);
            assert!(
                is_below,
                "{name} depends on {used}, which ARCHITECTURE.md lists after it"
            );
        }
    }
}

#[test]
fn every_room_uses_only_rooms_below_it() {
    let mut wrong = BTreeSet::new();
    for Row { name, rooms } in table().into_iter().filter(|row| !row.rooms.is_empty()) {
        let modules = Crate::read(&source_folder(&name));
        for (path, module) in modules.modules().filter(|(path, _)| !path.is_empty()) {
            let Some(own) = rooms.iter().position(|room| *room == path[0]) else {
                wrong.insert(format!(
                    "`{}` of {name} is not in the table of ARCHITECTURE.md",
                    path[0]
                ));
                continue;
            };
            for used in modules.used_by(path).iter().filter(|used| !used.is_empty()) {
                if rooms.iter().position(|room| *room == used[0]) > Some(own) {
                    let file = module.file.display();
                    wrong.insert(format!("{name}: {file} uses `{}`, which is above it", used[0]));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", lines(wrong));
}

#[test]
fn pure_crates_are_synchronous() {
    for name in PURE {
        for (_, module) in Crate::read(&source_folder(name)).modules() {
            let is_async = module.tokens.iter().any(|token| token == "async");
            assert!(!is_async, "{name}: {} is async", module.file.display());
        }
    }
}

#[test]
fn every_room_of_the_map_exists() {
    let rooms = table().into_iter().flat_map(|row| {
        row.rooms
            .into_iter()
            .map(move |room| format!("{}/src/{room}.rs", row.name))
    });
    let missing: Vec<String> = rooms
        .filter(|room| !root().join("crates").join(room).exists())
        .collect();
    assert!(
        missing.is_empty(),
        "ARCHITECTURE.md has rooms that do not exist: {missing:?}"
    );
}

#[test]
fn every_crate_has_a_page_of_its_own() {
    let missing: Vec<String> = crates().into_iter().filter(|name| !page_of(name).exists()).collect();
    assert!(missing.is_empty(), "docs/architecture has no page about {missing:?}");
}

#[test]
fn the_documents_name_only_files_that_exist() {
    let mut missing = Vec::new();
    for document in documents() {
        let text = fs::read_to_string(&document).expect("a document");
        let bases = bases(&document);
        for path in source_paths(&text, is_page_of_a_crate(&document)) {
            if !bases.iter().any(|base| base.join(&path).exists()) {
                let place = document.strip_prefix(root()).expect("below the root").display();
                missing.push(format!("{place}: {path}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", lines(missing));
}

#[test]
fn every_file_opens_with_a_sentence_about_it() {
    let mut wrong = Vec::new();
    for name in crates() {
        let folder = source_folder(&name);
        for (_, module) in Crate::read(&folder).modules() {
            let text = fs::read_to_string(folder.join(&module.file)).expect("a source file");
            if !text.starts_with("//! ") && !text.starts_with("#![doc") {
                wrong.push(format!("{name}: {}", module.file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", lines(wrong));
}

/// The crates from the bottom up, as the table in ARCHITECTURE.md lists them.
fn table() -> Vec<Row> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the map");
    let rows = text
        .lines()
        .skip_while(|line| *line != TABLE)
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let rows: Vec<Row> = rows
        .map(|row| {
            let cells: Vec<&str> = row.split('|').collect();
            assert_eq!(cells.len(), 5, "{row}");
            let mut names = code_spans(cells[1]);
            assert_eq!(names.len(), 1, "{row}");
            Row {
                name: names.remove(0),
                rooms: code_spans(cells[3]),
            }
        })
        .collect();
    assert!(!rows.is_empty(), "ARCHITECTURE.md has no table of crates");
    rows
}

fn code_spans(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The names of all crates of the workspace.
fn crates() -> BTreeSet<String> {
    let entries = fs::read_dir(root().join("crates")).expect("the crates");
    let folders = entries.map(|entry| entry.expect("an entry").path());
    let folders = folders.filter(|folder| folder.join("Cargo.toml").exists());
    let names = folders.map(|folder| folder.file_name().expect("a name").to_string_lossy().into_owned());
    names.collect()
}

/// The crates of the workspace that a crate depends on, without those of its tests.
fn dependencies(name: &str) -> Vec<String> {
    let manifest = root().join("crates").join(name).join("Cargo.toml");
    let text = fs::read_to_string(manifest).expect("a manifest");
    let section = text
        .split("\n[")
        .find_map(|section| section.strip_prefix("dependencies]"));
    let keys = section
        .expect("dependencies")
        .lines()
        .filter_map(|line| line.split(['.', ' ', '=']).next());
    keys.filter(|key| crates().contains(*key)).map(str::to_owned).collect()
}

fn source_folder(name: &str) -> PathBuf {
    root().join("crates").join(name).join("src")
}

fn page_of(name: &str) -> PathBuf {
    root().join("docs/architecture").join(name).with_extension("md")
}

fn is_page_of_a_crate(document: &Path) -> bool {
    document
        .parent()
        .is_some_and(|folder| folder.ends_with("docs/architecture"))
}

/// The folders that the paths in a document may be relative to. Those in the page of a crate are relative to its sources.
fn bases(document: &Path) -> Vec<PathBuf> {
    let own = document.parent().expect("a folder").to_owned();
    let mut bases = vec![own, root(), root().join("crates")];
    if is_page_of_a_crate(document) {
        let name = document.file_stem().expect("a name").to_string_lossy();
        bases.push(source_folder(&name));
    } else {
        bases.extend(["crates/pegboard", "crates/pegboard/tests"].map(|base| root().join(base)));
        bases.extend(crates().iter().map(|name| source_folder(name)));
    }
    bases
}

/// The paths of source files in a document: those with a folder, or also names of files alone.
fn source_paths(text: &str, with_names: bool) -> Vec<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"_-./".contains(c));
    let files = words.filter(|word| word.ends_with(".rs") && !word.starts_with("//"));
    let paths = files.filter(|file| with_names || file.contains('/'));
    paths.map(|path| path.trim_start_matches("./").to_owned()).collect()
}

fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.extend(["ARCHITECTURE.md", "README.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    let readmes = crates()
        .into_iter()
        .map(|name| root().join("crates").join(name).join("README.md"));
    found.extend(readmes.filter(|readme| readme.exists()));
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
