//! Files that use each other in circles: there are none but those of a list.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    crates, lines,
    source::{Crate, ModulePath},
    source_folder,
};

/// Circles of files that exist, by crate. None is in the library; a circle that is mended must leave the list.
const CIRCLES: &[(&str, &[&str])] = &[
    (
        "pegboard-cli",
        &["commands/login", "commands/login/flow", "commands/login/list"],
    ),
    ("pegboard-cli", &["commands/status", "commands/status/follow"]),
    (
        "pegboard-cli",
        &[
            "generate",
            "generate/program",
            "generate/python",
            "generate/rust",
            "generate/script",
            "generate/shape",
            "generate/typescript",
        ],
    ),
    ("pegboard-gateway", &["door/oauth", "door/oauth/grants"]),
    ("pegboard-gateway", &["serve/expiry", "serve/site"]),
    ("pegboard-testkit", &["answer/task", "answer/tool"]),
    ("pegboard-testkit", &["client", "server"]),
    (
        "pegboard-testkit",
        &[
            "escape",
            "escape/files",
            "escape/kernel",
            "escape/network",
            "escape/processes",
        ],
    ),
    ("pegboard-testkit", &["oauth/dpop", "oauth/issuer"]),
    ("pegboard-testkit", &["script", "script/question", "script/tool"]),
];

#[test]
fn files_do_not_use_each_other_in_circles() {
    let mut known: BTreeSet<(String, Vec<String>)> = CIRCLES
        .iter()
        .map(|&(name, files)| (name.to_owned(), files.iter().map(|&file| file.to_owned()).collect()))
        .collect();
    let mut new = Vec::new();
    for name in crates() {
        let modules = Crate::read(&source_folder(&name));
        let graph: BTreeMap<_, _> = modules
            .modules()
            .filter(|(path, _)| !path.is_empty())
            .map(|(path, _)| (path.clone(), modules.used_by(path)))
            .collect();
        for circle in circles(&graph) {
            let files = circle.iter().map(|path| path.join("/")).collect();
            if !known.remove(&(name.clone(), files)) {
                new.push(format!("{name}, {} files:\n{}", circle.len(), arrows(&graph, &circle)));
            }
        }
    }
    assert!(new.is_empty(), "files that use each other in circles\n{}", lines(new));
    assert!(
        known.is_empty(),
        "these circles are mended, remove them from the list: {known:?}"
    );
}

/// The groups of two or more modules that reach each other.
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

/// The modules that a module reaches by one or more steps. The root of the crate, which re-exports, is none of them.
fn reachable(graph: &BTreeMap<ModulePath, BTreeSet<ModulePath>>, from: &ModulePath) -> BTreeSet<ModulePath> {
    let mut reached = BTreeSet::new();
    let mut unread = vec![from];
    while let Some(path) = unread.pop() {
        for used in graph[path].iter().filter(|used| !used.is_empty()) {
            if reached.insert(used.clone()) {
                unread.push(used);
            }
        }
    }
    reached
}

/// Which modules of a circle use which, a line each.
fn arrows(graph: &BTreeMap<ModulePath, BTreeSet<ModulePath>>, circle: &[ModulePath]) -> String {
    let pairs = circle
        .iter()
        .flat_map(|path| graph[path].iter().map(move |used| (path, used)));
    let inside = pairs.filter(|(_, used)| circle.contains(used));
    lines(inside.map(|(path, used)| format!("    {} -> {}", path.join("/"), used.join("/"))))
}
