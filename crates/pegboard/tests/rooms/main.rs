//! The rooms of the library and their one-way streets: a room uses rooms below it, and only the wire rooms may name rmcp.

use std::path::{Path, PathBuf};

/// The rooms from the bottom up, as ARCHITECTURE.md lists them.
const ROOMS: &[&str] = &[
    // Words.
    "sync",
    "json_scan",
    "name",
    "secret",
    "deadline",
    "hint",
    "status",
    "mask",
    "config",
    // Pure steps.
    "args",
    "filter",
    "grant",
    "catalog",
    "provider",
    "search",
    "outcome",
    "spill",
    "event",
    "metrics",
    // One wire.
    "auth",
    "shim",
    "transport",
    "native",
    "session",
    // One life, one call, the board.
    "server",
    "call",
    "toolset",
    "board",
    // Doors for the benchmarks.
    "bench",
];

/// The steps that never wait.
const PURE: &[&str] = &[
    "args", "filter", "grant", "catalog", "provider", "search", "mask", "outcome",
];

/// The rooms that talk to servers. Rooms above them see our own types only.
const WIRE_ROOMS: &[&str] = &["auth", "transport", "session"];

#[test]
fn every_room_uses_only_rooms_below_it() {
    let mut wrong = Vec::new();
    for (file, text) in sources() {
        let Some(own) = level(&room_of(&file)) else {
            wrong.push(format!("{} belongs to no room of the list", file.display()));
            continue;
        };
        for used in used_rooms(&text) {
            match level(&used) {
                Some(level) if level <= own => {}
                Some(_) => wrong.push(format!("{} looks up to `{used}`", file.display())),
                None => wrong.push(format!(
                    "{} uses `{used}`, which is no room of the list",
                    file.display()
                )),
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_the_wire_rooms_name_rmcp() {
    for (file, text) in sources() {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let named = code.into_iter().any(|line| line.contains("rmcp::"));
        assert!(
            !named || WIRE_ROOMS.contains(&room_of(&file).as_str()),
            "{} names rmcp",
            file.display()
        );
    }
}

#[test]
fn no_pure_step_is_async() {
    for (file, text) in sources() {
        if PURE.contains(&room_of(&file).as_str()) {
            assert!(!text.contains("async fn"), "{} waits", file.display());
        }
    }
}

/// All source files but `lib.rs`, which may name every room.
fn sources() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") && path != root.join("lib.rs") {
                let text = std::fs::read_to_string(&path).expect("a source file");
                files.push((
                    path.strip_prefix(&root).expect("a path below the root").to_owned(),
                    text,
                ));
            }
        }
    }
    assert!(files.len() > 30, "the sources were not found");
    files
}

fn room_of(file: &Path) -> String {
    let first = file.iter().next().and_then(|name| name.to_str()).unwrap_or_default();
    first.trim_end_matches(".rs").to_owned()
}

fn level(room: &str) -> Option<usize> {
    ROOMS.iter().position(|known| *known == room)
}

/// The rooms named after `crate::`, alone or in braces.
fn used_rooms(text: &str) -> Vec<String> {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    let mut rooms = Vec::new();
    for after in code.split("crate::").skip(1) {
        match after.strip_prefix('{') {
            None => rooms.extend(word(after)),
            Some(list) => {
                let mut depth = 0;
                let mut at_start = true;
                for (at, c) in list.char_indices() {
                    match c {
                        '}' if depth == 0 => break,
                        '{' => depth += 1,
                        '}' => depth -= 1,
                        ',' if depth == 0 => at_start = true,
                        c if at_start && !c.is_whitespace() => {
                            rooms.extend(word(&list[at..]));
                            at_start = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    rooms
}

fn word(text: &str) -> Option<String> {
    let word: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!word.is_empty()).then_some(word)
}

#[test]
fn the_reader_of_use_lines_sees_rooms_alone_and_in_braces() {
    let text = "use crate::{\n    name::{self, A},\n    secret::B,\n};\nfn f() { crate::args::g() }\n// crate::board";
    assert_eq!(used_rooms(text), ["name", "secret", "args"]);
}
